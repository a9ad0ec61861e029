"""Bounds on all processes of one sandbox together, where we may set them: as root, in the kernel's control groups.

Both forms of the file system are supported: the old one has a tree for each controller, the new one a single tree.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.sandbox import owner
from iact.sandbox.limits import Limits

_ROOT: Final = Path("/sys/fs/cgroup")
_OURS: Final = "iact"
_PERIOD: Final = 100_000
"""Microseconds over which processor time is distributed."""
_PATIENCE: Final = 20
"""Seconds for the kernel to release a group whose processes were killed."""
_NEEDED: Final = frozenset({"memory", "pids"})
_NUMBERS: Final = itertools.count(1)
_NAME: Final = re.compile(
    r"((?P<data>[0-9a-f]{12})-(?P<claim>[^_@]+)_)?(?P<process>[0-9]+-[0-9a-f]+\.[0-9]+)@[0-9]+"
)
"""A group's name. Those of earlier versions and of `check` tell the process only, and belong to no data directory."""

_FREEZERS: Final = (
    ("cgroup.freeze", "1", ("cgroup.events", "frozen 1")),
    ("freezer.state", "FROZEN", ("freezer.state", "FROZEN")),
)
"""For each form of the file system: the file, what to write to it, and where it shows that everything is frozen."""
_FREEZING: Final = 0.2
"""Seconds for the kernel to freeze everything."""

ENTER: Final = (
    'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 125; shift; done; shift; exec env -i "$@"'
)
"""A shell script: enter the groups before "--", then become the command after it, without an environment."""


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """One sandbox's group: its folder, or in the old form its folder for each controller."""

    folders: tuple[Path, ...] = ()

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process in it for lack of memory."""
        for folder in self.folders:
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError):
                    fields = dict(
                        line.split(" ", 1) for line in (folder / name).read_text("ascii").splitlines()
                    )
                    if int(fields.get("oom_kill", "0")) > 0:
                        return True
        return False

    def freeze(self) -> bool:
        """Suspend all its processes. Return whether that worked. Blocks, for as long as the kernel needs."""
        for folder in self.folders:
            for name, value, done in _FREEZERS:
                if (folder / name).is_file():
                    with suppress(OSError):
                        (folder / name).write_text(value, encoding="ascii")
                        return _became(folder, done)
        return False

    def kill(self) -> None:
        """Kill all its processes, frozen or not. Blocks, but takes almost no time."""
        frozen = [folder for folder in self.folders if (folder / "freezer.state").is_file()]
        for folder in frozen or self.folders[:1]:
            with suppress(OSError):
                for line in (folder / "cgroup.procs").read_text("ascii").split():
                    number = int(line)
                    if number == 0:  # of another PID namespace; to `kill`, 0 means our own process group
                        continue
                    with suppress(ProcessLookupError):
                        os.kill(number, signal.SIGKILL)
        for folder in frozen:  # in the old form, frozen processes die when they are thawed
            with suppress(OSError):
                (folder / "freezer.state").write_text("THAWED", encoding="ascii")

    def remove(self, *, within: float = _PATIENCE) -> None:
        """Remove it once its processes are gone. What the kernel still holds is left to `reap`. Blocks."""
        until = time.monotonic() + within
        for folder in self.folders:
            while folder.is_dir():
                with suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > until:
                    return
                time.sleep(0.01)


def make(bounds: Limits, whose: str) -> ControlGroup | None:
    """Create a group with `bounds`. None if that is impossible: without rights, or without the controllers.

    `whose`: what `reap` knows its owner by: `name_of` a host, or the process as text.
    """
    if os.geteuid() != 0:
        return None

    name = f"{whose}@{next(_NUMBERS)}"
    folders: list[Path] = []
    try:
        for folder, values in _folders(name, bounds):
            folder.mkdir(parents=True)
            folders.append(folder)

            # A kernel without swap accounting lacks one of these files.
            for file, value in values.items():
                if (folder / file).exists():
                    (folder / file).write_text(value, encoding="ascii")
    except OSError:
        ControlGroup(tuple(folders)).remove()
        return None
    return ControlGroup(tuple(folders))


def name_of(data: Path, claim: owner.Claim) -> str:
    """How the groups of a host of the data directory `data` are known."""
    return f"{owner.data_digest(data)}-{claim.name}_{owner.Process.current()}"


def reap(data: Path) -> list[str]:
    """Remove what `abandoned` finds, and kill frozen processes in it; others died with their owner.

    Return the names of the groups that are gone. Blocks.
    """
    removed = []
    for name, group in abandoned(data).items():
        group.kill()
        group.remove(within=1)
        if not any(folder.exists() for folder in group.folders):
            removed.append(name)
    return removed


def abandoned(data: Path) -> dict[str, ControlGroup]:
    """The groups of hosts of the data directory `data` that are gone, and those of no data directory, by their names.

    Blocks.
    """
    found: dict[str, list[Path]] = {}
    for parent in (_ROOT / _OURS, *_ROOT.glob(f"*/{_OURS}")):
        for folder in parent.glob("*@*"):
            found.setdefault(folder.name, []).append(folder)
    return {
        name: ControlGroup(tuple(folders)) for name, folders in found.items() if _is_abandoned(name, data)
    }


def _is_abandoned(name: str, data: Path) -> bool:
    parts = _NAME.fullmatch(name)
    if parts is None or parts["data"] not in (None, owner.data_digest(data)):
        return False
    return bool(owner.gone(data, parts["claim"] or "", owner.Process.parse(parts["process"])))


def _became(folder: Path, done: tuple[str, str]) -> bool:
    until = time.monotonic() + _FREEZING
    while done[1] not in (folder / done[0]).read_text("ascii"):
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _folders(name: str, bounds: Limits) -> list[tuple[Path, dict[str, str]]]:
    """The folders to create, and the values to write there.

    Raises:
        OSError: memory or processes can't be bounded here.
    """
    quota = int(bounds.cpus * _PERIOD)
    if (_ROOT / "cgroup.controllers").is_file():
        for parent in (_ROOT, _ROOT / _OURS):
            parent.mkdir(exist_ok=True)
            (parent / "cgroup.subtree_control").write_text("+memory +pids +cpu", encoding="ascii")
        values = {"memory.max": str(bounds.memory), "memory.swap.max": "0", "pids.max": str(bounds.processes)}
        return [(_ROOT / _OURS / name, {**values, "cpu.max": f"{quota} {_PERIOD}"})]
    memory = {file: str(bounds.memory) for file in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")}
    tables: dict[str, dict[str, str]] = {
        "memory": memory,
        "pids": {"pids.max": str(bounds.processes)},
        "cpu": {"cpu.cfs_quota_us": str(quota)},
        "freezer": {},
    }
    found = {controller: values for controller, values in tables.items() if (_ROOT / controller).is_dir()}
    if not found.keys() >= _NEEDED:
        raise OSError("the kernel has no control groups for memory and processes")
    return [(_ROOT / controller / _OURS / name, values) for controller, values in found.items()]
