"""Everything that confines a module's container, in one pure function.

The container has no network, no capabilities, and no writable file systems except a bounded /tmp, its socket directory
and, if the module needs it, the session's workspace. The system calls are our own allow-list: the engine's standard
profile permits io_uring, AF_VSOCK and ptrace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict

from docker.types import DriverConfig, LogConfig, Mount, Ulimit

from iact.sandbox.limits import (
    EGRESS_FOLDER,
    INSIDE,
    LOOK_FOLDER,
    PROGRAM_FOLDER,
    SITE_FOLDER,
    SOCKET_FOLDER,
    Limits,
    Place,
)

ROOT: Final = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "FSETID": 4, "KILL": 5, "SETGID": 6, "SETUID": 7}
"""The capabilities needed to install a package, with the kernel's numbers: over files and users, nothing else."""


class HostOptions(TypedDict):
    """Arguments of the engine client's `create_host_config`."""

    network_mode: str
    read_only: bool
    tmpfs: dict[str, str]
    mounts: list[Mount]
    mem_limit: int
    memswap_limit: int
    nano_cpus: int
    pids_limit: int
    ulimits: list[Ulimit]
    cap_drop: list[str]
    cap_add: list[str]
    storage_opt: dict[str, str] | None
    security_opt: list[str]
    ipc_mode: str
    pid_mode: str | None
    init: bool
    userns_mode: str
    runtime: str | None
    log_config: LogConfig


class Options(TypedDict):
    """Arguments of the engine client's `create_container`, besides image, command, name, labels and host."""

    user: str
    working_dir: str
    environment: dict[str, str]
    hostname: str


def options(place: Place, environment: Mapping[str, str]) -> Options:
    """The user, folder and environment of a container at `place`; `environment` is all that it gets from us."""
    return Options(
        user=place.user,
        working_dir="/workspace" if place.workspace is not None else "/tmp",
        environment=dict(environment),
        hostname="sandbox",
    )


def host_options(
    place: Place,
    limits: Limits,
    runtime: str = "",
    labels: Mapping[str, str] | None = None,
    *,
    init: bool = True,
) -> HostOptions:
    """The confinement of a container at `place`, within `limits`. `runtime`: the engine's name of it; "": its default.

    `labels`: for what the engine creates along with it. `init`: whether the engine's own first process is put before
    the module.
    """
    mounts = [
        Mount(INSIDE, str(place.code), type="bind", read_only=True),
    ]
    bounds = f"size={limits.tmp_size},nr_inodes={limits.tmp_files},mode=1777"
    own: dict[str, str] = {}
    if place.temporary is None:
        own["/tmp"] = f"rw,exec,nosuid,nodev,{bounds}"
    else:
        # Exists while a container has it mounted. Sharing it does not require root, and nothing of it reaches a disk.
        volume = {"type": "tmpfs", "device": "tmpfs", "o": f"nosuid,nodev,{bounds}"}
        mounts.append(
            Mount(
                "/tmp",
                volume_name(place.temporary),
                type="volume",
                read_only=place.right == "look",
                no_copy=True,
                labels=dict(labels or {}),
                driver_config=DriverConfig("local", volume),
            )
        )
    if place.right == "look":
        own[LOOK_FOLDER] = (
            f"rw,exec,nosuid,nodev,size={limits.look_size},nr_inodes={limits.look_files},mode=1777"
        )
    if place.shares_sockets:
        mounts.append(Mount(SOCKET_FOLDER, str(place.sockets), type="bind"))
    else:
        uid, _, gid = place.user.partition(":")
        own[SOCKET_FOLDER] = f"rw,noexec,nosuid,nodev,size=64k,nr_inodes=8,mode=0700,uid={uid},gid={gid}"
    if place.workspace is not None:
        mounts += _workspace(place.workspace, place.nested) if place.read_only else [_bind(place.workspace)]
    if place.egress is not None:
        mounts.append(Mount(EGRESS_FOLDER, str(place.egress), type="bind", read_only=True))
    if place.site is not None:
        mounts.append(Mount(SITE_FOLDER, str(place.site), type="bind", read_only=True))
    if place.program is not None:
        mounts.append(Mount(PROGRAM_FOLDER, str(place.program), type="bind", read_only=True))
    return HostOptions(
        network_mode="none",
        read_only=not place.root,
        tmpfs=own,
        mounts=mounts,
        mem_limit=limits.memory,
        memswap_limit=limits.memory,  # equal: no swap in addition
        nano_cpus=int(limits.cpus * 1e9),
        pids_limit=limits.processes,
        ulimits=[
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
            Ulimit(name="fsize", soft=limits.file_size, hard=limits.file_size),
            Ulimit(name="core", soft=0, hard=0),
            *_own_processes(limits),
        ],
        cap_drop=["ALL"],
        cap_add=list(ROOT) if place.root else [],
        storage_opt=None,
        security_opt=[
            "no-new-privileges",
            f"seccomp={seccomp_profile(meets_nobody=place.meets_nobody, root=place.root)}",
        ],
        ipc_mode="none",
        pid_mode=None,
        init=init,
        userns_mode="" if place.own_users else "host",
        runtime=runtime or None,
        log_config=LogConfig(type="json-file", config={"max-size": "1m", "max-file": "1"}),
    )


