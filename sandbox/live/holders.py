"""Whether a process holds something in an overlay: a folder that it stands in, or a file that it has open.

A folder that somebody holds stays in the kernel's memory as it was when it was first seen, whatever is done to the
layers; so what was new when they came to it has to stay in the upper layer until they have left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class _View:
    """Where a mount name space has the overlay: numbers of its mounts there, and paths."""

    numbers: frozenset[str]
    places: tuple[str, ...]


def held(merged: Path) -> bool:
    """Whether a process in another mount name space, as modules are, holds more of `merged` than all of it."""
    top = os.stat(merged)
    ours = os.readlink("/proc/self/ns/mnt")
    views: dict[str, _View] = {}
    for process in _processes():
        try:
            space = os.readlink(f"{process}/ns/mnt")
            if space == ours:
                continue
            if space not in views:
                views[space] = _view(process, merged)
            if views[space].numbers and _holds(process, views[space], top):
                return True
        except OSError:  # it ended meanwhile
            continue
    return False


def _processes() -> Iterator[str]:
    return (entry.path for entry in os.scandir("/proc") if entry.name.isdecimal())


def _view(process: str, merged: Path) -> _View:
    ours = f"upperdir={merged.parent / 'upper'},"
    rows = [
        line.split(" ")
        for line in Path(f"{process}/mountinfo").read_text(errors="surrogateescape").splitlines()
        if ours in line
    ]
    return _View(frozenset(row[0] for row in rows), tuple(f" {row[4]}/" for row in rows))


def _holds(process: str, view: _View, top: os.stat_result) -> bool:
    if _inside(f"{process}/cwd", top):
        return True
    for entry in os.scandir(f"{process}/fd"):
        about = Path(f"{process}/fdinfo/{entry.name}").read_text()
        number = next((line.split()[1] for line in about.splitlines() if line.startswith("mnt_id:")), "")
        if number in view.numbers and not _is(entry.path, top):
            return True
    mapped = Path(f"{process}/maps").read_text(errors="surrogateescape")
    return any(place in mapped for place in view.places)


def _inside(link: str, top: os.stat_result) -> bool:
    found = os.stat(link)
    return found.st_dev == top.st_dev and found.st_ino != top.st_ino


def _is(link: str, top: os.stat_result) -> bool:
    found = os.stat(link)
    return (found.st_dev, found.st_ino) == (top.st_dev, top.st_ino)
