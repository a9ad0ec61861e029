"""Consecutive calls that only read overlap in time; everything told of them keeps the order written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest

from iact.core.gate.clearance import ClearanceRequest
from iact.core.gate.gate import Answer
from iact.core.records.record import Record
from iact.core.session.monitor import Authorities
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.test_control import until


def read(text: str, function: str = "READ") -> str:
    return f"```{function}\n{text}\n```\n"


def running(world: World, count: int) -> bool:
    return len(world.running) == count


def play(
    data: Path, script: Mapping[str, Sequence[str]], *, release: Sequence[str] = ()
) -> tuple[list[Record], ScriptedModel, World]:
    """Play a session in which texts of `release` are held until all of them run, and are let go in that order."""
    world = World(hold={text: asyncio.Event() for text in release})
    model = ScriptedModel(replies(script))

    async def main() -> Path:
        async with runtime(data, replies(script), model=model, world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            for done, text in enumerate(release):
                await until(partial(running, world, len(release) - done))
                world.hold[text].set()
                await until(partial(running, world, len(release) - done - 1))
            await session.answer(said.n)
            return session.journal

    records = list(replay(asyncio.run(main()), verify=True).records)
    return records, model, world


def results(records: Sequence[Record]) -> list[str]:
    return [record.body for record in records if record.kind == "result"]


def test_reads_overlap_and_their_feedback_keeps_the_written_order(tmp_path: Path) -> None:
    script = {"/": [read("one") + read("two") + read("three"), "Done."]}
    records, model, _ = play(tmp_path, script, release=["three", "two", "one"])
    assert results(records) == ["one", "two", "three"]
    kinds = [record.kind for record in records if record.kind in ("call", "result")]
    assert kinds == ["call"] * 3 + ["result"] * 3
    heard = model.asked[1].newest
    places = [heard.index(f"`:\n```\n{text}\n") for text in ("one", "two", "three")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "second",
    [
        read("write", "WRITE"),
        "```READ text=$read_1\n```\n",
        read("first"),
        "```VAR v\nx\n```\n",
        "```CALL a\nHi.\n```\n",
        "```READ nothing=1\n```\n",
        "```t.nothing\n```\n",
    ],
    ids=[
        "writes",
        "needs the result before",
        "is the same call",
        "is settled in its turn",
        "calls a child",
        "is a mistake",
        "is unknown",
    ],
)
def test_what_must_wait_for_its_turn_waits_and_so_does_what_follows(tmp_path: Path, second: str) -> None:
    script = {"/": [read("first") + second + read("third"), "Done."], "/a": ["Hello."]}
    records, _, world = play(tmp_path, script, release=["first"])
    order = [
        (record.kind, record.number("action")) for record in records if record.kind in ("call", "result")
    ]
    assert order[:2] == [("call", 0), ("result", 0)]
    assert world.done[-1][2] == "third"


def test_no_more_than_eight_run_at_a_time(tmp_path: Path) -> None:
    texts = [f"t{n}" for n in range(20)]
    records, _, _ = play(tmp_path, {"/": ["".join(map(read, texts)), "Done."]})
    assert results(records) == texts
    running = most = 0
    for record in records:
        running += {"call": 1, "result": -1}.get(record.kind, 0)
        most = max(most, running)
    assert most == 8


def held(data: Path, world: World) -> tuple[ScriptedModel, dict[str, list[str]]]:
    script = {
        "/": ["```CALL a\nRead.\n```", "Root done."],
        "/a": [read("one") + read("two") + read("three"), "Read."],
    }
    return ScriptedModel(replies(script), crashes=True), script


def test_a_cancelled_agent_ends_all_that_it_reads(tmp_path: Path) -> None:
    world = World(hold={"one": asyncio.Event(), "three": asyncio.Event()})
    model, script = held(tmp_path, world)

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), model=model, world=world) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: len(world.running) == 2)
            await session.cancel("/a")
            await session.answer(said.n)
            assert not world.running
            return session.journal

    records = replay(asyncio.run(main()), verify=True).records
    outcomes = [record.text("status") for record in records if record.kind == "result"]
    assert outcomes == ["cancelled"] * 3


def test_reads_that_a_closed_session_left_open_are_made_again(tmp_path: Path) -> None:
    world = World(hold={"one": asyncio.Event()})
    model, script = held(tmp_path, world)

    async def begin() -> str:
        async with runtime(tmp_path, replies(script), model=model, world=world) as opened:
            session: Session = await opened.open()
            await session.say("Go")
            await until(lambda: len(world.done) == 3 and len(world.running) == 1)
            return session.id

    async def go_on(session_id: str) -> Path:
        async with runtime(tmp_path, replies(script), model=model, world=world) as opened:
            session = await opened.open(session_id)
            world.hold = {}
            await session.answer(0)
            return session.journal

    records = list(replay(asyncio.run(go_on(asyncio.run(begin()))), verify=True).records)
    assert results(records) == ["one", "two", "three"]
    assert [text for _, _, text in world.done] == ["one", "two", "three"] * 2
    assert sum(record.kind == "call" and record.agent == "/a" for record in records) == 3


class Endpoint:
    """Says yes to all, after others had their chance to be asked as well."""

    def __init__(self) -> None:
        self.open = self.most = 0

    async def ask(self, request: ClearanceRequest) -> Answer:
        self.open += 1
        self.most = max(self.most, self.open)
        for _ in range(20):
            await asyncio.sleep(0)
        self.open -= 1
        return Answer(True, "")


def test_an_agent_has_one_question_at_a_time(tmp_path: Path) -> None:
    endpoint = Endpoint()
    script = {"/": [read("one") + read("two") + read("three"), "Done."]}

    async def main() -> Path:
        authorities = Authorities(endpoint=endpoint)
        async with runtime(tmp_path, replies(script), authorities=authorities) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    assert results(replay(asyncio.run(main()), verify=True).records) == ["one", "two", "three"]
    assert endpoint.most == 1
