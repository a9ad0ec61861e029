"""Stops a process and all its descendants, where no control group does that at once."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PATIENCE = 0.1
"""Seconds for the kernel to stop the processes that were signalled."""


def stop_all(first: int) -> None:
    """Send SIGSTOP to process `first` and all its descendants. Blocks, for as long as it takes to read /proc.

    A process that forks meanwhile has its child found in the next round. Stopped processes no longer fork, so the
    rounds end.
    """
    stopped: set[int] = set()
    while found := _descendants(first) - stopped:
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGSTOP)
        until = time.monotonic() + _PATIENCE
        # Another processor may not have seen the signal yet.
        while any(map(_runs, found)) and time.monotonic() < until:
            time.sleep(0.001)
        stopped |= found


def _runs(process: int) -> bool:
    try:
        return _fields(process)[0] not in (b"T", b"t", b"Z", b"X")
    except OSError:
        return False


def _descendants(first: int) -> set[int]:
    """`first` and its descendants. In a name space, orphans become children of its first process."""
    parents = dict(_parents())
    found = {first}
    while True:
        more = {process for process, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def _parents() -> list[tuple[int, int]]:
    pairs = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                pairs.append((int(entry), int(_fields(int(entry))[1])))
    return pairs


def _fields(process: int) -> list[bytes]:
    """State, parent and so on. The name before them, in parentheses, may contain anything (proc_pid_stat(5))."""
    return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
