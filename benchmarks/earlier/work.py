"""Makes one measurement of the checkout in the working directory, and prints its numbers as JSON.

    python work.py WHAT COUNT [calls]

With `calls`, it counts function calls instead of time. They do not depend on what else the machine does.

Runs with either commit, so it only uses what both have: the measurements of `benchmarks.tree`, and its model and module
in memory. On both sides, Python's cycle collector runs as rarely as in the command `iact`.
"""

from __future__ import annotations

import asyncio
import cProfile
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, os.getcwd())

from benchmarks.peers.endpoint import LOOK
from benchmarks.peers.ours import Ours
from benchmarks.tree.fakes import InstantModel, runtime
from benchmarks.tree.measure import DONE, TASK, Numbers, Stopwatch, report
from benchmarks.tree.ours import WHAT

_FIRST: Final = 50_000
"""New objects between two runs of the cycle collector, as in `iact/__main__.py`."""

_READY: Final = "Are you there?"

_FIRST_STEPS: Final = 20
"""Steps before the clock starts: the first ones import modules and open the connection."""


async def branches(data: Path, count: int) -> Numbers:
    """A root with `count` children that work at the same time. Each reads a file, then answers."""
    calls = "\n\n".join(f"```CALL_ASYNC child{number}\nDo part {number}.\n```" for number in range(count))

    def script(path: str, turn: int) -> str:
        if path != "/":
            return DONE if turn else "I look at my file.\n\n```t.read\nfile\n```"
        return f"{calls}\n\n```WAIT\n```" if turn == 1 else DONE

    async with runtime(data, InstantModel(script), agents=count) as running:
        session = await running.open()
        await session.ask(_READY)
        with Stopwatch() as watch:
            await session.ask(TASK)
        assert len([one for one in session.records() if one.kind == "result"]) == count
        return watch.per(count)


async def over_http(data: Path, count: int) -> Numbers:
    """An agent that reads `count` files, with the client of real endpoints. The endpoint is a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.endpoint"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as endpoint:  # noqa: ASYNC220 - once
        assert endpoint.stdout is not None
        framework = Ours(f"{endpoint.stdout.readline().strip()}/v1", data)
        try:
            ask = await framework.reader(count)
            await ask(LOOK.format(count=_FIRST_STEPS))
            with Stopwatch() as watch:
                await ask(LOOK.format(count=count))
        finally:
            await framework.close()
            endpoint.terminate()
    return watch.per(count)


class Counter:
    """Counts the functions called between entering and leaving each stopwatch, in order."""

    def __init__(self) -> None:
        self.found: list[int] = []
        self._profile = cProfile.Profile()
        begin, end = Stopwatch.__enter__, Stopwatch.__exit__

        def enter(watch: Stopwatch) -> Stopwatch:
            begin(watch)
            self._profile = cProfile.Profile()
            self._profile.enable()
            return watch

        def leave(watch: Stopwatch, *why: object) -> None:
            self._profile.disable()
            self.found.append(sum(one.callcount for one in self._profile.getstats()))
            end(watch, None, None, None)

        setattr(Stopwatch, "__enter__", enter)  # noqa: B010 - it is the measurements' own, which know nothing of this
        setattr(Stopwatch, "__exit__", leave)  # noqa: B010


async def _measure(what: str, count: int) -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        if what == "branches":
            return await branches(Path(folder), count)
        if what == "over_http":
            return await over_http(Path(folder), count)
        return await WHAT[what](Path(folder), count)


if __name__ == "__main__":
    gc.set_threshold(_FIRST)
    counter = Counter() if "calls" in sys.argv else None
    numbers = asyncio.run(_measure(sys.argv[1], int(sys.argv[2])))
    if counter is not None:
        numbers = {f"calls {number}": calls for number, calls in enumerate(counter.found)}
    report(numbers)
