"""Everything that confines a module's process under bubblewrap: arguments, made by pure functions.

The same isolation as a container's, as far as possible without an engine: no network, no capabilities, a read-only
system, the same system calls. Only `cgroups` bounds what all processes use together; the limits here bound a single
process.
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
"""How many times its memory a process may reserve in addresses. Threads and libraries reserve more than they use."""
_FIXED: Final = (
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr", "/proc/pressure",
)  # fmt: skip
"""Paths that are read-only inside. They check only the user's number: root could write to them without capabilities."""
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

    `temporary`: a bounded file system for its temporary files; without one, only their size is bounded.
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
    """The command line that runs inside: `module`, after the programs that set its limits and, if needed, its user.

    `together`: a control group bounds the memory of all its processes, so that none needs its own bound. The bound on
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
    """Whether it keeps our user, as nobody in its own user name space; otherwise root switches to another user."""
    return place.user.partition(":")[0] == str(os.geteuid())


def _rights(place: Place) -> Sequence[str]:
    if _mapped(place):
        return ("--unshare-user", "--uid", NOBODY, "--gid", NOBODY)
    needed = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
    return [part for name in needed for part in ("--cap-add", name)]


def _become(place: Place) -> Sequence[str]:
    """Drop root for good. Done inside, since only root can traverse the folders that lead to the mounts."""
    if _mapped(place):
        return ()
    uid, _, gid = place.user.partition(":")
    none = ("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all")
    return ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", *none, "--")


def _masks() -> list[str]:
    """Hide files that show the kernel, and make those that control it read-only: a user of ours may own them."""
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
