"""The entries of an overlay that processes hold: working directories, and files that are open, run, mapped or watched.

The kernel keeps every held entry, and all folders on the way to it, as it was when the process reached it, whatever
happens to the layers. So an entry that was new then must stay in the upper layer until no process holds it, and what
the user put in its place can't be seen yet.

Modules live in their own mount name spaces. Inspecting every process of the machine before each call would cost more
than everything else, so a process that was in none of those name spaces for some seconds is not inspected again: it
will not get there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.sandbox.live.compare import ancestors

_SETTLES: Final = 5.0
"""Seconds in which a process that starts in our own name space may still move to another."""
_DELETED: Final = " (deleted)"
_WATCH: Final = re.compile(r"^inotify wd:\w+ ino:(\w+) sdev:(\w+)", re.MULTILINE)


@dataclass(slots=True)
class Held:
    """`paths`: the held paths and the folders on the way to them, without the top, which every module holds.

    `watched`: inode numbers of watched entries (inotify), whose paths are not known.
    """

    paths: set[str] = field(default_factory=set)
    watched: set[int] = field(default_factory=set)


class Holders:
    """Finds processes that hold something in the overlay mounted at `merged`."""

    def __init__(self, merged: Path) -> None:
        device = os.stat(merged).st_dev
        self._device = f" {os.major(device)}:{os.minor(device)} "
        self._short = f"{os.major(device) << 20 | os.minor(device):x}"
        self._ours = os.readlink("/proc/self/ns/mnt")
        self._since: dict[str, float] = {}
        """When a process that holds nothing was first seen."""
        self._strangers: set[str] = set()
        """Processes that can no longer come to hold anything."""

    def held(self, *, mapped: bool) -> Held:
        """What is held now. With `mapped`, includes files that are only mapped into memory, which takes longer."""
        places: dict[str, list[str]] = {}
        found = Held()
        for process in self._candidates():
            try:
                space = os.readlink(f"/proc/{process}/ns/mnt")
                if space not in places:
                    places[space] = [] if space == self._ours else self._places(process)
                if places[space]:
                    self._look(process, places[space], found, mapped)
                else:
                    self._stranger(process)
            except OSError:  # it ended meanwhile
                continue
        found.paths |= {above for path in found.paths for above in ancestors(path)}
        return found

    def _look(self, process: str, places: list[str], found: Held, mapped: bool) -> None:
        for link, path in _links(process):
            found.paths |= {path[len(place) :] for place in places if path.startswith(place)}
            if path == "anon_inode:inotify":
                about = Path(link.replace("/fd/", "/fdinfo/")).read_text()
                found.watched |= {
                    int(ino, 16) for ino, device in _WATCH.findall(about) if device == self._short
                }
        if mapped:
            for path in _mapped(process):
                found.paths |= {path[len(place) :] for place in places if path.startswith(place)}

    def _candidates(self) -> list[str]:
        there = {name for name in os.listdir("/proc") if name.isdecimal()}
        self._strangers &= there
        self._since = {name: since for name, since in self._since.items() if name in there}
        return sorted(there - self._strangers)

    def _stranger(self, process: str) -> None:
        now = time.monotonic()
        if now - self._since.setdefault(process, now) > _SETTLES:
            self._strangers.add(process)
            del self._since[process]

    def _places(self, process: str) -> list[str]:
        """Where the process has the overlay mounted, found by its device number (proc_pid_mountinfo(5), field 3)."""
        table = Path(f"/proc/{process}/mountinfo").read_text(errors="surrogateescape")
        if self._device not in table:
            return []
        # Mount points are relative to the process's own root, held paths to ours: gVisor's gofer has another root.
        top = os.readlink(f"/proc/{process}/root").rstrip("/")
        rows = (line.split(" ") for line in table.splitlines() if self._device in line)
        return [f"{top}{row[4]}/" for row in rows if f" {row[2]} " == self._device]


def _links(process: str) -> Iterator[tuple[str, str]]:
    place = f"/proc/{process}"
    links = [f"{place}/cwd", f"{place}/exe", *(f"{place}/fd/{name}" for name in os.listdir(f"{place}/fd"))]
    for link in links:
        with suppress(OSError):  # closed meanwhile
            path = os.readlink(link)
            if not path.endswith(_DELETED):
                yield link, path


def _mapped(process: str) -> set[str]:
    table = Path(f"/proc/{process}/maps").read_text(errors="surrogateescape")
    return {line[line.index("/") :] for line in table.splitlines() if "/" in line}
