"""Ratios with limits: `python -m benchmarks --short` prints them, and `make test` checks them.

Each compares the processor time of two measurements that are taken together on one machine, so neither a slow
machine nor other work on it matters. Limits are about twice the usual value. Noise can spoil a measurement, so
a ratio above its limit is measured again. A real regression stays above the limit.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.gate.__main__ import decisions
from benchmarks.peers.endpoint import LOOK
from benchmarks.peers.ours import Ours
from benchmarks.plan.__main__ import bare, layered
from benchmarks.plan.__main__ import ours as engine
from benchmarks.scanner.__main__ import reply, scan_in_chunks, seconds
from benchmarks.tree.measure import RESULT, TEXT, Numbers
from benchmarks.tree.ours import children, reading, reopening
from iact.core.plan.model import PlanGraph

_ROOT: Final = Path(__file__).parents[1]
_ROUNDS: Final = 3
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class Ratio:
    """One comparison: its description, its measurement and its limit."""

    says: str
    measure: Callable[[], float]
    limit: float

    def check(self) -> float:
        """The ratio. If it is above the limit, the lowest of several attempts."""
        found = self.measure()
        for _ in range(_ATTEMPTS - 1):
            if found <= self.limit:
                break
            found = min(found, self.measure())
        return found


def _best(work: Callable[[Path, int], Awaitable[Numbers]], count: int, which: str) -> float:
    """The lowest value of several rounds, each in its own folder."""
    found = []
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            found.append(asyncio.run(_numbers(work, Path(folder), count))[which])
    return min(found)


async def _numbers(work: Callable[[Path, int], Awaitable[Numbers]], data: Path, count: int) -> Numbers:
    return await work(data, count)


def _step() -> float:
    return _best(reading, 400, "cpu_ms") / _best(reading, 50, "cpu_ms")


def _child() -> float:
    return _best(children, 200, "cpu_ms") / _best(children, 25, "cpu_ms")


def _child_over_step() -> float:
    return _best(children, 200, "cpu_ms") / _best(reading, 200, "cpu_ms")


def _stored() -> float:
    found = _sizes()
    return found["beside_last"] / found["beside_10"]


def _stored_over_said() -> float:
    return _sizes()["file"] / (len(TEXT.format(number=100)) + len(RESULT))


def _sizes() -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(reading(Path(folder), 200))


def _verified() -> float:
    return -_best(_negative, 2_000, "verify_cpu") / -_best(_negative, 16_000, "verify_cpu")


async def _negative(data: Path, count: int) -> Numbers:
    """Negated records per second: the lowest value is then the best."""
    return {name: -value for name, value in (await reopening(data, count)).items()}


def _scanned(size: int) -> Callable[[], float]:
    def measure() -> float:
        long = reply(800_000)
        short = long[:100_000]
        return (
            seconds(lambda: scan_in_chunks(long, size), _ROUNDS)
            / 8
            / seconds(lambda: scan_in_chunks(short, size), _ROUNDS)
        )

    return measure


def _planned(run: Callable[[PlanGraph], Awaitable[None]], plan: PlanGraph) -> float:
    """Processor seconds per node."""

    async def once() -> float:
        began = time.process_time()
        await run(plan)
        return time.process_time() - began

    return min(asyncio.run(once()) for _ in range(_ROUNDS)) / len(plan.nodes)


async def _engine(plan: PlanGraph) -> None:
    await engine(plan, {})


async def _bare(plan: PlanGraph) -> None:
    await bare(plan, {})


def _plan_over_bare() -> float:
    plan = layered(2_000, 50)
    return _planned(_engine, plan) / _planned(_bare, plan)


def _plan_growth() -> float:
    return _planned(_engine, layered(4_000, 50)) / _planned(_engine, layered(500, 50))


def _gate() -> float:
    return decisions(random.Random(1), 1000)["p50"] / decisions(random.Random(1), 50)["p50"]


def _request() -> float:
    command = [sys.executable, "-m", "benchmarks.peers.endpoint"]
    with (
        subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as endpoint,
        tempfile.TemporaryDirectory() as folder,
    ):
        assert endpoint.stdout is not None
        try:
            return asyncio.run(_requests(f"{endpoint.stdout.readline().strip()}/v1", Path(folder)))
        finally:
            endpoint.terminate()


async def _requests(url: str, folder: Path) -> float:
    """The cost of a step after 250 others over that of a step after 25, with the client of real endpoints."""
    framework = Ours(url, folder)
    try:
        ask = await framework.reader(300)
        await ask(LOOK.format(count=275))
    finally:
        await framework.close()
    marks = framework.marks
    assert len(marks) == 275, f"{len(marks)} uses of the tool"
    return (marks[274] - marks[224]) / (marks[50] - marks[0])


RATIOS: Final[Mapping[str, Ratio]] = {
    "step": Ratio("a step in a run of 400, over a step in a run of 50", _step, 2.0),
    "child": Ratio("a child among 200, over a child among 25", _child, 2.0),
    "child over step": Ratio("a child among 200, over a step in a run of 200", _child_over_step, 1.5),
    "stored over said": Ratio(
        "bytes of a step in the journal, over bytes of its messages", _stored_over_said, 6.0
    ),
    "stored": Ratio("bytes in addition to the content, at the 200th step over the 10th", _stored, 1.25),
    "verified": Ratio("verifying a record among 16,000, over one among 2,000", _verified, 2.0),
    "request": Ratio("a step after 250 others over HTTP, over a step after 25", _request, 3.0),
    "scanned": Ratio(
        "reading a byte of a reply of 800 kB, over a byte of one of 100 kB", _scanned(1 << 30), 2.0
    ),
    "scanned by 1": Ratio("the same, in chunks of one character", _scanned(1), 2.0),
    "plan": Ratio("a node of a plan, over a node in a bare loop", _plan_over_bare, 12.0),
    "plan growth": Ratio("a node of a plan of 4,000 nodes, over one of 500", _plan_growth, 2.5),
    "gate": Ratio("a decision among 1,000 functions, over a decision among 50", _gate, 3.0),
}


def main() -> int:
    """Print all ratios. Returns 1 if any is above its limit."""
    slipped = 0
    print("| ratio | measured | at most |\n|---|---|---|")
    for ratio in RATIOS.values():
        found = ratio.check()
        slipped += found > ratio.limit
        print(
            f"| {ratio.says} | {found:.2f}{' **above its limit**' if found > ratio.limit else ''} | {ratio.limit:g} |",
            flush=True,
        )
    return 1 if slipped else 0
