"""A small file that many processes read while one of them changes it: replaced as a whole, by one process at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock out all other processes that change the file. The lock file stays: removing it would let two in.

    Raises:
        OSError: the file can't be created.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the file atomically: a reader, or a crash, finds the old one or the new one.

    Raises:
        OSError: it can't be written, and is unchanged.
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
