"""The state of the directory when each change was first seen, stored next to the overlay to detect conflicts.

For each changed path its *print* is kept: a fingerprint of the directory's entry below it. A change conflicts if that
entry changed after the start of the call in which the change was first seen, or is different now. A change that was
applied, or otherwise equals the directory, is *settled*: the overlay's copy is ignored unless it changes again, and is
removed before the next call.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.sandbox.live import steps

Print = tuple[int | str, ...]
"""For a folder its type and mode; for anything else also inode, size and times. Empty: nothing is there."""
NOTHING: Final[Print] = ()


def print_of(status: os.stat_result | None) -> Print:
    """The fingerprint of an entry with this `status`."""
    if status is None:
        return NOTHING
    kind, mode = steps.type_of(status.st_mode), stat.S_IMODE(status.st_mode)
    if kind == "folder":
        return (kind, mode)
    return (kind, mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def is_whiteout(status: os.stat_result) -> bool:
    """Whether this entry of an upper layer marks a deletion."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def stamp_of(status: os.stat_result) -> Print:
    """The fingerprint of an entry in the upper layer: it changes whenever the entry does."""
    return ("whiteout",) if is_whiteout(status) else print_of(status)


@dataclass(slots=True)
class First:
    """A change when it was first seen."""

    below: Print
    """What was in the directory."""
    late: bool = False
    """The directory's entry had changed after the call began."""


@dataclass(slots=True)
class Base:
    """Everything remembered about one overlay, by path."""

    file: Path
    first: dict[str, First] = field(default_factory=dict)
    """Changes as they were first seen."""
    settled: dict[str, Print] = field(default_factory=dict)
    """Entries of the upper layer that are no changes, with their stamps."""
    _saved: str = ""
    """What the file holds."""

    @classmethod
    def load(cls, file: Path) -> Base:
        """Load `file`; empty if it does not exist.

        Raises:
            WorkspaceError: it can't be read.
        """
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls(file)
        except OSError as error:
            raise WorkspaceError(f"{file} can't be read ({error.strerror}).") from error

        try:
            return cls(file, *_parsed(json.loads(text)), text)
        except (ValueError, TypeError, KeyError) as error:
            raise WorkspaceError(
                f"{file} is damaged, so it is unknown what has changed in the live directory in the "
                f"meantime. Check the changes in {file.parent / 'upper'}, then remove {file.parent}."
            ) from error

    def save(self) -> None:
        """Write it to disk if it changed, atomically.

        Raises:
            WorkspaceError: it can't be written.
        """
        first = {path_names.encode(path): [*row.below, row.late] for path, row in self.first.items()}
        settled = {path_names.encode(path): list(stamp) for path, stamp in self.settled.items()}
        text = json.dumps({"first": first, "settled": settled})
        if text == self._saved:
            return

        draft = self.file.with_name(f"{self.file.name}.draft")
        try:
            with draft.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            draft.replace(self.file)
        except OSError as error:
            raise WorkspaceError(
                f"{self.file} can't be written ({error.strerror}); free some disk space."
            ) from error
        self._saved = text


def _parsed(
    fields: Mapping[str, Mapping[str, list[int | str | bool]]],
) -> tuple[dict[str, First], dict[str, Print]]:
    first = {
        _path(written): First(cast(Print, tuple(row[:-1])), bool(row[-1]))
        for written, row in fields["first"].items()
    }
    settled = {_path(written): cast(Print, tuple(row)) for written, row in fields["settled"].items()}
    return first, settled


def _path(written: str) -> str:
    parts = path_names.decode(written)
    if parts is None:
        raise ValueError(written)
    return "/".join(parts)
