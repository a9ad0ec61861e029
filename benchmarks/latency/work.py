"""The work in all variants, and the time that models and tools take for it. Needs no packages.

The work is `n` steps in layers of four; each step depends on one step of the layer before. A tool takes a
second. A model takes `FIRST` seconds, and some time for each token that it reads and writes. Everything runs
`SCALE` times as fast as real time. Printed times are scaled back, so a framework's own cost counts
`1 / SCALE` fold, for all alike.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

COUNTS: Final = (1, 2, 4, 8, 12, 20)
WIDTH: Final = 4
SCALE: Final = 0.1
TOOL: Final = 1.0
FIRST: Final = 0.6
PER_INPUT: Final = 0.00005
PER_OUTPUT: Final = 0.0125
CHARACTERS_PER_TOKEN: Final = 4

RESULT: Final = "0123456789 " * 100
ANSWER: Final = "All parts were looked at, and this is what they hold together. " * 4
THOUGHT: Final = "Part {number} comes next, since the parts before it are known now."
SCHEMAS: Final = "A tool's name, its documentation and the schema of its parameters. " * 60
"""What the prompt of an agent with thirty tools contains, several thousand tokens; the same in all variants."""


@dataclass
class Meter:
    """Tokens read and written, and model calls."""

    tokens: int = 0
    calls: int = 0

    async def think(self, read: int, written: int) -> None:
        """Count one model call with so many characters, and wait for the time that it takes."""
        tokens_in, tokens_out = read // CHARACTERS_PER_TOKEN, max(1, written // CHARACTERS_PER_TOKEN)
        self.tokens += tokens_in + tokens_out
        self.calls += 1
        await asyncio.sleep((FIRST + tokens_in * PER_INPUT + tokens_out * PER_OUTPUT) * SCALE)


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of one way with one count: seconds (scaled back), tokens and model calls."""

    seconds: float
    tokens: int
    calls: int

    @staticmethod
    def since(begin: float, meter: Meter) -> Measured:
        return Measured((time.perf_counter() - begin) / SCALE, meter.tokens, meter.calls)


async def tool() -> str:
    """Wait for the time of one call of a tool."""
    await asyncio.sleep(TOOL * SCALE)
    return RESULT


def goal(count: int) -> str:
    """The request."""
    if count == 1:
        return "Show the size of part 0."
    parts = ", ".join(f"part {number}" for number in range(count))
    return f"Look at {parts}, then compare them all and report what they hold together."


def before(number: int) -> int | None:
    """The step that a step depends on."""
    return number - WIDTH if number >= WIDTH else None


def waves(count: int) -> list[list[int]]:
    """The steps by layer."""
    return [list(range(first, min(first + WIDTH, count))) for first in range(0, count, WIDTH)]
