"""The cache of what can be built again, shared by all data directories of a user: systems, and packages of modules."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report


def folder() -> Path:
    """The folder of this user's cache."""
    return Path(os.environ.get("IACT_CACHE") or user_cache_path("iact"))


@contextmanager
def one_builder(report: Report) -> Iterator[None]:
    """Wait until no other process of this user builds, then make other processes wait."""
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place / "image.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SandboxUnavailable(
            f"{place} can't be written to ({error.strerror}); make it writable."
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("another process builds the sandbox's base image; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
