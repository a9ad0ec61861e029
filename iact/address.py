"""Where the running server of a data directory is: one small file, `server.json`, and a lock beside it.

A data directory has at most one server. Two would do each other no harm, since every session is locked by
itself, but a command that controls a session could then not know which of them holds it.

The lock says whether a server lives; the file, readable by its owner alone because it holds the server's
key, says where. A killed server leaves the file behind without the lock: that is nobody's address.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from iact.core.errors import IactError, UsageError

FILE: Final = "server.json"
LOCK: Final = "server.lock"


class Address(BaseModel):
    """A server. `url`: the page's, with the token of the start; `key`: what programs send to get in; `pid`: its
    process; `started`: ISO 8601, UTC."""

    model_config = ConfigDict(frozen=True)

    url: str
    pid: int
    started: str
    key: str = ""

    @property
    def page(self) -> str:
        """The page's address without the token, to be shown."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/"

    @property
    def socket(self) -> str:
        """The websocket's address."""
        parts = urlsplit(self.url)
        return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}/ws"


class NoServer(IactError):
    """No server runs on the data directory."""


@contextmanager
def claimed(data: Path) -> Iterator[None]:
    """Be the one server of `data`, a directory that exists; at the end its address is taken away.

    Raises:
        UsageError: another server lives there.
    """
    descriptor = os.open(data / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(_taken(data)) from error
        left = _read(data)
        if left is not None:
            print(
                f"note: the entry of an earlier server (process {left.pid}), which was killed, is replaced.",
                file=sys.stderr,
            )
        try:
            yield
        finally:
            (data / FILE).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def publish(data: Path, address: Address) -> None:
    """Say where the server is; for who has `claimed` the directory. It need not outlive a power failure: the server won't."""
    temporary = data / f".{FILE}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(address.model_dump_json() + "\n")
    temporary.rename(data / FILE)


def find(data: Path) -> Address:
    """The address of the server that lives on `data`.

    Raises:
        NoServer: there is none; the sentence says how to start it.
    """
    remedy = f"Start it with: iact serve --data {data}"
    address = _read(data)
    if address is None:
        raise NoServer(f"No server runs on {data}. {remedy}.")
    if not _lives(address.pid):
        raise NoServer(
            f"No server runs on {data}: the last one (process {address.pid}) was killed. {remedy}."
        )
    return address


def _read(data: Path) -> Address | None:
    try:
        return Address.model_validate_json((data / FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def _taken(data: Path) -> str:
    there = _read(data)
    who = f" (process {there.pid}, {there.page})" if there is not None else ""
    return f"A server runs on {data} already{who}; use that one, or give this one another --data directory."


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
