"""Identifies a container: its session and agent, its data directory, and the host that claims it.

A host claims what it starts by a random name, and by a file of that name in the data directory, which it keeps locked
for as long as it lives. The kernel drops the lock with the process, however that ends. So another process sees whether
the claim still holds, also from another PID namespace, where process numbers mean nothing.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.ports import Right

SESSION = "iact.session"
MODULE = "iact.module"
RIGHT = "iact.right"
AGENT = "iact.agent"
OWNER = "iact.owner"
CLAIM = "iact.claim"
START = "iact.start"
PID = "iact.pid"
STARTED = "iact.started"

CLAIMS: Final = "claims"
"""The folder of claims in a data directory."""
_NAME: Final = re.compile(r"[0-9a-f]{32}")
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP)
"""What a file system without locks answers."""


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
        """Whether it still runs in this PID namespace (a zombie does not)."""
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


class Claim:
    """What one host starts in the data directory `data` is its own, from the first use of the name to `release`."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._name = ""
        self._descriptor = -1
        self._taking = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the claim, which holds from now on. Without "@". Blocks when it is first used. From any thread.

        Raises:
            OSError: the data directory can't be written to.
        """
        with self._taking:
            if not self._name:
                self._take(secrets.token_hex(16))
            return self._name

    def release(self) -> None:
        """Give the claim up: whatever is still there under this name may be removed by anybody. May be called twice."""
        if self._descriptor < 0:
            return
        with suppress(OSError):
            _file(self._data, self._name).unlink()
        os.close(self._descriptor)
        self._descriptor = -1

    def abandon(self) -> None:
        """Give the claim up like a process that was killed: what it names is left, and is removed by the next host."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _take(self, name: str) -> None:
        file = _file(self._data, name)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

        # Locked before it has its name, so that nobody sees it unlocked.
        draft = file.with_name(f".{name}")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(file)
        except OSError as error:
            os.close(descriptor)
            draft.unlink(missing_ok=True)
            if error.errno not in _NO_LOCKS:
                raise
            self._name = str(
                Process.current()
            )  # without locks, a process is known by its number and its start
            return
        self._name, self._descriptor = name, descriptor


def holds(data: Path, name: str) -> bool | None:
    """Whether the claim `name` in the data directory `data` still holds. None: nothing is known of it. Blocks."""
    if not _NAME.fullmatch(name):
        process = Process.parse(name)
        return process.alive if process is not None else None
    try:
        descriptor = os.open(_file(data, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        return True  # it can't be looked at, so it is left alone
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def given_up(data: Path) -> list[str]:
    """The claims in the data directory `data` that nobody holds any more. Blocks."""
    try:
        names = [entry.name for entry in (data / CLAIMS).iterdir()]
    except OSError:
        return []
    return [name for name in names if _NAME.fullmatch(name) and holds(data, name) is False]


def forget_all(data: Path) -> None:
    """Remove the claims that nobody holds any more, after everything that they name. Blocks."""
    for name in given_up(data):
        with suppress(OSError):
            _file(data, name).unlink()


def _file(data: Path, name: str) -> Path:
    return data / CLAIMS / name


def labels(claim: str, key: Key, start: str, *, data: Path) -> dict[str, str]:
    """The labels of one container. `start`: what no other start is called, as names of containers are used again."""
    return {
        START: start,
        SESSION: key.session,
        MODULE: key.name,
        RIGHT: key.right,
        AGENT: key.agent,
        **belongs(claim, data=data),
    }


def belongs(claim: str, *, data: Path) -> dict[str, str]:
    """The labels by which leftovers of a dead host are recognised."""
    process = Process.current()
    return {OWNER: data_digest(data), CLAIM: claim, PID: str(process.pid), STARTED: process.started}


def process_of(labels: Mapping[str, str]) -> Process | None:
    """The process that a container with these `labels` belongs to; None if they don't name one."""
    return Process.parse(f"{labels.get(PID, '')}-{labels.get(STARTED, '')}")


def gone(data: Path, claim: str, process: Process | None) -> bool | None:
    """Whether the host is gone that has the claim `claim` in the data directory `data` and is in `process`. Blocks.

    A claim of which nothing is known may belong to a data directory that another mount namespace has at the same path.
    Then the process decides, as it does for what earlier versions started. None: nothing is known of that either.
    """
    held = holds(data, claim)
    if held is not None:
        return not held
    return not process.alive if process is not None else None


def left_behind(labels: Mapping[str, str], data: Path) -> bool:
    """Whether the host is gone that something with these `labels` belongs to, in the data directory `data`. Blocks."""
    return gone(data, labels.get(CLAIM, ""), process_of(labels)) is not False
