"""A small JSON file with a person's decisions, read by many processes while one changes it (`core.whole_file`)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from iact.core import whole_file
from iact.core.errors import UsageError
from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class Version:
    """Distinguishes one state of a file from another."""

    inode: int
    size: int
    changed: int


def version_of(path: Path) -> Version | None:
    """Return the current state of a file, or None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Version(status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the file's lock, as in `whole_file.locked`. `what`: the file's content, for messages.

    Raises:
        UsageError: the file can't be created.
    """
    with ExitStack() as held:
        try:
            held.enter_context(whole_file.locked(path))
        except OSError as error:
            raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
        yield


def replace_json(path: Path, data: JSON, what: str) -> None:
    """Replace the file.

    Raises:
        UsageError: it can't be written.
    """
    try:
        whole_file.replace(path, json.dumps(data, indent=2).encode())
    except OSError as error:
        raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
