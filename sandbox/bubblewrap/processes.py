"""Stops a process and all that came of it, where no control group does that at once."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PATIENCE = 0.1
"""Seconds that the kernel has to let those stand still that were told to."""


def stop_all(first: int) -> None:
    """Send SIGSTOP to process `first` and all that descends from it. Blocks, for as long as it takes to read /proc.

    What forks while we look is found by the next look; what stands still forks no more, so looking ends.
    """
    stopped: set[int] = set()
    while found := _descendants(first) - stopped:
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGSTOP)
        until = time.monotonic() + _PATIENCE
        while any(map(_runs, found)) and time.monotonic() < until:  # the other processor has yet to be told
            time.sleep(0.001)
        stopped |= found


def _runs(process: int) -> bool:
    try:
        return _fields(process)[0] not in (b"T", b"t", b"Z", b"X")
    except OSError:
        return False


def _descendants(first: int) -> set[int]:
    """`first` and what descends from it. In a name space, what loses its parent gets the space's first process."""
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
    """State, parent and so on. The name before them, in parentheses, may hold anything (proc_pid_stat(5))."""
    return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
