"""`python -m benchmarks.memory.cost [STATEMENTS] [RECALLS]`: the cost of one recall with many stored statements, and the
memory of a process that does nothing else.

Vectors of uniformly random texts are unlike any real memory. The statements are therefore sentences of the
conversations with names, numbers and objects exchanged, so that they form clusters as real ones do.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.memory.locomo import SHIPPED, Conversation, read
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

_WAITING: Final = 500
"""How many statements wait to be stored, at most: more than a session ever states at once, and far fewer than the queue holds."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What memory cost."""

    statements: int
    p50: float
    """Milliseconds of a recall; so are the next two."""
    p99: float
    slowest: float
    processor: float
    """Milliseconds of the processor that a recall took, on average, in all threads."""
    store: float
    """Milliseconds to store one statement."""
    resident: float
    """The most MB that the process took."""
    before: float
    """MB that it took before memory was opened: the program itself, and the packages that it imports."""


def apart(count: int, asks: int) -> Cost:
    """The cost in a process of its own, so that nothing which was measured before is in its figure of memory."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.memory.cost", str(count), str(asks)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return Cost(**json.loads(answer.stdout))


async def measure(conversations: Sequence[Conversation], count: int, asks: int) -> Cost:
    """Store `count` statements of one user, then recall `asks` times."""
    rng = random.Random(7)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    texts = [turn.text for one in conversations for turn in one.turns]
    questions = [question.text for one in conversations for question in one.questions]
    before = _resident()
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
                if n % _WAITING == _WAITING - 1:
                    await opened.settled()
            await opened.settled()
            store = (time.perf_counter() - began) / count
            await memory.recall(MemoryQuestion("now", "/", "first", clock.now()))
            await opened.settled()
            taken = []
            used = time.process_time()
            for _ in range(asks):
                ask = MemoryQuestion(
                    "now", "/a/b", rng.choice(questions), clock.now(), recent=[rng.choice(texts)]
                )
                began = time.perf_counter()
                answer = await memory.recall(ask)
                taken.append((time.perf_counter() - began) * 1000)
                if answer.notice:
                    raise RuntimeError(answer.notice)
            processor = (time.process_time() - used) / asks
    taken.sort()
    p99 = taken[min(len(taken) - 1, int(len(taken) * 0.99))]
    return Cost(
        statements=count,
        p50=statistics.median(taken),
        p99=p99,
        slowest=taken[-1],
        processor=processor * 1000,
        store=store * 1000,
        resident=_resident(),
        before=before,
    )


def _resident() -> float:
    """The most MB that this program has taken. The system's own figure for a process includes the one that started it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def vary(text: str, rng: random.Random) -> str:
    """A text like this one, with two other words and a number that makes it unique."""
    words = text.split()
    for _ in range(2):
        words[rng.randrange(len(words))] = rng.choice(_NAMES)
    return " ".join(words) + f" ({rng.randrange(10_000)})"


def main() -> None:
    """Measure, and print the figures as JSON."""
    count, asks = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (20_000, 500)
    print(json.dumps(asdict(asyncio.run(measure(read(SHIPPED), count, asks)))))


if __name__ == "__main__":
    main()
