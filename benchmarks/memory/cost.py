"""The cost of one recall with many stored statements, and the memory of the process.

Vectors of uniformly random texts are unlike any real memory. The statements are therefore sentences of the
conversations with names, numbers and objects exchanged, so that they form clusters as real ones do.
"""

from __future__ import annotations

import random
import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.memory.locomo import Conversation
from benchmarks.memory.quality import FixedClock
from iact.core.ports import MemoryQuestion, NewStatement
from iact.hippocampus import WordEmbedder, open_hippocampus

_NAMES = [
    "Ana",
    "Bo",
    "Carla",
    "Dmitri",
    "Eve",
    "Farid",
    "Gus",
    "Hana",
    "Ivo",
    "Jun",
    "Kira",
    "Liam",
    "Mona",
    "Nils",
    "Oda",
    "Pavel",
    "Quin",
    "Rosa",
    "Sven",
    "Tara",
]


@dataclass(frozen=True, slots=True)
class Cost:
    """`p50`, `p99`, `slowest`: milliseconds of a recall. `store`: milliseconds to store one. `resident`: MB."""

    statements: int
    p50: float
    p99: float
    slowest: float
    store: float
    resident: float


async def measure(conversations: Sequence[Conversation], count: int, asks: int) -> Cost:
    """Store `count` statements of one user, then recall `asks` times."""
    rng = random.Random(7)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    texts = [turn.text for one in conversations for turn in one.turns]
    questions = [question.text for one in conversations for question in one.questions]
    with tempfile.TemporaryDirectory() as place:
        clock = FixedClock(start + timedelta(days=400))
        async with open_hippocampus(Path(place), WordEmbedder(), clock=clock, budget=5.0) as opened:
            memory = opened.of("someone")
            began = time.perf_counter()
            for n in range(count):
                at = (start + timedelta(minutes=10 * n)).isoformat()
                text = vary(rng.choice(texts), rng)
                memory.remember(
                    NewStatement(f"s{n // 50}", n % 50, "/", at, text, "fact", "person", "remembered")
                )
                if n % 5_000 == 4_999:
                    await opened.settled()
            await opened.settled()
            store = (time.perf_counter() - began) / count
            await memory.recall(MemoryQuestion("now", "/", "first", clock.now()))
            await opened.settled()
            taken = []
            for _ in range(asks):
                ask = MemoryQuestion(
                    "now", "/a/b", rng.choice(questions), clock.now(), recent=[rng.choice(texts)]
                )
                began = time.perf_counter()
                answer = await memory.recall(ask)
                taken.append((time.perf_counter() - began) * 1000)
                if answer.notice:
                    raise RuntimeError(answer.notice)
    taken.sort()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p99 = taken[min(len(taken) - 1, int(len(taken) * 0.99))]
    return Cost(count, statistics.median(taken), p99, taken[-1], store * 1000, resident)


def vary(text: str, rng: random.Random) -> str:
    """A text like this one, with two other words and a number that makes it unique."""
    words = text.split()
    for _ in range(2):
        words[rng.randrange(len(words))] = rng.choice(_NAMES)
    return " ".join(words) + f" ({rng.randrange(10_000)})"
