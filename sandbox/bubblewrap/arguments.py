"""Everything that confines a module's process under bubblewrap: arguments, made by pure functions.

The same walls as a container's, as far as they can be had without an engine: no network, no capability, a
read-only system, the same system calls. What a process group may use together is bounded by `cgroups` alone,
and what a single process may by the limits here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from iact.sandbox.limits import (
    EGRESS_FOLDER,
    INSIDE,
    LOOK_FOLDER,
    MASKED,
    PROGRAM_FOLDER,
    SITE_FOLDER,
    SOCKET_FOLDER,
    Limits,
    Place,
)

NOBODY: Final = "65534"
_ADDRESSES: Final = 4
"""How many times its memory a process may reserve in addresses: threads and libraries reserve far more than they use."""
_FIXED: Final = (
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/pressure",
)  # fmt: skip
"""What can only be read inside. Root is told by its number there, so it could write to these without any capability."""
_ALWAYS: Final = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"),
)


def arguments(
    place: Place,
    tree: Path,
    bounds: Limits,
    environment: Mapping[str, str],
    temporary: Path | None = None,
) -> list[str]:
    """The arguments of `bwrap` before the command. `tree`: the base system; `environment`: all that it gets.

    `temporary`: a bounded file system for its temporary files; without one, their size alone is bounded.
    """
    return [
        *_ALWAYS,
        *_rights(place),
        *(part for name, value in environment.items() for part in ("--setenv", name, value)),
        *("--ro-bind", str(tree), "/", "--proc", "/proc"),
        *_masks(),
        *("--dev", "/dev", "--remount-ro", "/dev"),
        *_temporary(place, bounds, temporary),
        *("--ro-bind", str(place.code), INSIDE, "--bind", str(place.sockets), SOCKET_FOLDER),
        *_given(place),
        *("--chdir", "/workspace" if place.workspace is not None else "/tmp"),
    ]


def command(place: Place, bounds: Limits, module: Sequence[str], *, together: bool) -> list[str]:
    """What runs inside: `module`, behind the programs that set its limits and, where needed, its user.

    `together`: a control group bounds the memory of all its processes, so that none needs a bound of its own. That of
    addresses would keep a browser from starting, which reserves far more of them than there is memory.
    """
    limits = {
        "core": 0,
        "nofile": bounds.open_files,
        "fsize": bounds.file_size,
        "nproc": bounds.processes,
    }
    if not together:
        limits |= {"data": bounds.memory, "as": bounds.memory * _ADDRESSES}
    bounded = ["prlimit", *(f"--{name}={value}:{value}" for name, value in limits.items()), "--"]
    return [*_become(place), *bounded, *module]


def _mapped(place: Place) -> bool:
    """Whether it keeps our user, as nobody in a user name space of its own; else root takes another user inside."""
    return place.user.partition(":")[0] == str(os.geteuid())


def _rights(place: Place) -> Sequence[str]:
    if _mapped(place):
        return ("--unshare-user", "--uid", NOBODY, "--gid", NOBODY)
    needed = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return [part for name in needed for part in ("--cap-add", name)]


def _become(place: Place) -> Sequence[str]:
    """Let go of root, for good. Done inside, since only root may pass the folders that lead to what is mounted."""
    if _mapped(place):
        return ()
    uid, _, gid = place.user.partition(":")
    none = ("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all")
    return ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *none, "--")


def _masks() -> list[str]:
    """Hide what tells of the kernel, and make unwritable what steers it: a user of ours may own the file there."""
    masked: list[str] = []
    for path in MASKED:
        if path.startswith("/proc/") and Path(path).exists():
            folder = Path(path).is_dir()
            masked += ("--tmpfs", path, "--remount-ro", path) if folder else ("--ro-bind", "/dev/null", path)
    return masked + [part for path in _FIXED if Path(path).exists() for part in ("--ro-bind", path, path)]


def _temporary(place: Place, bounds: Limits, temporary: Path | None) -> Sequence[str]:
    if temporary is not None and place.right == "look":
        look = ("--perms", "1777", "--size", str(bounds.look_size), "--tmpfs", LOOK_FOLDER)
        return ("--ro-bind", str(temporary), "/tmp", *look)
    if temporary is not None:
        return ("--bind", str(temporary), "/tmp")
    return ("--perms", "1777", "--size", str(bounds.tmp_size), "--tmpfs", "/tmp")


def _given(place: Place) -> list[str]:
    workspace = "--ro-bind" if place.read_only else "--bind"
    mounts = [
        (workspace, place.workspace, "/workspace"),
        ("--ro-bind", place.egress, EGRESS_FOLDER),
        ("--ro-bind", place.site, SITE_FOLDER),
        ("--ro-bind", place.program, PROGRAM_FOLDER),
    ]
    return [
        part for how, source, inside in mounts if source is not None for part in (how, str(source), inside)
    ]
