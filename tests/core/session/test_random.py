"""A model-based test: random trees, behaviour, controls and crashes; after each run the laws must hold.

Each run is a function of its seed: models, clock and disk are in memory or in the event loop itself. A
crash is a `kill -9`: the session is dropped in the middle of whatever it does, its journal is cut at a
random byte behind the last record that anyone was told of, and a new runtime goes on with it. What a
real process leaves behind when it is killed is looked at in `tests/acceptance/test_kill.py`.

`IACT_TEST_SCALE` multiplies the number of runs: 20,000 of them take about ten minutes of one processor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from iact.core.errors import IactError
from iact.core.journal.file import read_journal
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from iact.core.tree.tree import Tree
from tests.core.session.fakes import Asked, ScriptedModel, World, runtime
from tests.rounds import rounds

T = TypeVar("T")

RUNS = rounds(100)
BATCH = 100
BOUNDS = (
    Bounds(depth=5, agents=40, turns=6, tokens=10_000_000),
    Bounds(depth=3, agents=6, turns=12, tokens=30_000),
)

_ACTIONS = (
    "```READ\n{text}\n```",
    "```WRITE\n{text}\n```",
    "```WRITE\n{text}\n```",
    "```t.destroy\n{text}\n```",
    "```t.fail\n{text}\n```",
    "```t.lose\n{text}\n```",
    "```t.nothing\n{text}\n```",
    "```CALL {child}\n{text} $read_1\n```",
    "```CALL {child} intent=0\n{text}\n```",
    "```CALL_ASYNC {child}\n{text}\n```",
    "```CALL_ASYNC {child} scope=t.read\n{text}\n```",
    "```WAIT\n```",
    "```WAIT {child}\n```",
    "```QUERY\n```",
    "```VAR v\n{text}\n```",
    "```SHOW v\n```",
    "```SHOW write_1 lines=1-2\n```",
    '```READ text="unclosed\n```',
    "```SQL\nSELECT 1\n```",
)


def behave(seed: int, asked: Asked) -> str:
    """What a model says: a function of the seed, the agent and its turn, as a model at temperature 0."""
    dice = random.Random(f"{seed} {asked.path} {asked.turn}")
    eagerness = 0.85 if asked.path.count("/") < 3 else 0.4
    parts = [f"Thought {dice.random():.3f}."]
    if dice.random() < eagerness - 0.1 * asked.turn:
        for number in range(dice.randint(1, 4)):
            text = f"{asked.path} {asked.turn} {number}"
            parts.append(dice.choice(_ACTIONS).format(text=text, child=dice.choice("abc")))
            if dice.random() < 0.1:
                parts.append("And then the result will be 42.")
    elif dice.random() < 0.2:
        parts.append("See $read_1 and $write_1.")
    return "\n\n".join(parts)


class Disk(ThreadPoolExecutor):
    """Writes in the event loop itself, a few rounds later; what counts as durable is a function of the dice."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(1)
        self._dice = dice

    def submit(self, fn: Callable[..., T], /, *args: object, **named: object) -> Future[T]:
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()  # as a thread would have: what has begun to be written can't be called off
        loop = asyncio.get_running_loop()

        def write(rounds: int) -> None:
            if rounds:
                loop.call_soon(write, rounds - 1)
                return
            try:
                future.set_result(fn(*args, **named))
            except BaseException as error:
                future.set_exception(error)

        write(self._dice.randrange(12))
        return future


@dataclass
class Story:
    """One run: what was acknowledged to whom, over all lives of the session."""

    seed: int
    data: Path
    world: World = field(default_factory=World)
    acknowledged: list[Record] = field(default_factory=list)
    lives: int = 0

    def open(self) -> Runtime:
        self.lives += 1

        def script(asked: Asked) -> str:
            return behave(self.seed, asked)

        return runtime(
            self.data / str(self.lives),
            script,
            world=self.world,
            bounds=BOUNDS[self.seed % 2],
            model=ScriptedModel(script),
        )


async def meddle(story: Story, session: Session, dice: random.Random, steps: int) -> None:
    """Random controls at random moments."""
    for _ in range(steps):
        for _ in range(dice.randint(0, 30)):
            await asyncio.sleep(0)
        path = dice.choice([view.path for view in session.tree()])
        match dice.randrange(8):
            case 0:
                await session.pause(path)
            case 1 | 2:
                await session.resume(path)
            case 3:
                if dice.random() < 0.5:
                    await session.cancel(path)
            case 4 | 5:
                mode = dice.choice(["queue", "deliver", "interrupt"])
                story.acknowledged.append(await session.inject(path, f"note {dice.random()}", mode))  # type: ignore[arg-type]
            case 6:
                story.acknowledged.append(await session.say(f"more {dice.random()}"))
            case 7:
                await session.set_intent(dice.randint(0, 2))


