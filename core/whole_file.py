"""A small file that many processes read while one of them changes it: replaced whole, and by one at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone among all processes that change it. The lock's file stays: removing it would let two in.

    Raises:
        OSError: there can be no such file.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Write the file anew, so that a reader, or a crash, finds the old one or the new one.

    Raises:
        OSError: it can't be written, and is as it was.
    """
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as stream:
        try:
            os.fchmod(stream.fileno(), mode)
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(stream.name, path)
        except BaseException:
            Path(stream.name).unlink(missing_ok=True)
            raise
