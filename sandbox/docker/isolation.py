"""What an engine offers beyond its containers, and how ours use it: another kernel, other users.

gVisor puts a kernel of its own between a module and the host's; user-name-space remapping makes user 0 inside
somebody without rights outside. Neither takes a wall away: everything in `limits` holds as well. All of this is
decided from the engine's own answer about itself.
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
"""The choice of a runtime that leaves it to us."""
_LEAST_PROCESSES: Final = 1500
"""gVisor's own threads count against the engine's limit; its kernel holds the module to the real one."""
_SHARES_SOCKETS: Final = frozenset({"create", "all"})
_DUE: Final = {"NoNewPrivs": "1", "Seccomp": "2"}
_ROOT_DIR: Final = re.compile(r"/(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class UserMap:
    """Who user 0 of a container is outside. `first`: its user, `group`: its group; `count` of each follow."""

    first: int
    group: int
    count: int = 65_536

    def inside(self, uid: int, gid: int) -> tuple[int, int] | None:
        """Who `uid`:`gid` of the host is inside; None for somebody who is not."""
        user, group = uid - self.first, gid - self.group
        return (user, group) if 0 <= user < self.count and 0 <= group < self.count else None


@dataclass(frozen=True, slots=True)
class Isolation:
    """How modules are kept apart here. `runtime`: the engine's name of it, "" for its default."""

    runtime: str = ""
    gvisor: bool = False
    mapped: UserMap | None = None
    shares_sockets: bool = True
    """Whether a module's sockets can be reached from outside; else `stdio` leads to them."""

    def root(self, *, ours: bool) -> bool:
        """Whether root inside may be real. `ours`: whether we are root, and can let it own its workspace."""
        return ours and self.shares_sockets and (self.gvisor or self.mapped is not None)

    def bounds(self, bounds: Limits) -> Limits:
        """`bounds`, as the engine must be told them."""
        if not self.gvisor:
            return bounds
        return replace(
            bounds, processes=max(bounds.processes, _LEAST_PROCESSES), own_processes=bounds.processes
        )


def of(info: Mapping[str, JSON], wanted: str = AUTO) -> Isolation:
    """What to use of an engine that says `info` of itself. `wanted`: the name of a runtime, or `AUTO`.

    Left to us, a gVisor that is registered so that it shares sockets is taken: nobody registers it so by accident.

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
    # gVisor keeps users of its own; its file server, were it mapped, could not pass the folders that lead to ours.
    entry = found.get(name)
    shared = _shares_sockets(entry) if gvisor else not (_virtual(entry) or _desktop(info))
    return Isolation(name, gvisor, None if gvisor else _mapping(info), shared)


def gaps(status: str, rights: Iterable[int] = ()) -> list[str]:
    """What a process keeps that it should have lost, from its `/proc/PID/status`. `rights`: capabilities that it may have."""
    may = sum(1 << number for number in rights)
    found = {name: value.strip() for name, _, value in (line.partition(":") for line in status.splitlines())}
    kept = [name for name in ("CapEff", "CapPrm", "CapBnd", "CapInh") if int(found.get(name, "0"), 16) & ~may]
    return kept + [name for name, due in _DUE.items() if found.get(name, due) != due]


def without_gvisor(info: Mapping[str, JSON]) -> str:
    """Why gVisor is not used of itself on an engine that says `info`: for people."""
    runtimes = info.get("Runtimes")
    if isinstance(runtimes, dict) and any(map(_gvisor, runtimes.values())):
        return "registered, but without --network=none and --host-uds=all"
    return "no"


def seat(place: Place, mapped: UserMap | None, uid: int, gid: int, *, root: bool) -> tuple[Place, int, int]:
    """`place` on an engine that maps users as `mapped` says, and as whom the module runs, seen from outside.

    `uid`, `gid`: as whom it would run otherwise, the owner of its workspace; `root`: whether we are. What belongs to
    somebody whom the engine does not map can only be written to by that user, and a user of ours can give nothing
    away; there the container keeps the host's users, and is nobody but that user.
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
    """Let all that is root's in `folder` belong to `uid`:`gid`; follows no link. Blocks."""
    for _, folders, files, here in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            with suppress(FileNotFoundError):
                if os.stat(name, dir_fd=here, follow_symlinks=False).st_uid == 0:
                    os.chown(name, uid, gid, dir_fd=here, follow_symlinks=False)


def _gvisor(entry: JSON) -> bool:
    return isinstance(entry, dict) and PurePath(str(entry.get("path", ""))).name == "runsc"


def _virtual(entry: JSON) -> bool:
    """Whether its containers are virtual machines, whose file systems pass no socket on."""
    return isinstance(entry, dict) and "kata" in f"{entry.get('path')} {entry.get('runtimeType')}"


def _desktop(info: Mapping[str, JSON]) -> bool:
    """Whether all of the engine is in a virtual machine that shares folders with us, and no sockets."""
    return str(info.get("OperatingSystem", "")).startswith("Docker Desktop")


def _arguments(entry: JSON) -> list[str]:
    given = entry.get("runtimeArgs") if isinstance(entry, dict) else None
    return [str(each).lstrip("-") for each in given] if isinstance(given, list) else []


def _shares_sockets(entry: JSON) -> bool:
    sockets = {each.partition("=")[2] for each in _arguments(entry) if each.startswith("host-uds=")}
    return bool(sockets & _SHARES_SOCKETS)


def _shares(entry: JSON) -> bool:
    """Whether a module's sockets can be reached from outside, and it has no network whatever it is asked for."""
    return _shares_sockets(entry) and "network=none" in _arguments(entry)


def _mapping(info: Mapping[str, JSON]) -> UserMap | None:
    """An engine that maps users keeps its data in a folder named after the user and the group that 0 becomes."""
    options = info.get("SecurityOptions")
    if not isinstance(options, list) or not any("name=userns" in str(option) for option in options):
        return None
    match = _ROOT_DIR.search(str(info.get("DockerRootDir", "")) + "/")
    return UserMap(int(match[1]), int(match[2])) if match else None
