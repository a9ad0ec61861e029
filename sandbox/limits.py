"""The bounds of one module, and where it meets the host: what every backend is told, and holds it to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from iact.core.ports import Right

_MIB = 1 << 20

INSIDE = "/module"
"""Where a module's folder is inside."""
SOCKET_FOLDER = "/run/iact"
"""The socket directory, as seen inside."""
EGRESS_FOLDER = "/run/egress"
"""The folder of the egress proxy's socket, as seen inside."""
SITE_FOLDER = "/run/site"
"""The module's own Python packages, as seen inside."""
PROGRAM_FOLDER = "/run/program"
"""The packages of a program that the module runs beside itself (an MCP server), as seen inside."""
LOOK_FOLDER = "/run/look"
"""All that a viewer may write: its own temporary files, as seen inside."""
PROXY = "http://127.0.0.1:3128"
"""Where the SDK offers the egress proxy inside."""


READ_ONLY = (
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/pressure", "/dev", "/dev/mqueue",
)  # fmt: skip
"""What can only be read inside: the engine's own list, and what user 0 would find writable of the devices' folder."""
MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
    "/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/sys/firmware", "/sys/devices/virtual/powercap",
    "/proc/kallsyms", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
)  # fmt: skip
"""What nobody sees inside: the engine's own list, and what tells of the kernel and its pages to user 0."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one container. Sizes in bytes; `cpus` in cores; `tmp_files`: how many files /tmp may hold."""

    memory: int = 512 * _MIB
    cpus: float = 1.0
    processes: int = 256
    open_files: int = 1024
    file_size: int = 1024 * _MIB
    tmp_size: int = 256 * _MIB
    tmp_files: int = 32_768
    look_size: int = 64 * _MIB
    """Of what a viewer may write at all."""
    look_files: int = 8_192
    system_size: int = 4096 * _MIB
    """Of what real root may write to its system, outside of the workspace."""
    most_memory: int = 1536 * _MIB
    """What a module that we ship gets if it asks for more than `memory`."""
    own_processes: int = 0
    """What a kernel of the container's own holds it to, if it has one; 0: it has none."""


def within(most: Limits, *, memory: int, cpus: float, processes: int, shipped: bool = False) -> Limits:
    """`most`, lowered to what is asked for: bytes, cores, a number; 0 asks for nothing in particular."""
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
    right: Right = "work"
    """Whether it is the viewer or the worker; a viewer's temporary files are read only, too."""
    read_only: bool = False
    """The workspace can be read only."""
    nested: Sequence[Path] = ()
    """What is mounted below the workspace, if that can be read only."""
    temporary: Path | None = None
    """Stands for the temporary files that viewer and worker have in common; None if it has its own."""
    egress: Path | None = None
    """The folder with the egress proxy's socket; None for a module that gets no way out."""
    site: Path | None = None
    """The folder with the module's own Python packages; None if it has none."""
    program: Path | None = None
    """The folder with the packages of a program that it runs beside itself; None if there is none."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What its process is told, by the names of environment variables."""
    shares_sockets: bool = True
    """Whether `sockets` is mounted; else the container has a folder of its own for them."""
    root: bool = False
    """It is real root, on a system that it may write to: of its own users, or to a kernel of its own."""
    own_users: bool = True
    """Whether this container's users are mapped, where the engine maps any; otherwise they are the host's."""

    @property
    def meets_nobody(self) -> bool:
        """Whether it connects to nothing: a viewer could reach a socket of the worker's else, without a way out."""
        return self.right == "look" and self.egress is None


def environment(place: Place, base: Mapping[str, str]) -> dict[str, str]:
    """All that a module's container gets from us as environment, beyond what its image has (`base`)."""
    given = {**place.secrets, "IACT_RIGHT": place.right}
    if place.right == "look":
        given["TMPDIR"] = LOOK_FOLDER
    if place.site is not None:  # behind the SDK's own, which a module's packages must not replace
        given["PYTHONPATH"] = f"{base['PYTHONPATH']}:{SITE_FOLDER}"
    if place.egress is not None:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
            given |= {name: PROXY, name.lower(): PROXY}
    return given
