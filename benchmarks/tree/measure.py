"""How every process of this benchmark measures itself, ours and the peers', with the standard library alone.

Processor time counts all threads of the process. On a machine that does other work as well it is what
can be compared; seconds on the wall are given beside it.
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
"""What one process found out, by name."""

TEXT: Final = "I look at the next file, since the last one did not hold what I am after. Number {number}."
"""What a model writes beside a tool call, in every framework."""

RESULT: Final = "line of a file that holds nothing of interest\n" * 5
"""What the tool gives, in every framework."""

TASK: Final = "Look through the files, one after the other."
DONE: Final = "I have looked at all of them."


class Stopwatch:
    """Processor and wall-clock seconds between entering and leaving."""

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
    """Bytes of memory that this process holds now."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak() -> int:
    """The most bytes of memory that this process ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(numbers: Numbers) -> None:
    """Hand the numbers to whoever started this process."""
    print(json.dumps(numbers))
