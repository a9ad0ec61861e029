"""A small JSON file with what a person decided: many processes read it while one of them changes it.

It is replaced whole, so that a reader, or a crash, finds the old one or the new one.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import UsageError
from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class Version:
    """Tells one state of a file from another."""

    inode: int
    size: int
    changed: int


def version_of(path: Path) -> Version | None:
    """The state of a file now; None: there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Version(status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Alone among all processes that change it. The lock's file stays: removing it would let two in. `what`: it holds.

    Raises:
        UsageError: there can be no such file.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_json(path: Path, data: JSON, what: str) -> None:
    """Write the file anew.

    Raises:
        UsageError: it can't be written.
    """
    draft = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as stream:
            draft = stream.name
            json.dump(data, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except OSError as error:
        if draft:
            Path(draft).unlink(missing_ok=True)
        raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
