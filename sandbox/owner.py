"""Identifies a container: its session and agent, its data directory, and the process that owns it.

The process makes it possible to recognise containers left behind by dead processes. A process number alone is not
enough, because numbers are reused; together with the start time it is unique.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from iact.core.ports import Right

SESSION = "iact.session"
MODULE = "iact.module"
RIGHT = "iact.right"
AGENT = "iact.agent"
OWNER = "iact.owner"
PID = "iact.pid"
STARTED = "iact.started"


@dataclass(frozen=True, slots=True)
class Key:
    """Identifies an instance. `right`: whether it is the viewer or the worker; `agent`: the only agent served, or "".

    `copy`: the copy of the session's workspace, or the layer over it, that it works in; "" for the workspace itself.
    """

    session: str
    name: str
    right: Right = "work"
    agent: str = ""
    copy: str = ""

    @property
    def whose(self) -> str:
        """Agent and copy in one string."""
        return f"{self.agent}@{self.copy}" if self.copy else self.agent


def data_digest(data: Path) -> str:
    """Twelve hex digits that identify the data directory, for labels and names."""
    return hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Process:
    """One process. `started`: clock ticks from boot to its start, preceded by the boot's id; "" if it is gone."""

    pid: int
    started: str

    @classmethod
    def current(cls) -> Process:
        """The current process."""
        pid = os.getpid()
        return cls(pid, start_time(pid))

    @property
    def alive(self) -> bool:
        """Whether it still runs (a zombie does not)."""
        return bool(self.started) and start_time(self.pid) == self.started

    def __str__(self) -> str:
        return f"{self.pid}-{self.started}"

    @classmethod
    def parse(cls, text: str) -> Process | None:
        """The inverse of `str()`; None if `text` is not valid."""
        pid, _, started = text.partition("-")
        return cls(int(pid), started) if pid.isascii() and pid.isdigit() and started else None


def start_time(pid: int) -> str:
    """When process `pid` started, as an opaque text without "-"; "" if there is no such process."""
    try:
        # The name, in parentheses, may contain anything, so count from its end (proc_pid_stat(5), fields 3 and 22).
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else f"{boot[:8]}.{int(fields[19])}"


def labels(process: Process, key: Key, *, data: Path) -> dict[str, str]:
    """The labels of one container."""
    return {
        SESSION: key.session,
        MODULE: key.name,
        RIGHT: key.right,
        AGENT: key.agent,
        **belongs(process, data=data),
    }


def belongs(process: Process, *, data: Path) -> dict[str, str]:
    """The labels by which leftovers of a dead process are recognised."""
    return {OWNER: data_digest(data), PID: str(process.pid), STARTED: process.started}


def process_of(labels: Mapping[str, str]) -> Process | None:
    """The process that a container with these `labels` belongs to; None if they don't name one."""
    return Process.parse(f"{labels.get(PID, '')}-{labels.get(STARTED, '')}")
