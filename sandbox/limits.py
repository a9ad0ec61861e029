"""The bounds of one module, and where it meets the host. Every backend enforces them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

_MIB = 1 << 20

INSIDE = "/module"
"""A module's folder, as seen inside."""
SOCKET_FOLDER = "/run/iact"
"""The socket directory, as seen inside."""
EGRESS_FOLDER = "/run/egress"
"""The folder of the egress proxy's socket, as seen inside."""
SITE_FOLDER = "/run/site"
"""The module's own Python packages, as seen inside."""
PROGRAM_FOLDER = "/run/program"
"""The packages of the separate program that the module runs (an MCP server), as seen inside."""
LOOK_FOLDER = "/run/look"
"""The only folder that a viewer may write to: its own temporary files, as seen inside."""
PROXY = "http://127.0.0.1:3128"
"""The address at which the SDK offers the egress proxy inside."""
NEAR = "localhost,127.0.0.1,::1"
"""What is reached without the proxy: programs of the same module."""


READ_ONLY = (
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/pressure", "/dev", "/dev/mqueue",
)  # fmt: skip
"""Paths that are read-only inside: the engine's own list, and those of the device folder that user 0 could write to."""
MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
    "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/firmware", "/sys/devices/virtual/powercap",
    "/proc/kallsyms", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
)  # fmt: skip
"""Paths that are hidden inside: the engine's own list, and those that show the kernel and its pages to user 0."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one container. Sizes in bytes; `cpus` in cores; `tmp_files`: how many files /tmp may contain."""

    memory: int = 512 * _MIB
    cpus: float = 1.0
    processes: int = 256
    open_files: int = 1024
    file_size: int = 1024 * _MIB
    tmp_size: int = 256 * _MIB
    tmp_files: int = 32_768
    look_size: int = 64 * _MIB
    """The most that a viewer may write."""
    look_files: int = 8_192
    system_size: int = 4096 * _MIB
    """The most that real root may write to its system, outside of the workspace."""
    most_memory: int = 1536 * _MIB
    """The maximum for a shipped module that asks for more than `memory`."""
    own_processes: int = 0
    """The limit that a container's own kernel enforces, if it has one; 0: it has none."""


def within(most: Limits, *, memory: int, cpus: float, processes: int, shipped: bool = False) -> Limits:
    """`most`, lowered to the given bytes, cores and number; 0 means no preference."""
    largest = max(most.memory, most.most_memory) if shipped else most.memory
    return replace(
        most,
        memory=min(largest, memory or most.memory),
        cpus=min(most.cpus, cpus or most.cpus),
        processes=min(most.processes, processes or most.processes),
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a module's container meets the host. `user`: numeric "uid:gid"; `workspace`: None if it gets none."""

    code: Path
    sockets: Path
    workspace: Path | None
    user: str
    right: Literal["look", "work"] = "work"
    """Whether it is the viewer or the worker. A viewer's shared temporary files are read-only as well."""
    layer: bool = False
    """Whether it is a viewer whose workspace is a layer that is thrown away, so that it may write there."""
    read_only: bool = False
    """The workspace is read-only."""
    nested: Sequence[Path] = ()
    """Mount points below the workspace, if that is read-only."""
    temporary: Path | None = None
    """The temporary files that viewer and worker share; None if it has its own."""
    egress: Path | None = None
    """The folder with the egress proxy's socket; None for a module without a way out."""
    site: Path | None = None
    """The folder with the module's own Python packages; None if it has none."""
    program: Path | None = None
    """The folder with the packages of the separate program that it runs; None if there is none."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The secrets for its process, by the names of environment variables."""
    shares_sockets: bool = True
    """Whether `sockets` is mounted; otherwise the container has its own folder for them."""
    root: bool = False
    """It is real root on a writable system, either of mapped users or of a kernel of its own."""
    own_users: bool = True
    """Whether this container's users are mapped, if the engine maps users; otherwise they are the host's."""

    @property
    def meets_nobody(self) -> bool:
        """Whether it may connect to nothing. A viewer without a way out could otherwise reach the worker's sockets."""
        return self.right == "look" and self.egress is None


def environment(place: Place, base: Mapping[str, str]) -> dict[str, str]:
    """The environment that a module's container gets from us, in addition to its image's (`base`)."""
    given = {**place.secrets, "IACT_RIGHT": place.right}
    if place.right == "look":
        given["TMPDIR"] = LOOK_FOLDER
    if place.layer:
        given["IACT_LAYER"] = "1"
    if place.site is not None:  # after the SDK's own path: a module's packages must not replace the SDK's
        given["PYTHONPATH"] = f"{base['PYTHONPATH']}:{SITE_FOLDER}"
    if place.egress is not None:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
            given |= {name: PROXY, name.lower(): PROXY}
        given |= {"NO_PROXY": NEAR, "no_proxy": NEAR}
    return given
