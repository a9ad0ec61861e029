"""Ends orphaned processes of a program, in a sandbox where all processes belong to the module.

A program can outlive its supervisor by killing it, and can also clear its environment. It cannot leave the name space
of this module's processes. So a process there is a stray unless it is the server, an ancestor of the server, was placed
there from outside, or descends from a process that is spared.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection
from typing import Final

RIGHT: Final = "IACT_RIGHT"
"""The environment variable by which a sandbox declares what its module may do: "look" or "work"."""
_WITHIN: Final = 2.0
"""Seconds after which it gives up on processes that can't be killed."""
_BEGAN: Final = 19
"""The index of the start time among the fields of a process's `stat`, counted from its state."""


def contained() -> bool:
    """Whether all processes here belong to the module: this is a sandbox, right below its first process."""
    is_right_below = os.getpid() == 1 or os.getppid() in (0, 1)
    return RIGHT in os.environ and is_right_below


def only_looks() -> bool:
    """Whether this instance can only read, so that nothing of a call may outlive it."""
    return os.environ.get(RIGHT) == "look"


def now() -> int:
    """The current time in kernel ticks, on the scale of process start times."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def end_strays(spared: Collection[int] = (), *, since: int = 0) -> bool:
    """Kill every stray and return whether none is left. `spared`: process ids to keep, with all their descendants.

    `since`: only processes that started at this time or later (`now`). Does nothing outside a sandbox, where the other
    processes do not belong to the module.
    """
    if not contained():
        return True

    deadline = time.monotonic() + _WITHIN
    stopped: set[int] = set()
    while strays := _strays(spared, since):
        # All are stopped before any is killed, so that none can start others meanwhile.
        fresh = strays - stopped
        if fresh:
            _send(fresh, signal.SIGSTOP)
            stopped |= fresh
        else:
            _send(strays, signal.SIGKILL)
            time.sleep(0.001)
        if time.monotonic() > deadline:
            return False
    return True


def _send(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _strays(spared: Collection[int], since: int) -> set[int]:
    processes = _processes()
    parents = {pid: parent for pid, (parent, _) in processes.items()}

    # This process, those above it, and those that are spared.
    staying = {os.getpid(), *spared}
    above = os.getpid()
    while above := parents.get(above, 0):
        staying.add(above)

    candidates = [pid for pid, (_, began) in processes.items() if began >= since]
    return {pid for pid in candidates if not _stays(pid, parents, staying, set(spared))}


def _stays(pid: int, parents: dict[int, int], staying: set[int], roots: set[int]) -> bool:
    """Whether a process stays: it is to, was placed here from outside (no parent here), or descends from a spared one."""
    if pid in staying or not parents[pid]:
        return True

    seen: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in seen:
        if pid in roots:
            return True
        seen.add(pid)
    return False


def _processes() -> dict[int, tuple[int, int]]:
    """The parent (0 if it is not here) and the start time of each process here, without those that have ended."""
    processes: dict[int, tuple[int, int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:
            # Behind the program's name, which may contain anything.
            fields = file.read().rpartition(b")")[2].split()
            if fields[0] not in (b"Z", b"X"):
                processes[int(entry)] = int(fields[1]), int(fields[_BEGAN])
    return processes
