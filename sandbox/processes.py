"""Stops a process and all that came of it, where no control group does that at once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def stop_all(first: int) -> None:
    """Send SIGSTOP to process `first` and all that descends from it. Blocks, for as long as it takes to read /proc.

    What forks while we look is found by the next look; what is stopped forks no more, so looking ends.
    """
    stopped: set[int] = set()
    while True:
        found = _descendants(first) - stopped
        if not found:
            return
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGSTOP)
        stopped |= found


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
                # The name, in parentheses, may hold anything, so count from its end (proc_pid_stat(5)).
                fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                pairs.append((int(entry), int(fields[1])))
    return pairs
