"""The state tables are complete and hold nothing else: every change that happens is a row, every row happens.

Sessions are folded record by record, random ones and a few that are made for rare rows, and every agent's
state is compared before and after each record.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

import pytest

from docs.reference import states as documented
from iact.core.errors import ModelUnreachable
from iact.core.journal import read_blob, read_journal
from iact.core.ports import ChatMessage, ModelEvent, TextDelta
from iact.core.records.record import Record
from iact.core.tree.agent import AgentState
from iact.core.tree.apply import apply
from iact.core.tree.states import (
    PAUSES,
    TABLE,
    TRANSITIONS,
    Event,
    Guard,
    PauseState,
    PauseTransition,
    Transition,
    event_of,
    guard_of,
)
from iact.core.tree.tree import Tree
from tests.core.session.fakes import ScriptedModel, World, replies, runtime
from tests.core.session.plan_scenes import runtime as waiting_runtime
from tests.core.session.plan_scenes import until as until_later
from tests.core.session.test_control import Scene, Writing, until
from tests.core.session.test_random import Story, live

SEEDS = range(1000, 1060)
Row = tuple[AgentState, Event, Guard, AgentState]


def changes(records: Sequence[Record], folder: Path) -> Iterator[Row | PauseTransition]:
    """Every change of an agent's state in a journal, and every change of a pause."""
    tree = Tree(strict=False, blobs=lambda digest: read_blob(folder, digest))
    for record in records:
        before = {path: tree.state(agent) for path, agent in tree.agents.items()}
        paused = tree.agents[record.agent].paused if record.agent in tree.agents else False
        apply(tree, record)
        yield from _moves(record, tree, paused)
        for path, agent in tree.agents.items():
            old, new = before.get(path, "idle"), tree.state(agent)
            if old == new:
                continue
            event = event_of(record, agent)
            assert event is not None, f"record {record.n} ({record.kind}) changed {path} from {old} to {new}"
            yield old, event, guard_of(event, record, tree, agent), new


def _moves(record: Record, tree: Tree, before: bool) -> Iterator[PauseTransition]:
    if record.kind == "control":
        source: PauseState = "closed" if before else "open"
        target: PauseState = "closed" if tree.agents[record.agent].paused else "open"
        match record.text("op"):
            case "pause":
                yield PauseTransition(source, "pause", target)
            case "resume":
                yield PauseTransition(source, "resume", target)
            case _:
                assert source == target


async def controlled(data: Path) -> Path:
    """A root that waits for a child is paused, resumed and cancelled; it is woken while paused."""
    hold = asyncio.Event()
    script = replies(
        {
            "/": [
                "```CALL_ASYNC a\nTask.\n```\n```QUERY\n```\n```WAIT\n```\n```READ\nafter\n```",
                "```CALL_ASYNC a\nAgain.\n```\n```WAIT\n```",
                "Done.",
            ],
            "/a": ["```WRITE\nheld\n```", "```WRITE\nheld\n```"],
        }
    )
    async with runtime(data, script, world=World(hold={"held": hold})) as opened:
        session = await opened.open()

        async def waits() -> None:
            await until(lambda: session.tree()[0].state == "waiting")

        await session.pause("/")
        await session.say("Go")
        await session.resume("/")
        await waits()
        await session.pause("/")
        await session.resume("/")
        await session.cancel("/")
        await session.pause("/")
        await session.say("Once more")
        await session.resume("/")
        await waits()
        await session.cancel("/")
        assert (await session.ask("And now?")).body == "Done."
        return session.journal.parent


class Failing(ScriptedModel):
    """Nothing answers while `down` is set."""

    down = True

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if self.down:
            raise ModelUnreachable("Nothing answers.")
        async for event in super().stream(messages, max_tokens=max_tokens):
            yield event


async def failing(data: Path) -> Path:
    """A model that fails twice; the user speaks to the failed root, once while paused."""
    script = replies({"/": ["Works again.", "And again."]})
    model = Failing(script)
    async with runtime(data, script, model=model) as opened:
        session = await opened.open()
        assert (await session.ask("Go")).text("status") == "failed"
        await session.pause("/")
        said = await session.say("Again")
        await session.resume("/")
        assert (await session.answer(said.n)).text("status") == "failed"
        model.down = False
        assert (await session.ask("Once more")).text("status") == "ok"
        return session.journal.parent


async def stopped_while_writing(data: Path) -> Path:
    """An agent is paused in the middle of a generation, gets a message while it is paused, and is cancelled in another."""
    async with Writing(data, "/", lambda asked: "x" * 100) as scene:
        await scene.session.pause("/")
        await scene.session.inject("/", "Be brief.", "interrupt")
        await scene.session.resume("/")
        await until(lambda: scene.session.tree()[0].state == "thinking")
        await scene.session.cancel("/")
    return scene.session.journal.parent


async def stopped_while_acting(data: Path) -> Path:
    """A leaf is paused and cancelled in the middle of a call, with its callers waiting above it."""
    async with Scene(data) as scene:
        await scene.session.pause("/")
        await scene.session.resume("/")
        await scene.session.cancel("/a/b")
        await scene.finish()
    return scene.session.journal.parent