async def crash(story: Story, opened: Runtime, session: Session, dice: random.Random) -> None:
    """End this life at once and leave a journal cut at a random byte that nobody was told of."""
    told = session.records()[-1].n if session.records() else 0
    folder = session.journal.parent
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    target = story.data / str(story.lives + 1) / "sessions" / folder.name
    data = session.journal.read_bytes()
    trailer = re.search(rb"\n<!-- /%d [0-9a-f]{8} -->\n\n" % told, data)
    keep = trailer.end() if trailer is not None else 0
    target.parent.mkdir(parents=True)
    shutil.copytree(folder, target)
    (target / "journal.md").write_bytes(data[: dice.randint(keep, len(data))])


async def live(story: Story) -> tuple[Tree, list[Record]]:
    """Play a whole story; gives the tree and the records at its end."""
    dice = random.Random(story.seed)
    asyncio.get_running_loop().set_default_executor(Disk(random.Random(f"disk {story.seed}")))
    crashes = dice.choice([0, 0, 1, 2])
    session_id: str | None = None
    for life in range(crashes + 1):
        opened = story.open()
        await opened.__aenter__()
        session = await opened.open(session_id)
        session_id = session.id
        if life == 0:
            story.acknowledged.append(await session.say("Begin."))
        await meddle(story, session, dice, dice.randint(0, 6))
        if life < crashes:
            await crash(story, opened, session, dice)
            with contextlib.suppress(IactError, asyncio.CancelledError, BaseExceptionGroup):
                await opened.__aexit__(None, None, None)
            continue
        for view in session.tree():
            await session.resume(view.path)
        await settle(session)
        await opened.__aexit__(None, None, None)
        result = replay(session.journal, verify=True)
        return result.tree, list(result.records)
    raise AssertionError("the last life returns")


async def settle(session: Session) -> None:
    """Wait until every agent rests."""
    async with asyncio.timeout(300):
        while any(agent.active for agent in session.state.agents.values()):
            await session._live.moved()


def check_laws(story: Story, tree: Tree, records: list[Record]) -> None:
    """What must hold after every run, whatever happened in it."""
    numbers = {record.n for record in records}
    # Nothing acknowledged is lost.
    for told in story.acknowledged:
        assert any(record.body == told.body and record.kind == told.kind for record in records), told
    # One outcome for each action: none is left, and no call has two.
    assert not any(agent.actions for agent in tree.agents.values())
    outcomes = Counter(
        (one.fields.get("turn"), one.fields.get("action"))
        for one in records
        if one.kind in ("result", "select")
    )
    assert all(count == 1 for count in outcomes.values()), outcomes
    # No call of impact ≥ 1 runs twice, and none without a record that a crash may have torn away afterwards.
    effects = Counter(
        (call, function, text) for call, function, text in story.world.done if function != "t.read"
    )
    assert all(count == 1 for count in effects.values()), effects
    for call, function, _ in story.world.done:
        if function != "t.read":
            assert call in numbers
    # Authority only shrinks.
    for agent in tree.agents.values():
        if agent.caller != "user":
            mine, above = tree.grant_of(agent.path), tree.grant_of(agent.caller)
            assert mine.intent <= above.intent
            assert all(above.scope.contains(name) for name in tree.functions if mine.scope.contains(name))
    # One pool: what the root has used is the sum over the tree, and nothing stays reserved.
    used = sum(agent.usage.prompt_tokens + agent.usage.completion_tokens for agent in tree.agents.values())
    assert tree.root.account.spent == used
    assert all(agent.account.reserved == {} for agent in tree.agents.values())
    # Every message is taken at most once.
    taken = Counter(n for one in records for n in (one.fields.get("took") or []) if isinstance(n, int))  # type: ignore[union-attr]
    assert all(count == 1 for count in taken.values()), taken
    # Nothing was done that the intent of its moment did not allow.
    allowed = {
        (one.fields["turn"], one.fields["action"], one.agent)
        for one in records
        if one.kind == "gate" and one.fields["allow"]
    }
    for one in records:
        if one.kind == "call" and one.text("function").startswith("t."):
            assert (one.fields["turn"], one.fields["action"], one.agent) in allowed


@pytest.mark.parametrize("batch", range(max(1, RUNS // BATCH)))
def test_the_laws_hold_in_random_sessions(
    tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No power fails here, so nothing need be forced out of the system's cache.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(os, "fdatasync", lambda descriptor: None)
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        story = Story(seed, tmp_path / str(seed))
        tree, records = asyncio.run(live(story))
        check_laws(story, tree, records)
        assert read_journal(story.data / str(story.lives) / "sessions" / tree.session).torn == 0
        shutil.rmtree(story.data)
