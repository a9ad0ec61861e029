"""Where the processor time of a child agent goes: prints shares by room of the source as JSON.

    python where.py COUNT

A timer of processor time interrupts the process and notes which room of ours is at work: that of the innermost frame
that is a file of ours, so that what the standard library does counts for whoever called it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Final

sys.path.insert(0, os.getcwd())

from benchmarks.tree.measure import report
from benchmarks.tree.ours import children

_FIRST: Final = 50_000
"""New objects between two looks for cycles, as in `iact/__main__.py`."""

_EVERY: Final = 0.001
_CORE: Final = f"{os.sep}core{os.sep}"


def room(frame: FrameType | None) -> str:
    """The room of the innermost file of ours; what belongs to none is the event loop's."""
    while frame is not None:
        name = frame.f_code.co_filename
        if _CORE in name and "site-packages" not in name:
            return f"core/{name.rpartition(_CORE)[2].partition(os.sep)[0]}"
        frame = frame.f_back
    return "event loop and model"


def main(count: int) -> dict[str, float]:
    """Shares of the processor time of so many children."""
    found: Counter[str] = Counter()
    signal.signal(signal.SIGPROF, lambda number, frame: found.update([room(frame)]))
    gc.set_threshold(_FIRST)
    signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(children(Path(folder), count))
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {name: times / found.total() for name, times in found.items()}


if __name__ == "__main__":
    report(main(int(sys.argv[1])))
