"""The owner's end of a container's lease: while this process has it, the container runs; see `first_process`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from docker.models.containers import Container

from iact.core.errors import ModuleLost
from iact.sandbox import socket_folder
from iact.sandbox.docker import stdio
from iact.sandbox.docker.first_process import TAKEN
from iact.sandbox.limits import SOCKET_FOLDER

_NAME: Final = "lease.sock"
_LOOKS_APART: Final = 0.02
"""Seconds between checks for the socket of a container that is starting."""
_LOOKS_FOR_THE_END: Final = 25
"""After so many checks, see whether the container has ended."""

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def held_by(command: Sequence[str]) -> list[str]:
    """The command line that runs `command` in a container while this process holds its lease."""
    return ["python3", "-I", "-S", "-c", _source(), f"{SOCKET_FOLDER}/{_NAME}", *command]


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease on one container, until it is closed."""

    writer: asyncio.StreamWriter

    def close(self) -> None:
        """Let the container end, if it still runs. May be called twice."""
        self.writer.close()


async def take(
    container: Container,
    folder: Path,
    *,
    shares_sockets: bool,
    within: float,
    why_ended: Callable[[], Awaitable[str | None]],
) -> Lease:
    """Take the lease on a container that was started, with the socket folder `folder`. `within`: seconds.

    Raises:
        ModuleLost: the container has ended, or does not offer its lease.
    """
    try:
        async with asyncio.timeout(within):
            for look in itertools.count(1):
                lease = await _taken(container, folder, shares_sockets=shares_sockets)
                if lease is not None:
                    return lease
                if look % _LOOKS_FOR_THE_END == 0 and (why := await why_ended()):
                    raise ModuleLost(why)
                await asyncio.sleep(_LOOKS_APART)
    except TimeoutError as error:
        raise ModuleLost(f"The container did not begin to run within {within:.0f} seconds.") from error
    raise AssertionError("unreachable: the loop above has no end of its own")


async def _taken(container: Container, folder: Path, *, shares_sockets: bool) -> Lease | None:
    """The lease, or None if the container does not offer it yet."""
    with suppress(OSError, asyncio.IncompleteReadError):
        connected = await (_dial(folder) if shares_sockets else stdio.connected(container, _NAME))
        if connected is None:
            return None

        reader, writer = connected
        confirmed = False
        try:
            if not shares_sockets:
                await reader.readexactly(stdio.HEADER)
            confirmed = await reader.readexactly(len(TAKEN)) == TAKEN
        finally:
            if not confirmed:
                writer.close()
        if confirmed:
            return Lease(writer)
    return None


async def _dial(folder: Path) -> Connected | None:
    """Connect to the container's own socket: the module does not run yet, but a name is trusted nowhere."""
    checked = socket_folder.open_socket(folder, _NAME)
    if checked is None:
        return None
    try:
        return await asyncio.open_unix_connection(checked.target.removeprefix("unix://"))
    finally:
        checked.close()


@cache
def _source() -> str:
    return Path(__file__).with_name("first_process.py").read_text(encoding="utf-8")
