"""One measurement of iact in its own process: `python -m benchmarks.tree.ours WHAT COUNT`.

Prints its numbers as one line of JSON. The journal is durable in all of them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.tree.fakes import InstantModel, Script, runtime
from benchmarks.tree.measure import DONE, RESULT, TASK, TEXT, Numbers, Stopwatch, peak, report, resident
from iact.core import Session
from iact.core.journal import Journal, encode, read_journal
from iact.core.records.record import Record
from iact.core.records.session import Notice
from iact.core.stored.replay import replay

_AGENTS_OF_A_LONG_SESSION: Final = 50
_BODY: Final = "A record of a usual size, as a reply or a result would be. " * 4


_READY: Final = "Are you there?"
"""Sent before anything is measured, because the modules of a session become known with the first turn."""


def _looking(steps: int, function: str) -> Script:
    """Each agent makes `steps` calls, then answers. The root first answers one greeting."""

    def script(path: str, turn: int) -> str:
        if turn == (steps + 1 if path == "/" else steps) or (path == "/" and turn == 0):
            return DONE
        return f"{TEXT.format(number=turn)}\n\n```{function}\nfile {turn}\n```"

    return script


async def _steps(data: Path, steps: int, function: str) -> Numbers:
    async with runtime(data, InstantModel(_looking(steps, function))) as running:
        session = await running.open()
        await session.ask(_READY)
        with Stopwatch() as watch:
            await session.ask(TASK)
        _look_at(session, steps)
        return {**watch.per(steps), "peak": peak(), **_sizes(session.journal)}


def _look_at(session: Session, steps: int) -> None:
    """Check that the work was done: every call has an outcome with the result of the tool."""
    results = [record for record in session.records() if record.kind == "result"]
    assert len(results) == steps, f"{len(results)} results of {steps}"
    assert all(record.body == RESULT for record in results)


def _sizes(journal: Path) -> Numbers:
    """Bytes stored per step in addition to the content: over all steps, and around the 10th and the last step."""
    beside: list[int] = []
    for record in read_journal(journal).records:
        if record.kind == "turn":
            beside.append(0)
        if beside:
            beside[-1] += _beside(record)
    tenth, last = beside[9 : 9 + 20], beside[-21:-1]
    found = {"beside": sum(beside) / len(beside), "file": journal.stat().st_size / len(beside)}
    return {**found, "beside_10": sum(tenth) / len(tenth), "beside_last": sum(last) / len(last)}


def _beside(record: Record) -> int:
    return len(encode(record)[0]) - len(record.body.encode())


async def reading(data: Path, count: int) -> Numbers:
    """Steps with a tool that changes nothing."""
    return await _steps(data, count, "t.read")


async def writing(data: Path, count: int) -> Numbers:
    """Steps with a tool that changes something. Each waits until its intent is durable."""
    return await _steps(data, count, "t.write")


async def children(data: Path, count: int) -> Numbers:
    """A root that calls `count` new children one after another, in one reply. Each answers at once."""
    calls = "\n\n".join(f"```CALL child{number}\nDo part {number}.\n```" for number in range(count))

    def script(path: str, turn: int) -> str:
        return calls if path == "/" and turn == 1 else DONE

    async with runtime(data, InstantModel(script), agents=count) as running:
        session = await running.open()
        await session.ask(_READY)
        with Stopwatch() as watch:
            await session.ask(TASK)
        assert len(session.tree()) == count + 1
        return watch.per(count)


async def agents(data: Path, count: int) -> Numbers:
    """The memory of `count` children while all wait for the model at the same time, and after all have answered."""
    calls = "\n\n".join(f"```CALL_ASYNC child{number}\nDo part {number}.\n```" for number in range(count))

    def script(path: str, turn: int) -> str:
        return f"{calls}\n\n```WAIT\n```" if path == "/" and turn == 0 else DONE

    model = InstantModel(script, hold=asyncio.Event())
    assert model.hold is not None
    async with runtime(data, model, agents=count) as running:
        session = await running.open()
        before = resident()
        said = await session.say(TASK)
        async with asyncio.timeout(120):
            while model.waiting < count:  # noqa: ASYNC110 - until they are in the model
                await asyncio.sleep(0.01)
        thinking = resident()
        model.hold.set()
        await session.answer(said.n)
        idle = resident()
        assert sum(node.state == "done" for node in session.tree()) == count + 1
    return {
        "thinking": (thinking - before) / count,
        "idle": (idle - before) / count,
        "process": peak(),
        "before": before,
    }


async def appends(data: Path, writers: int) -> Numbers:
    """`writers` tasks that each append a record and wait until it is durable, again and again."""
    journal = Journal.create(data / "journal")
    each = max(400, 16_000 // writers)

    async def write(number: int) -> None:
        for step in range(each):
            record = journal.append(
                Notice(level="warning", code="bench"),
                f"/agent{number}",
                step,
                "2026-05-04T03:02:01.123456Z",
                _BODY,
            )
            await journal.durable(record.n)

    with Stopwatch() as watch:
        async with asyncio.TaskGroup() as group:
            for number in range(writers):
                group.create_task(write(number))
    await journal.close()
    count = each * writers
    return {"per_second": count / watch.wall, "per_cpu_second": count / watch.cpu}


async def reopening(data: Path, count: int) -> Numbers:
    """Verify and resume a journal of about `count` records from a tree of 50 agents."""
    steps = count // (4 * _AGENTS_OF_A_LONG_SESSION)
    look = _looking(steps, "t.read")
    calls = "\n\n".join(
        f"```CALL child{number}\nLook at part {number}.\n```" for number in range(_AGENTS_OF_A_LONG_SESSION)
    )

    def script(path: str, turn: int) -> str:
        return look(path, turn) if path != "/" else calls if turn == 0 else DONE

    async with runtime(data, InstantModel(script), agents=_AGENTS_OF_A_LONG_SESSION) as running:
        session = await running.open()
        await session.ask(TASK)
        journal, name = session.journal, session.id
    with Stopwatch() as verify:
        records = len(replay(journal, verify=True).records)
    async with runtime(data, InstantModel(script)) as running:
        with Stopwatch() as resume:
            session = await running.open(name)
        assert len(session.records()) == records
    return {
        "records": records,
        "verify": records / verify.wall,
        "verify_cpu": records / verify.cpu,
        "resume": records / resume.wall,
        "resume_cpu": records / resume.cpu,
        "bytes": journal.stat().st_size,
    }


WHAT: Final[Mapping[str, Callable[[Path, int], Awaitable[Numbers]]]] = {
    one.__name__: one for one in (reading, writing, children, agents, appends, reopening)
}


async def _measure(what: str, count: int) -> Numbers:
    with tempfile.TemporaryDirectory() as folder:
        return await WHAT[what](Path(folder), count)


if __name__ == "__main__":
    report(asyncio.run(_measure(sys.argv[1], int(sys.argv[2]))))