def _bind(folder: Path, inside: str = "/workspace") -> Mount:
    return Mount(inside, str(folder), type="bind")


def _workspace(folder: Path, nested: Sequence[Path]) -> list[Mount]:
    """Mount a workspace read-only, with everything that is mounted in it.

    An engine's bind mount includes the mounts below, and older engines leave those writable. So each is mounted
    separately.
    """
    mounts = []
    for each in (folder, *nested):
        inside = Path("/workspace") / each.relative_to(folder)
        one = Mount(str(inside), str(each), type="bind", read_only=True)
        mounts.append(one)
        one["BindOptions"] = {"NonRecursive": True}  # the client has no argument for it
    return mounts


def volume_name(temporary: Path) -> str:
    """The engine's name of the volume for shared temporary files."""
    return f"iact-{temporary.name.replace('@', '_')}"


def _own_processes(limits: Limits) -> list[Ulimit]:
    """A limit on processes, only with a kernel of its own: the host's kernel would count the user's other processes."""
    most = limits.own_processes
    return [Ulimit(name="nproc", soft=most, hard=most)] if most else []


@cache
def seccomp_profile(*, meets_nobody: bool = False, root: bool = False) -> str:
    """Our allow-list of system calls in the form of the engine's API: one line of JSON.

    `meets_nobody`: without the calls that reach a socket by its name, which a read-only mount does not prevent. `root`:
    for real root, which adds users.
    """
    profile = json.loads(Path(__file__).parents[1].joinpath("seccomp.json").read_text(encoding="ascii"))
    if meets_nobody:
        profile["syscalls"] = [row for row in map(_without_names, profile["syscalls"]) if row] + _UNNAMED
    if root:
        profile["syscalls"].append(_NO_AUDIT)
    return json.dumps(profile, separators=(",", ":"))


_AF_UNIX, _CONNECTED, _SOCKET_TYPE = 1, (1, 5), 0xF
"""Local sockets; the types of them that must be connected before they send."""


def _compared(index: int, value: int, mask: int = 0) -> dict[str, int | str]:
    test: dict[str, int | str] = {"index": index, "value": mask or value, "op": "SCMP_CMP_EQ"}
    return {**test, "op": "SCMP_CMP_MASKED_EQ", "valueTwo": value} if mask else test


_UNNAMED: Final = [
    {"names": ["sendto"], "action": "SCMP_ACT_ALLOW", "args": [_compared(4, 0)]},
    *(
        {
            "names": [name],
            "action": "SCMP_ACT_ALLOW",
            "args": [_compared(0, _AF_UNIX), _compared(1, each, _SOCKET_TYPE)],
        }
        for name in ("socket", "socketpair")
        for each in _CONNECTED
    ),
]


_NETLINK, _AUDIT, _NO_SUCH_PROTOCOL = 16, 9, 93
_NO_AUDIT: Final = {
    "names": ["socket"],
    "action": "SCMP_ACT_ERRNO",
    "errnoRet": _NO_SUCH_PROTOCOL,
    "args": [_compared(0, _NETLINK), _compared(2, _AUDIT)],
}
"""A program that adds a user reports that to the kernel's audit, and continues only if there is none."""


def _without_names(row: dict[str, Any]) -> dict[str, Any] | None:
    """A row of the list without the calls that `_UNNAMED` allows instead; None if the row becomes empty."""
    ours = row["names"] == ["socket"] and [test["value"] for test in row["args"]] == [_AF_UNIX]
    kept = [name for name in row["names"] if name not in ("connect", "sendto", "socketpair")]
    return {**row, "names": kept} if kept and not ours else None
