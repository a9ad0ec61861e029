"""The measurements that are made of iact and every other framework, each in its own environment and process.

    python -m benchmarks.peers.NAME WHAT COUNT ADDRESS FOLDER

Each framework's file defines how it opens a dialogue. What is done with the dialogue is defined here, the same
for all. This file needs only the standard library, because it runs in the other frameworks' environments too.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

from benchmarks.peers.endpoint import AFTER, DOWN, FAN, LOOK, PART, WHEN_TOLD
from benchmarks.tree.measure import DONE, RESULT, Numbers, Stopwatch, peak, report, resident

Ask: TypeAlias = Callable[[str], Awaitable[str]]
"""Sends a message to an agent and waits for its answer. The next call continues the same dialogue."""

READS: Final = "Reads a file and gives some of its lines."
CALLS: Final = "Calls an agent that does a part of the work."
SYSTEM: Final = "You are a helpful agent. Use the tools that you have."
KEY: Final = "none"
BRANCH_MS: Final = 50
"""How long the model takes for a branch of the fan-out."""

AT: Final = (50, 200, 1000)
"""The steps of a run at which the cost is measured."""

_AROUND: Final = 21
_PATIENCE: Final = 180
LONGEST: Final = 120
"""The most seconds of a run of steps."""


class Framework(ABC):
    """One framework. `url`: the base URL of the endpoint. `folder`: the folder for its stored data."""

    model = "scripted"

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.marks: list[float] = []
        """Processor seconds at each use of the tool."""

    @abstractmethod
    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        """An agent with the tool `read`, for `limit` turns. `stored`: with the framework's own persistence."""

    @abstractmethod
    async def caller(self, width: int, depth: int) -> Ask:
        """An agent whose tool `call` gives work to the same kind of agent, `depth` levels deep, `width` at a time."""

    @abstractmethod
    async def answerer(self) -> Ask:
        """An agent without tools."""

    async def save(self) -> None:
        """Store the reader's dialogue, if the framework does not do so automatically."""
        return

    async def resumed(self) -> Ask | None:
        """The reader's dialogue, as stored by another process. None if there is no documented way to resume it."""
        return None

    async def many(self, count: int) -> Callable[[], Awaitable[Sequence[str]]]:
        """Create `count` agents. Returns a function that gives all of them a part that lasts until released."""
        asks = [await self.answerer() for _ in range(count)]
        self.kept = asks

        async def ask_all() -> Sequence[str]:
            parts = [PART.format(number=number, how=WHEN_TOLD) for number in range(count)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_once(ask, part)) for ask, part in zip(asks, parts, strict=True)]
            return [task.result() for task in tasks]

        return ask_all

    async def close(self) -> None:
        """Release all resources."""
        return

    def lines(self) -> str:
        """The result of the tool."""
        self.marks.append(time.process_time())
        return RESULT


async def _once(ask: Ask, text: str) -> str:
    return await ask(text)


def control(url: str, path: str) -> Mapping[str, float]:
    """Send the endpoint a request that is not for the model."""
    with urllib.request.urlopen(url.removesuffix("/v1") + path, timeout=60) as answer:
        found: Mapping[str, float] = json.loads(answer.read())
        return found


async def _told(ask: Ask, text: str) -> None:
    answer = await ask(text)
    assert DONE in answer, f"the run ended with {answer!r}"


async def steps(framework: Framework, count: int) -> Numbers:
    """Steps of one agent with a tool, in milliseconds of processor time. Stores nothing, where that is possible.

    `at_N`: the N-th step, as the median of several steps before it. `last`: the last step. A run that takes too long is
    ended, and `came` is the number of its steps.
    """
    ask = await framework.reader(count + 5)
    await _told(ask, LOOK.format(count=1))
    framework.marks.clear()
    with Stopwatch() as watch:
        running = asyncio.ensure_future(_once(ask, LOOK.format(count=count)))
        done, _ = await asyncio.wait([running], timeout=LONGEST)
    came = len(framework.marks)
    if done:
        assert DONE in running.result(), f"the run ended with {running.result()!r}"
        assert came == count, f"{came} of {count} reads"
    between = [(later - one) * 1000 for one, later in pairwise(framework.marks)]
    found = {f"at_{at}": statistics.median(between[at - _AROUND : at - 1]) for at in AT if at <= came}
    found |= {"came": came, "last": statistics.median(between[-_AROUND:])}
    found |= {"wall": watch.wall * 1000 / came, "peak": peak()}
    if not done:
        report(found)
        os._exit(0)  # threads can't be cancelled
    return found


async def stored(framework: Framework, count: int) -> Numbers:
    """The same with the framework's own persistence, which writes its files to the folder."""
    ask = await framework.reader(count + 5, stored=True)
    with Stopwatch() as watch:
        await _told(ask, LOOK.format(count=count))
        await framework.save()
    assert len(framework.marks) == count
    return watch.per(count)


async def resume(framework: Framework, count: int) -> Numbers:
    """Milliseconds from opening the data of `stored` in a new process to the answer to one more question."""
    with Stopwatch() as watch:
        ask = await framework.resumed()
        if ask is None:
            return {}
        await _told(ask, LOOK.format(count=0))
    return watch.per(1)


async def fan(framework: Framework, count: int) -> Numbers:
    """A root that calls `count` agents in one reply, whose model takes 50 ms each. `makespan`: for all, in ms."""
    await _told(await framework.reader(9), LOOK.format(count=1))
    ask = await framework.caller(count, 1)
    with Stopwatch() as watch:
        await _told(ask, FAN.format(count=count, how=AFTER.format(ms=BRANCH_MS)))
    return {**watch.per(count), "makespan": watch.wall * 1000}


async def down(framework: Framework, count: int) -> Numbers:
    """A root that calls an agent that calls an agent, `count` levels deep."""
    await _told(await framework.reader(9), LOOK.format(count=1))
    ask = await framework.caller(1, count)
    with Stopwatch() as watch:
        await _told(ask, DOWN.format(count=count))
    return watch.per(count)


async def agents(framework: Framework, count: int) -> Numbers:
    """Bytes that each of `count` agents uses while all of them wait for the model, and after they have answered."""
    await _told(await framework.reader(9), LOOK.format(count=1))
    before = resident()
    ask_all = await framework.many(count)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as group:
        running = group.create_task(_gathered(ask_all))
        while (await loop.run_in_executor(None, control, framework.url, "/waiting"))["waiting"] < count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        thinking = resident()
        await loop.run_in_executor(None, control, framework.url, "/release")
    assert all(DONE in one for one in running.result())
    del running
    idle = resident()
    return {"thinking": (thinking - before) / count, "idle": (idle - before) / count, "process": peak()}


async def _gathered(ask_all: Callable[[], Awaitable[Sequence[str]]]) -> Sequence[str]:
    return await ask_all()


WHAT: Final[Mapping[str, Callable[[Framework, int], Awaitable[Numbers]]]] = {
    one.__name__: one for one in (steps, stored, resume, fan, down, agents)
}


async def _measure(kind: type[Framework], what: str, count: int, url: str, folder: Path) -> Numbers:
    framework = kind(url, folder)
    try:
        return await WHAT[what](framework, count)
    finally:
        await framework.close()


def main(kind: type[Framework]) -> None:
    """Make the measurement that the command line names, and report it."""
    what, count, url, folder = sys.argv[1:]
    report(asyncio.run(_measure(kind, what, int(count), url, Path(folder))))
