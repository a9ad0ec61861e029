"""Detects whether the kernel killed a process here for lack of memory."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_COUNTERS: Final = (Path("/sys/fs/cgroup/memory.events"), Path("/sys/fs/cgroup/memory/memory.oom_control"))
_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def kills(counters: tuple[Path, ...] = _COUNTERS) -> int | None:
    """How many processes the kernel has killed in this control group, or None if that can't be read."""
    for path in counters:
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except (OSError, UnicodeDecodeError):
            continue

        for line in lines:
            name, _, count = line.partition(" ")
            if name == "oom_kill" and count.isdigit():
                return int(count)
    return None


def limit(limits: tuple[Path, ...] = _LIMITS) -> int | None:
    """The memory limit in bytes, or None if there is no limit or it can't be read."""
    for path in limits:
        try:
            text = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None
