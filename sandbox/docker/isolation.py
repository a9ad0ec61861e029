"""Additional isolation that an engine offers, and how containers use it: another kernel, other users.

gVisor puts its own kernel between a module and the host's. User-name-space remapping makes user 0 inside a user without
rights outside. Neither replaces anything: everything in `limits` applies as well. All of this is decided from the
engine's own description of itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from iact.core.errors import SandboxUnavailable
from iact.core.ports import JSON
from iact.sandbox.limits import Limits, Place

AUTO: Final = "auto"
"""Chooses a runtime automatically."""
_LEAST_PROCESSES: Final = 1500
"""gVisor's own threads count against the engine's limit; its kernel enforces the module's own limit."""
_SHARES_SOCKETS: Final = frozenset({"create", "all"})
_DUE: Final = {"NoNewPrivs": "1", "Seccomp": "2"}
_ROOT_DIR: Final = re.compile(r"/(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class UserMap:
    """The host's users that a container's users are mapped to. `first`: user 0's user, `group`: its group.

    `count` of each follow.
    """

    first: int
    group: int
    count: int = 65_536

    def inside(self, uid: int, gid: int) -> tuple[int, int] | None:
        """The user and group inside for `uid`:`gid` of the host; None if they are not mapped."""
        user, group = uid - self.first, gid - self.group
        return (user, group) if 0 <= user < self.count and 0 <= group < self.count else None


@dataclass(frozen=True, slots=True)
class Isolation:
    """How modules are isolated here. `runtime`: the engine's name of it, "" for its default."""

    runtime: str = ""
    gvisor: bool = False
    mapped: UserMap | None = None
    shares_sockets: bool = True
    """Whether a module's sockets can be reached from outside; otherwise `stdio` connects to them."""
    joins: bool = True
    """Whether one container's processes can be among those of another: not where each has a kernel of its own."""

    def root(self, *, ours: bool) -> bool:
        """Whether root inside may be real. `ours`: whether we are root, and can make it own its workspace."""
        return ours and self.shares_sockets and (self.gvisor or self.mapped is not None)

    def bounds(self, bounds: Limits) -> Limits:
        """`bounds` in the form that the engine needs."""
        if not self.gvisor:
            return bounds
        return replace(
            bounds, processes=max(bounds.processes, _LEAST_PROCESSES), own_processes=bounds.processes
        )


def of(info: Mapping[str, JSON], wanted: str = AUTO) -> Isolation:
    """Choose the isolation for an engine that describes itself as `info`. `wanted`: the name of a runtime, or `AUTO`.

    AUTO takes a gVisor that is registered in such a way that it shares sockets, which does not happen by accident.

    Raises:
        SandboxUnavailable: the engine has no such runtime.
    """
    runtimes = info.get("Runtimes")
    found = runtimes if isinstance(runtimes, dict) else {}
    if wanted == AUTO:
        name = next((name for name, entry in sorted(found.items()) if _gvisor(entry) and _shares(entry)), "")
    elif wanted in found:
        name = wanted
    else:
        raise SandboxUnavailable(
            f"The Docker engine has no runtime {wanted!r}, only {', '.join(sorted(found))}; "
            "register it with the engine or change the setting IACT_RUNTIME."
        )
    gvisor = _gvisor(found.get(name))
    # gVisor has its own users. If its file server were mapped, it could not traverse the folders that lead to ours.
    entry = found.get(name)
    shared = _shares_sockets(entry) if gvisor else not (_virtual(entry) or _desktop(info))
    own_kernel = gvisor or _virtual(entry)
    return Isolation(name, gvisor, None if gvisor else _mapping(info), shared, joins=not own_kernel)


def gaps(status: str, rights: Iterable[int] = ()) -> list[str]:
    """Rights that a process should have lost but has, from `/proc/PID/status`. `rights`: capabilities it may have."""
    may = sum(1 << number for number in rights)
    found = {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}
    kept = [name for name in ("CapEff", "CapPrm", "CapBnd", "CapInh") if int(found.get(name, "0"), 16) & ~may]
    return kept + [name for name, due in _DUE.items() if found.get(name, due) != due]


def without_gvisor(info: Mapping[str, JSON]) -> str:
    """Why gVisor is not used automatically on an engine that describes itself as `info`: for people."""
    runtimes = info.get("Runtimes")
    if isinstance(runtimes, dict) and any(map(_gvisor, runtimes.values())):
        return "registered, but without --network=none and --host-uds=all"
    return "no"


def seat(place: Place, mapped: UserMap | None, uid: int, gid: int, *, root: bool) -> tuple[Place, int, int]:
    """`place` on an engine that maps users as `mapped`, and the host's user and group that the module runs as.

    `uid`, `gid`: the user and group that it would run as otherwise, those of its workspace; `root`: whether we are
    root. Files of a user that the engine does not map can be written only by that user, and an ordinary user can't give
    files away. In these cases the container keeps the host's users, and runs as that user alone.
    """
    if mapped is None:
        return replace(place, own_users=False), uid, gid
    if root and place.workspace is None:
        return replace(place, user="0:0"), mapped.first, mapped.group
    within = mapped.inside(uid, gid)
    if not root or within is None:
        return replace(place, own_users=False), uid, gid
    return replace(place, user=f"{within[0]}:{within[1]}"), uid, gid


def give(folder: Path, uid: int, gid: int) -> None:
    """Change the owner of everything in `folder` that belongs to root to `uid`:`gid`. Follows no link. Blocks."""
    for _, folders, files, here in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            with suppress(FileNotFoundError):
                if os.stat(name, dir_fd=here, follow_symlinks=False).st_uid == 0:
                    os.chown(name, uid, gid, dir_fd=here, follow_symlinks=False)


def _gvisor(entry: JSON) -> bool:
    return isinstance(entry, dict) and PurePath(str(entry.get("path", ""))).name == "runsc"


def _virtual(entry: JSON) -> bool:
    """Whether its containers are virtual machines, whose file systems do not pass sockets."""
    return isinstance(entry, dict) and "kata" in f"{entry.get('path')} {entry.get('runtimeType')}"


def _desktop(info: Mapping[str, JSON]) -> bool:
    """Whether the whole engine is in a virtual machine that shares folders with us, but not sockets."""
    return str(info.get("OperatingSystem", "")).startswith("Docker Desktop")


def _arguments(entry: JSON) -> list[str]:
    given = entry.get("runtimeArgs") if isinstance(entry, dict) else None
    return [str(each).lstrip("-") for each in given] if isinstance(given, list) else []


def _shares_sockets(entry: JSON) -> bool:
    sockets = {each.partition("=")[2] for each in _arguments(entry) if each.startswith("host-uds=")}
    return bool(sockets & _SHARES_SOCKETS)


def _shares(entry: JSON) -> bool:
    """Whether a module's sockets can be reached from outside, and it has no network whatever is requested."""
    return _shares_sockets(entry) and "network=none" in _arguments(entry)


def _mapping(info: Mapping[str, JSON]) -> UserMap | None:
    """Read the mapping: an engine that maps users names its data folder after the user and group that 0 becomes."""
    options = info.get("SecurityOptions")
    if not isinstance(options, list) or not any("name=userns" in str(option) for option in options):
        return None
    match = _ROOT_DIR.search(str(info.get("DockerRootDir", "")) + "/")
    return UserMap(int(match[1]), int(match[2])) if match else None
