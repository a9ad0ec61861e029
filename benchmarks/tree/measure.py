"""How every process of this benchmark measures itself, with only the standard library.

Processor time includes all threads of the process. It can be compared even if the machine does other work.
Wall-clock time is reported as well.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import time
from types import TracebackType
from typing import Final, TypeAlias

Numbers: TypeAlias = dict[str, float]
"""The measurements of one process, by name."""

TEXT: Final = "I look at the next file, since the last one did not hold what I am after. Number {number}."
"""The text that a model writes with a tool call, in every framework."""

RESULT: Final = "line of a file that holds nothing of interest\n" * 5
"""The result of the tool, in every framework."""

TASK: Final = "Look through the files, one after the other."
DONE: Final = "I have looked at all of them."


class Stopwatch:
    """Measures processor and wall-clock seconds between entering and leaving."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def __enter__(self) -> Stopwatch:
        gc.collect()
        self.cpu, self.wall = -time.process_time(), -time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cpu += time.process_time()
        self.wall += time.perf_counter()

    def per(self, count: int) -> Numbers:
        """Milliseconds per item."""
        return {"cpu_ms": self.cpu * 1000 / count, "wall_ms": self.wall * 1000 / count}


def resident() -> int:
    """Bytes of memory that this process uses now."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """The most bytes of memory that this process has used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(numbers: Numbers) -> None:
    """Print the numbers for the process that started this one."""
    print(json.dumps(numbers))
