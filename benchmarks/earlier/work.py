"""One measurement of the checkout that stands in the working directory: `python work.py WHAT COUNT`; prints JSON.

Runs under either commit, so it uses nothing but what both have: the measurements of `benchmarks.tree`, and its model
and module in memory.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Final

sys.path.insert(0, os.getcwd())

from benchmarks.tree.fakes import InstantModel, runtime
from benchmarks.tree.measure import DONE, TASK, Numbers, Stopwatch, report
from benchmarks.tree.ours import WHAT

_READY: Final = "Are you there?"


async def branches(data: Path, count: int) -> Numbers:
    """A root with `count` children at work at the same time; each looks at a file, then answers."""
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


async def _measure(what: str, count: int) -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        if what == "branches":
            return await branches(Path(folder), count)
        return await WHAT[what](Path(folder), count)


if __name__ == "__main__":
    report(asyncio.run(_measure(sys.argv[1], int(sys.argv[2]))))
