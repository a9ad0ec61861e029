"""A small JSON file with what a person decided: many processes read it while one of them changes it (`core.whole_file`)."""

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
    """As `whole_file.locked`. `what`: it holds.

    Raises:
        UsageError: there can be no such file.
    """
    with ExitStack() as held:
        try:
            held.enter_context(whole_file.locked(path))
        except OSError as error:
            raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
        yield


def replace_json(path: Path, data: JSON, what: str) -> None:
    """Write the file anew.

    Raises:
        UsageError: it can't be written.
    """
    try:
        whole_file.replace(path, json.dumps(data, indent=2).encode())
    except OSError as error:
        raise UsageError(f"The {what} in {path} can't be written: {error.strerror}.") from error
