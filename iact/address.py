"""Where the running server of a data directory is: a small file, `server.json`, and a lock next to it.

A running `iact run` has such a file, too, for its one session.

A data directory has at most one server. Two would not harm each other, because each session has its own lock, but a
command that controls a session could not know which server holds it.

The lock shows whether a server is running. The file contains its address, and is readable only by its owner because it
also contains the server's key. A killed server leaves the file without the lock; that address is then ignored.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError

from iact.core.errors import IactError, UsageError

FILE: Final = "server.json"
LOCK: Final = "server.lock"
RUN: Final = "run."
"""How the names of files begin that say where a running `iact run` is reached."""


class Address(BaseModel):
    """The address of a server.

    `url`: the page's address, with the token of this start. `key`: the key that programs send. `pid`: the server's
    process. `started`: ISO 8601, UTC.
    """

    model_config = ConfigDict(frozen=True)

    url: str
    pid: int
    started: str
    key: str = ""

    @property
    def page(self) -> str:
        """The page's address without the token, for display."""
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
    """Be the only server of the existing directory `data`. Its address is removed at the end.

    Raises:
        UsageError: another server is running there.
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
                f"note: replacing the entry of an earlier server (process {left.pid}) that was killed.",
                file=sys.stderr,
            )
        try:
            yield
        finally:
            (data / FILE).unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def publish(data: Path, address: Address) -> None:
    """Write the server's address, after `claimed`. It need not survive a power failure, because the server won't either."""
    temporary = data / f".{FILE}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(address.model_dump_json() + "\n")
    temporary.rename(data / FILE)


@contextmanager
def announced(data: Path, session: str, address: Address) -> Iterator[None]:
    """Say where the process that runs one session is reached, while it is, for `find_run`."""
    file = _run_file(data, session)
    for left in data.glob(f"{RUN}*.json"):
        _remove_left(left)

    temporary = data / f".{file.name}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        # Before it has its name: a file of that name without a lock was left by a process that was killed.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, address.model_dump_json().encode() + b"\n")
        temporary.rename(file)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def find_run(data: Path, session: str) -> Address | None:
    """Return where the `iact run` that runs this session now is reached, if there is one."""
    if Path(session).name != session:
        return None

    with suppress(OSError, ValidationError), _run_file(data, session).open("rb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return Address.model_validate_json(stream.read())
    return None


def _remove_left(file: Path) -> None:
    """Remove the file of a process that was killed, whose lock nobody holds."""
    with suppress(OSError), file.open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        file.unlink(missing_ok=True)


def _run_file(data: Path, session: str) -> Path:
    return data / f"{RUN}{session}.json"


def find(data: Path) -> Address:
    """Return the address of the server running on `data`.

    Raises:
        NoServer: no server runs; the message says how to start one.
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
    return f"A server is already running on {data}{who}. Use that server, or give this one another directory with --data."


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