async def every_action(data: Path) -> Path:
    """Actions in every order that moves a state; then a message while paused, cancelled there."""
    script = replies(
        {
            "/": [
                "```CALL a\nx\n```\n```READ\ny\n```",
                "```CALL_ASYNC a\nx\n```",
                "```WAIT\n```",
                "```CALL_ASYNC a\nx\n```\n```READ\nz\n```\n```WAIT\n```\n```READ\nz\n```",
                "```QUERY\n```",
                "Done.",
            ],
            "/a": ["ok", "ok", "ok"],
        }
    )
    async with runtime(data, script) as opened:
        session = await opened.open()
        await session.ask("Go")
        await session.pause("/")
        await session.say("Again")
        await session.cancel("/")
        return session.journal.parent


async def asking(data: Path) -> Path:
    """A call waits for clearance, once while paused that opens again."""
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
    async with runtime(data, replies({"/": ["```WRITE\na\n```", "Done."]}), policy=policy) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until(lambda: session.tree()[0].state == "waiting")
        await session.pause("/")
        await session.resume("/")
        await session.clear(next(one.n for one in session.records() if one.kind == "clearance"), True)
        await session.answer(said.n)
        return session.journal.parent


async def random_one(seed: int, data: Path) -> Path:
    story = Story(seed, data)
    tree, _ = await live(story)
    return story.data / str(story.lives) / "sessions" / tree.session


async def planned(data: Path) -> Path:
    """One plan is paused, resumed and ends by itself; another is cancelled while it runs."""
    first, second = (
        f"```PLAN\nsteps: [{{id: a, call: t.write, params: {{text: {text}}}}}]\n```"
        for text in ("one", "two")
    )
    hold = {"one": asyncio.Event(), "two": asyncio.Event()}
    world = World(hold=hold)
    async with waiting_runtime(data, replies({"/": [first, second, "Done."]}), world=world) as opened:
        session = await opened.open()
        said = await session.say("Go")
        await until_later(lambda: len(world.done) == 1)
        await session.pause("/plan")
        await session.resume("/plan")
        hold["one"].set()
        await until_later(lambda: len(world.done) == 2)
        await session.cancel("/plan-2")
        await session.answer(said.n)
        return session.journal.parent


class NoPlanner(Failing):
    """Nobody ever answers a question about a plan."""

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if messages[0].content.startswith("Say what a request is like"):
            yield TextDelta(
                '{"steps": 1, "foreseeable": true, "depends": false, "repeat": true, "branches": false}'
            )
            return
        if len(messages) == 1:
            await asyncio.Event().wait()
        async for event in super().stream(messages, max_tokens=max_tokens):
            yield event


async def in_plan_modes(data: Path) -> Path:
    """Messages in a plan mode reach a root at rest, however it came to that."""
    script = replies({"/": ["Done."]})
    model = NoPlanner(script)
    async with runtime(data, script, model=model) as opened:
        session = await opened.open()

        async def cancelled() -> None:
            await session.say("Look", mode="static")
            assert session.tree()[0].state in ("acting", "waiting")
            await session.cancel("/")

        await cancelled()
        await cancelled()
        await session.say("Tune it", mode="auto")
        await until(lambda: session.tree()[0].state == "waiting")
        await session.cancel("/")
        assert (await session.ask("Go")).text("status") == "failed"
        await cancelled()
        model.down = False
        await session.ask("Go")
        await cancelled()
        return session.journal.parent


@cache
def observed() -> Counter[Row | PauseTransition]:
    """How often each change happened in all sessions together."""
    seen: Counter[Row | PauseTransition] = Counter()
    with TemporaryDirectory() as place:
        scenes: list[Callable[[Path], Coroutine[None, None, Path]]] = [
            controlled,
            failing,
            stopped_while_writing,
            stopped_while_acting,
            every_action,
            asking,
            planned,
            in_plan_modes,
            *(partial(random_one, seed) for seed in SEEDS),
        ]
        for number, scene in enumerate(scenes):
            folder = asyncio.run(scene(Path(place) / str(number)))
            seen.update(changes(read_journal(folder).records, folder))
    return seen


def test_every_change_of_an_agents_state_is_in_the_table() -> None:
    for row in observed():
        if not isinstance(row, PauseTransition):
            source, event, guard, target = row
            assert (source, event, guard) in TABLE, row
            assert TABLE[source, event, guard].target == target, row


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: f"{row.source} {row.event} {row.guard}")
def test_every_row_of_the_table_happens(row: Transition) -> None:
    assert observed()[row.source, row.event, row.guard, row.target]


def test_pauses_change_as_their_table_says_and_in_no_other_way() -> None:
    assert {row for row in observed() if isinstance(row, PauseTransition)} == set(PAUSES)


def test_every_state_has_a_way_in_and_a_way_out() -> None:
    states = set(get_args(AgentState))
    assert {row.source for row in TRANSITIONS} == states
    assert {row.target for row in TRANSITIONS} == states - {"idle"}


def test_the_documentation_is_what_the_tables_say() -> None:
    written = documented.PAGE.read_text(encoding="utf-8")
    assert written == documented.page(), "run: python -m docs.reference.states"
