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

from iact.core.errors import ModuleLost, SandboxUnavailable
from iact.sandbox import socket_folder
from iact.sandbox.docker import stdio
from iact.sandbox.docker.first_process import INPUT, TAKEN
from iact.sandbox.limits import SOCKET_FOLDER

_NAME: Final = "lease.sock"
_LOOKS_APART: Final = 0.02
"""Seconds between checks for the socket of a container that is starting."""
_LOOKS_FOR_THE_END: Final = 25
"""After so many checks, see whether the container has ended."""

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def held_by(command: Sequence[str], *, shares_sockets: bool) -> list[str]:
    """The command line that runs `command` in a container while this process holds its lease.

    Where no sockets are shared, the container needs an open standard input; see `take_input`.
    """
    place = f"{SOCKET_FOLDER}/{_NAME}" if shares_sockets else INPUT
    return ["python3", "-I", "-S", "-c", _source(), place, *command]


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease on one container, until it is closed."""

    writer: asyncio.StreamWriter

    def close(self) -> None:
        """Let the container end, if it still runs. May be called twice."""
        self.writer.close()


async def take(folder: Path, *, within: float, why_ended: Callable[[], Awaitable[str | None]]) -> Lease:
    """Take the lease on a container that was started, with the socket folder `folder`. `within`: seconds.

    Raises:
        ModuleLost: the container has ended, or does not offer its lease.
    """
    try:
        async with asyncio.timeout(within):
            for look in itertools.count(1):
                lease = await _taken(folder)
                if lease is not None:
                    return lease
                if look % _LOOKS_FOR_THE_END == 0 and (why := await why_ended()):
                    raise ModuleLost(why)
                await asyncio.sleep(_LOOKS_APART)
    except TimeoutError as error:
        raise ModuleLost(f"The container did not begin to run within {within:.0f} seconds.") from error
    raise AssertionError("unreachable: the loop above has no end of its own")


async def take_input(container: Container) -> Lease:
    """Take the lease on a container that was created and not started: its standard input, through the engine.

    A relay in the container could be stopped by the module. The engine holds the input for us from outside, and closes
    it as soon as our connection ends.

    Raises:
        SandboxUnavailable: the engine doesn't connect us.
    """
    try:
        writer = await stdio.input_of(container)
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise SandboxUnavailable("The Docker engine gives no connection to a container's input.") from error
    writer.write(TAKEN)
    return Lease(writer)


async def _taken(folder: Path) -> Lease | None:
    """The lease, or None if the container does not offer it yet."""
    with suppress(OSError, asyncio.IncompleteReadError):
        connected = await _dial(folder)
        if connected is None:
            return None

        reader, writer = connected
        confirmed = False
        try:
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
