"""What is measured of every framework, ours and the peers', each in an environment and a process of its own.

    python -m benchmarks.peers.NAME WHAT COUNT ADDRESS FOLDER

A framework says how it opens a dialogue; what is done with it stands here once and is the same for all.
This file needs the standard library alone, since it runs in the peers' environments as well.
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
"""Say something to an agent and wait for its answer; the next call goes on with the same dialogue."""

READS: Final = "Reads a file and gives some of its lines."
CALLS: Final = "Calls an agent that does a part of the work."
SYSTEM: Final = "You are a helpful agent. Use the tools that you have."
KEY: Final = "none"
BRANCH_MS: Final = 50
"""How long the model takes for a branch of the fan-out."""

AT: Final = (50, 200, 1000)
"""Where in a run the cost of a step is looked at."""

_AROUND: Final = 21
_PATIENCE: Final = 180
LONGEST: Final = 120
"""Seconds of a run of steps."""


class Framework(ABC):
    """One framework. `url`: the base URL of the endpoint; `folder`: where it keeps what it stores."""

    model = "scripted"

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.marks: list[float] = []
        """Processor seconds at each use of the tool."""

    @abstractmethod
    async def reader(self, limit: int, *, stored: bool = False) -> Ask:
        """An agent with the tool `read`, for so many turns. `stored`: with the framework's own persistence."""

    @abstractmethod
    async def caller(self, width: int, depth: int) -> Ask:
        """An agent whose tool `call` gives work to an agent of the same kind, `depth` times; `width` at a time."""

    @abstractmethod
    async def answerer(self) -> Ask:
        """An agent without tools."""

    async def save(self) -> None:
        """Store the reader's dialogue, where this does not happen by itself."""
        return

    async def resumed(self) -> Ask | None:
        """The reader's dialogue, from what another process stored; None: there is no documented way."""
        return None

    async def many(self, count: int) -> Callable[[], Awaitable[Sequence[str]]]:
        """`count` agents; what it gives puts a part that lasts until told to all of them at once."""
        asks = [await self.answerer() for _ in range(count)]
        self.kept = asks

        async def ask_all() -> Sequence[str]:
            parts = [PART.format(number=number, how=WHEN_TOLD) for number in range(count)]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_once(ask, part)) for ask, part in zip(asks, parts, strict=True)]
            return [task.result() for task in tasks]

        return ask_all

    async def close(self) -> None:
        """Let go of everything."""
        return

    def lines(self) -> str:
        """What the tool gives."""
        self.marks.append(time.process_time())
        return RESULT


async def _once(ask: Ask, text: str) -> str:
    return await ask(text)


def control(url: str, path: str) -> Mapping[str, float]:
    """Ask or tell the endpoint something that is not for a model."""
    with urllib.request.urlopen(url.removesuffix("/v1") + path, timeout=60) as answer:
        found: Mapping[str, float] = json.loads(answer.read())
        return found


async def _told(ask: Ask, text: str) -> None:
    answer = await ask(text)
    assert DONE in answer, f"the run ended with {answer!r}"


async def steps(framework: Framework, count: int) -> Numbers:
    """Steps of one agent with a tool; nothing is stored, where that can be had. Milliseconds of processor time.

    `at_N`: of the N-th step, the median of some before it; `last`: of the last one. A run that lasts too long is ended, and
    `came` tells how far it came.
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
        os._exit(0)  # what runs in threads can't be cancelled
    return found


async def stored(framework: Framework, count: int) -> Numbers:
    """The same with the framework's own persistence, which leaves its files in the folder."""
    ask = await framework.reader(count + 5, stored=True)
    with Stopwatch() as watch:
        await _told(ask, LOOK.format(count=count))
        await framework.save()
    assert len(framework.marks) == count
    return watch.per(count)


async def resume(framework: Framework, count: int) -> Numbers:
    """Milliseconds from what `stored` left to the answer to one more question, in a new process."""
    with Stopwatch() as watch:
        ask = await framework.resumed()
        if ask is None:
            return {}
        await _told(ask, LOOK.format(count=0))
    return watch.per(1)


async def fan(framework: Framework, count: int) -> Numbers:
    """A root that calls `count` agents in one reply, whose model takes 50 ms each. `makespan`: of all, in ms."""
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
    """Bytes that each of `count` agents holds while all of them wait for the model, and when they have answered."""
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
    """Do what the command line says, and report."""
    what, count, url, folder = sys.argv[1:]
    report(asyncio.run(_measure(kind, what, int(count), url, Path(folder))))
