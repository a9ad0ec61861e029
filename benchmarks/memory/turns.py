"""What memory adds to a turn: the real tree and journal and a model that answers at once, with and without memory.

The whole difference is therefore due to memory: the recall, its record, and the lines in the context. What is stated is
stored between two turns, where a real model writes for seconds.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.memory.cost import vary
from benchmarks.memory.locomo import Conversation
from benchmarks.tree.fakes import InstantModel, runtime
from benchmarks.tree.measure import resident
from iact.core.clock import SystemClock
from iact.core.ports import NewStatement
from iact.hippocampus import Hippocampus, WordEmbedder, open_hippocampus

_SOMEONE: Final = "someone"
_BUDGET: Final = 5.0
"""Seconds that a recall may take here. High, so that the benchmark measures slow recalls instead of losing them."""


@dataclass(frozen=True, slots=True)
class Turns:
    """Median milliseconds of a turn. `recall`: of memory's own part. `resident`: MB that memory adds."""

    statements: int
    without: float
    with_memory: float
    recall: float
    recalled: int
    resident: float


async def measure(conversations: Sequence[Conversation], count: int, turns: int) -> Turns:
    """Send `turns` messages to the root of a session, without memory and with a memory of `count` statements."""
    rng = random.Random(7)
    texts = [turn.text for one in conversations for turn in one.turns]
    asked = [rng.choice([question.text for one in conversations for question in one.questions])]
    asked += [rng.choice(texts) for _ in range(turns)]
    with tempfile.TemporaryDirectory() as place:
        bare, _, _ = await _talk(Path(place, "without"), None, asked)
        before = resident()
        clock = SystemClock()
        async with open_hippocampus(
            Path(place, "memory"), WordEmbedder(), clock=clock, budget=_BUDGET
        ) as opened:
            memory, at = opened.of(_SOMEONE), clock.now().isoformat()
            for n in range(count):
                said = vary(rng.choice(texts), rng)
                memory.remember(
                    NewStatement(f"s{n // 50}", n % 50, "/", at, said, "fact", "person", "remembered")
                )
                if n % 5_000 == 4_999:
                    await opened.settled()
            await opened.settled()
            took, recalls, shown = await _talk(Path(place, "with"), opened, asked)
            added = (resident() - before) / 1e6
    return Turns(count, bare, took, recalls, shown, added)


async def _talk(data: Path, opened: Hippocampus | None, asked: Sequence[str]) -> tuple[float, float, int]:
    """Milliseconds of a turn and of a recall, and the number of turns in which something was recalled."""
    memory = opened.of(_SOMEONE) if opened is not None else None
    async with runtime(data, InstantModel(lambda path, turn: "Noted."), memory=memory) as running:
        session = await running.open()
        await session.ask(asked[0])
        taken = []
        for text in asked[1:]:
            began = time.perf_counter()
            await session.ask(text)
            taken.append((time.perf_counter() - began) * 1000)
            if opened is not None:
                await opened.settled()  # statements are stored meanwhile, as while a model writes
        recalls = [one.number("ms") for one in session.records() if one.kind == "recall"]
        return statistics.median(taken), statistics.median(recalls) if recalls else 0.0, len(recalls)


def printed(found: Turns) -> str:
    """The result as a line for people."""
    return (
        f"{found.statements} statements, a model that answers at once: a turn takes {found.without:.1f} ms without "
        f"memory and {found.with_memory:.1f} ms with it (memory's own part: {found.recall:.0f} ms; something was "
        f"recalled in {found.recalled} turns); it adds {found.resident:.0f} MB to the process"
    )


def run(conversations: Sequence[Conversation], count: int, turns: int) -> Turns:
    """Run `measure` in a new event loop."""
    return asyncio.run(measure(conversations, count, turns))
