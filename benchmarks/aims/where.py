"""Where the processor time of a child agent goes: prints the shares by package of the source as JSON.

    python where.py COUNT

A timer of processor time interrupts the process and notes which package of iact is running. It is the package of the
innermost frame in a file of iact, so that the time of the standard library counts for its caller.
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
"""New objects between two runs of the cycle collector, as in `iact/__main__.py`."""

_EVERY: Final = 0.001
_CORE: Final = f"{os.sep}core{os.sep}"


def room(frame: FrameType | None) -> str:
    """The package of the innermost frame in a file of iact. Time outside all of them belongs to the event loop."""
    while frame is not None:
        name = frame.f_code.co_filename
        if _CORE in name and "site-packages" not in name:
            return f"core/{name.rpartition(_CORE)[2].partition(os.sep)[0]}"
        frame = frame.f_back
    return "event loop and model"


def main(count: int) -> dict[str, float]:
    """Shares of the processor time of `count` children."""
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
