"""What a command of ours leaves on a machine, looked for from outside: by the kernel, the engine and the file system."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker

from iact.sandbox import leftovers, owner

_PROC: Final = Path("/proc")
_LOCK: Final = re.compile(r"\d+: \w+ +\w+ +\w+ (-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) ")

Process = tuple[int, str]
"""A process by its number and its start, so that a later one with the same number is another one."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What is there of one data directory. `going_on` is what still does something; `lying`, what only takes room."""

    going_on: tuple[str, ...]
    lying: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.going_on or self.lying)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one cell is played. `marker`: an argument that its calls and jobs have, and no other process."""

    data: Path
    temporary: Path
    marker: str

    def processes(self) -> set[Process]:
        """The processes of this data directory, with everything that they started."""
        parents = dict[int, int]()
        found = set[int]()
        for entry in _PROC.iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                number = int(entry.name)
                parents[number] = _parent(entry)
                if self._is_ours(entry):
                    found.add(number)

        _add_children(found, parents)
        found -= {os.getpid()}
        known = {(number, owner.start_time(number)) for number in found}
        return {process for process in known if process[1]}

    def _is_ours(self, entry: Path) -> bool:
        arguments = (entry / "cmdline").read_bytes().split(b"\0")
        if self.marker.encode() in b" ".join(arguments):
            return True
        if f"IACT_DATA={self.data}".encode() not in (entry / "environ").read_bytes().split(b"\0"):
            return False
        return b"-m" in arguments and b"iact" in arguments

    def has_marked(self) -> bool:
        """Whether a call or a job of ours runs, whatever it runs in."""
        for entry in _PROC.iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    arguments = (entry / "cmdline").read_bytes().split(b"\0")
                    if arguments[:2] == [b"sleep", self.marker.encode()]:
                        return True
        return False

    def traces(self, known: Iterable[Process]) -> Traces:
        """What is there now. `known`: processes of ours from before the end, which may have lost their parents."""
        alive = {process for process in known if owner.start_time(process[0]) == process[1]}
        going_on = [f"process {_command_of(number)}" for number, _ in alive | self.processes()]
        going_on += [f"lock {name}" for name in self._locks()]

        lying = list[str]()
        for name, running in self._containers().items():
            (going_on if running else lying).append(f"container {name}")

        found = leftovers.find([self.data])
        lying += [f"folder {folder.name}" for folder in found.folders]
        lying += [f"overlay {overlay.name}" for overlay in found.overlays]
        lying += [f"control group {name}" for name in found.groups if owner.data_digest(self.data) in name]
        lying += [f"claim {name}" for name in owner.given_up(self.data)]
        lying += [f"mount {place}" for place in self._mounts()]
        lying += [f"temporary file {entry.name}" for entry in self.temporary.iterdir()]
        return Traces(tuple(going_on), tuple(lying))

    def _locks(self) -> list[str]:
        """The files of the data directory that somebody has locked."""
        inodes = dict[int, str]()
        for folder, _, names in os.walk(self.data):
            for name in names:
                with suppress(OSError):
                    inodes[os.lstat(os.path.join(folder, name)).st_ino] = name
        device = os.stat(self.data).st_dev
        found = list[str]()
        for line in (_PROC / "locks").read_text().splitlines():
            lock = _LOCK.match(line)
            if lock is None or int(lock[4]) not in inodes:
                continue
            if (int(lock[2], 16), int(lock[3], 16)) == (os.major(device), os.minor(device)):
                found.append(inodes[int(lock[4])])
        return found

    def _containers(self) -> Mapping[str, bool]:
        """Containers and volumes of the data directory, and whether anything runs in them."""
        ours = {"label": f"{owner.OWNER}={owner.data_digest(self.data)}"}
        with closing(docker.from_env()) as client:
            listed = client.api.containers(all=True, filters=ours)
            volumes = client.api.volumes(filters=ours)["Volumes"] or []
        found = {str(item["Names"][0]): item["State"] in ("running", "paused") for item in listed}
        return found | {str(item["Name"]): False for item in volumes}

    def _mounts(self) -> list[str]:
        rows = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        places = [row.split(" ")[1] for row in rows]
        return [place for place in places if Path(place).is_relative_to(self.data)]


def _parent(entry: Path) -> int:
    fields = (entry / "stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[1])


def _add_children(found: set[int], parents: Mapping[int, int]) -> None:
    grew = True
    while grew:
        children = {number for number, parent in parents.items() if parent in found}
        grew = not children <= found
        found |= children


def _command_of(number: int) -> str:
    with suppress(OSError):
        words = (_PROC / str(number) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return f"{number} ({words.strip()[:60]})"
    return str(number)
