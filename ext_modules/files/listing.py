"""The content of a folder, as lines for an agent."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from . import place

MOST: Final = 1000
"""The most entries in one listing."""
_NAMED: Final = 8
"""The most hidden names that a listing tells."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing."""

    path: str
    """Relative to the workspace."""
    mode: int
    """What it is, and its permissions, as in `st_mode`."""
    size: int
    """In bytes."""
    target: str
    """Of a link: what it points to."""

    def __str__(self) -> str:
        if stat.S_ISDIR(self.mode):
            return f"{'':>12} {self.path}/"
        if stat.S_ISLNK(self.mode):
            return f"{'link':>12} {self.path} -> {self.target}"
        if not stat.S_ISREG(self.mode):
            return f"{'special':>12} {self.path}"
        return f"{self.size:>12,} {self.path}"


@dataclass(slots=True)
class Hidden:
    """How many names were left out because they begin with a dot, and some of them."""

    count: int = 0
    names: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        """Note a path that is left out."""
        self.count += 1
        if len(self.names) < _NAMED:
            self.names.append(path)


def entries(path: str, depth: int, *, hidden: Hidden | None) -> Iterator[Entry]:
    """Yield the content of the folder at `path`, `depth` levels deep, by name, each folder before its content.

    `hidden`: takes the names that begin with a dot; without it, they are yielded as well.

    Raises:
        place.FileProblem: there is no such folder.
    """
    steps = place.parts_of(path)
    with place.folder(steps) as opened:
        yield from _below(opened, "".join(f"{step}/" for step in steps), depth, hidden)


def _below(parent: int, prefix: str, depth: int, hidden: Hidden | None) -> Iterator[Entry]:
    """The content of an opened folder. `prefix`: its path, with a slash at its end."""
    for name in sorted(_names(parent)):
        if name.startswith(".") and hidden is not None:
            hidden.add(f"{prefix}{name}")
            continue

        entry = _entry(parent, name, prefix)
        if entry is None:
            continue
        yield entry
        if depth > 1 and stat.S_ISDIR(entry.mode):
            yield from _inside(parent, name, f"{prefix}{name}/", depth - 1, hidden)


def _inside(parent: int, name: str, prefix: str, depth: int, hidden: Hidden | None) -> Iterator[Entry]:
    try:
        inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except OSError:  # it has just disappeared or become something else
        return
    try:
        yield from _below(inner, prefix, depth, hidden)
    finally:
        os.close(inner)


def _names(folder: int) -> list[str]:
    try:
        reading = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return []
    try:
        return os.listdir(reading)
    finally:
        os.close(reading)


def _entry(parent: int, name: str, prefix: str) -> Entry | None:
    try:
        status = os.lstat(name, dir_fd=parent)
        target = os.readlink(name, dir_fd=parent) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:
        return None
    return Entry(f"{prefix}{name}", status.st_mode, status.st_size, target)
