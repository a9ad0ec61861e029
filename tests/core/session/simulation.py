"""Whole sessions in virtual time: orders of completion by the thousand, with people, failures and kills in between.

The session, its journal and its plans are the real ones. What is replaced is the world: a loop whose time passes only
when everybody waits and whose threads end at once, a model and modules that take as long as dice say, a person who does
something now and then. Equal seeds give equal schedules.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from iact.core.errors import ModelUnreachable, UsageError
from iact.core.gate.gate import Ticket
from iact.core.gate.policy_file import Policies
from iact.core.models.roles import Models
from iact.core.modules.client import OnArtifact, Outcome, TimedOut
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.ports import (
    ChatMessage,
    ModelEvent,
    ModuleHost,
    Report,
    StreamEnd,
    TextDelta,
    Usage,
    UsageReport,
)
from iact.core.records.parts import Bounds
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.plan.fakes import VirtualClock, VirtualLoop
from tests.core.session.fakes import FakeHost, FakeModules, World, replies
from tests.core.session.kept_files import KeptFiles
from tests.core.session.plan_scenes import Answers, Thinker

_T = TypeVar("_T")
_LONGEST = 100_000.0
"""Seconds, virtual ones, after which a session hangs."""


class SimulationLoop(VirtualLoop):
    """A virtual loop in which work for a thread is done at once, so that it takes no time and no order of its own."""

    def run_in_executor(self, executor: object, func: Callable[..., _T], *args: object) -> asyncio.Future[_T]:
        done: asyncio.Future[_T] = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:
            done.set_exception(error)
        return done


def run(task: Coroutine[Any, Any, _T]) -> _T:
    """Run in virtual time, from 0 on."""
    loop = SimulationLoop()
    try:
        return loop.run_until_complete(task)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@dataclass(frozen=True)
class Scenario:
    """A session in which a plan is run. `agents`: replies by path; `answers`: to questions about the plan.

    `asks`: calls of `t.write` wait for a person. `fails`: share of the model's answers about the plan that fail.
    `writes`: calls of `t.write` make a file of the name that they are given, and versions are kept of the files.
    """

    plan: str
    mode: str = "static"
    agents: Mapping[str, Sequence[str]] = field(default_factory=dict)
    answers: Answers = field(default_factory=dict)
    asks: bool = False
    fails: float = 0.0
    writes: bool = False


class _Model(Thinker):
    def __init__(self, scenario: Scenario, dice: random.Random) -> None:
        opening = f"```PLAN p mode={scenario.mode}\n{scenario.plan}\n```"
        super().__init__(replies({"/": [opening, *["Done."] * 9], **scenario.agents}), scenario.answers)
        self._dice = dice
        self._fails = scenario.fails

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if len(messages) > 1:
            async for event in super().stream(messages, max_tokens=max_tokens):
                await asyncio.sleep(self._dice.uniform(0, 2))
                yield event
            return
        question = messages[0].content
        start = next((one for one in self._answers if question.startswith(one)), None)
        text = self._answers[start] if start is not None else "{}"
        assert isinstance(text, str)
        fails = self._dice.random() < self._fails
        for at in range(0, len(text), 40):
            await asyncio.sleep(self._dice.uniform(0, 2))
            if fails and self._dice.random() < 0.5:
                raise ModelUnreachable("The endpoint is gone.")
            yield TextDelta(text[at : at + 40])
        yield UsageReport(Usage(len(question) // 4, 0, len(text) // 4))
        yield StreamEnd("stop")


class _Modules(FakeModules):
    """Calls take their time before and after what they do."""

    def __init__(self, world: World, dice: random.Random, workspace: Path | None) -> None:
        """`workspace`: where calls write; None: nowhere."""
        super().__init__(world)
        self._dice = dice
        self._workspace = workspace

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        try:
            async with asyncio.timeout(call.timeout):
                await asyncio.sleep(self._dice.uniform(0, 4))
                if self._workspace is not None and call.function == "t.write":
                    ((call.copy or self._workspace) / str(call.arguments["text"])).write_text(str(call.call))
                outcome = await super().call(
                    ticket, call, on_output=on_output, on_artifact=on_artifact, report=report
                )
                await asyncio.sleep(self._dice.uniform(0, 4))
                return outcome
        except TimeoutError:
            return TimedOut("")


async def _person(session: Session, dice: random.Random, often: int) -> None:
    """Answers what is asked; and pauses, resumes, says and cancels something, so many times."""
    for _ in range(often):
        await asyncio.sleep(dice.uniform(0, 6))
        tree = session.state
        paths = list(tree.agents)
        plan = tree.agents.get("/p")
        steps = [f"/p/{one}" for one in plan.plan.state.nodes] if plan is not None and plan.plan else []
        try:
            match dice.randrange(6):
                case 0 | 1:
                    await session.pause(dice.choice(paths))
                case 2:
                    await session.inject(
                        dice.choice(paths), "Mind the gap.", dice.choice(("queue", "deliver", "interrupt"))
                    )
                case 3 if steps:
                    await session.cancel(dice.choice(steps))
                case 4 if dice.random() < 0.2:
                    await session.cancel(dice.choice(paths))
                case _:
                    await _resume_all(session)
        except UsageError:
            continue
    await _resume_all(session)


async def _resume_all(session: Session) -> None:
    for agent in list(session.state.agents.values()):
        if agent.paused:
            await session.resume(agent.path)


async def _decider(session: Session, dice: random.Random) -> None:
    """Answers every question that a person is asked, sooner or later."""
    while True:
        await asyncio.sleep(dice.uniform(0.1, 5))
        for agent in list(session.state.agents.values()):
            for pending in list(agent.actions):
                if pending.asked and pending.answer is None:
                    await session.clear(pending.asked, dice.random() < 0.7)


def explore(data: Path, scenario: Scenario, seed: int) -> list[Record]:
    """Play one schedule to its end; its records, which verify."""
    world = World()
    found = replay(play(data, scenario, seed, world), verify=True)
    _check(found.tree.agents, world, list(found.records))
    if scenario.writes:
        _check_copies(found.tree.agents, list(found.records), data)
    return list(found.records)


def play(data: Path, scenario: Scenario, seed: int, world: World) -> Path:
    """Play one schedule to its end, through kills and reopenings; its journal."""
    dice = random.Random(seed)
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]' if scenario.asks else ""

    versions = KeptFiles() if scenario.writes else None

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return _Modules(world, dice, workspace if versions is not None else None)

    def runtime() -> Runtime:
        models = Models({"smart": _Model(scenario, dice)})
        return Runtime(
            data, models, FakeHost(), clock=VirtualClock(), bounds=Bounds(), open_modules=open_modules,
            policies=lambda: Policies.from_toml(policy), versions=versions,
        )  # fmt: skip

    async def main() -> Path:
        name, kills = "", dice.randrange(3)
        while True:
            async with runtime() as opened:
                session = await (opened.open(name) if name else opened.open())
                if not name:
                    name = session.id
                    await session.say("Go")
                helpers = [
                    asyncio.create_task(_person(session, dice, dice.randrange(5) if kills >= 0 else 0)),
                    asyncio.create_task(_decider(session, dice)),
                ]
                try:
                    async with asyncio.timeout(dice.uniform(1, 60) if kills > 0 else _LONGEST):
                        await helpers[0]
                        await session.answer(0)
                        return session.journal
                except TimeoutError:
                    assert kills > 0, "it hangs"
                    kills -= 1
                finally:
                    for one in helpers:
                        one.cancel()

    return run(main())


def _check(agents: Mapping[str, Any], world: World, records: Sequence[Record]) -> None:
    """What must hold however it went: each effect once for each call, an outcome for each call, nothing left open."""
    calls = [n for n, function, _ in world.done if function == "t.write"]
    assert len(calls) == len(set(calls)), "an effect happened twice"
    assert not any(agent.actions for agent in agents.values() if not agent.active)
    for agent in agents.values():
        if agent.plan is not None and not agent.active:
            assert not agent.plan.owed
            assert not agent.plan.asking
    opened = {one.n for one in records if one.kind == "call" and one.text("function").startswith("t.")}
    closed = {one.number("call") for one in records if one.kind == "result"}
    assert opened <= closed, f"calls without an outcome: {opened - closed}"


def _check_copies(agents: Mapping[str, Any], records: Sequence[Record], data: Path) -> None:
    """Of what was written in copies, there is what was taken over, and nothing else; and that is done first."""
    place = next((data / "sessions").iterdir())
    there = {one.name: one.read_text() for one in (place / "workspace").iterdir()}
    raced = {one.text("node"): one for one in records if one.kind == "fire" and one.text("race")}
    taken = {
        one.text("node"): one
        for one in records
        if one.kind == "copy" and one.text("op") == "take" and one.text("version")
    }
    for node in raced:
        file = f"by-{node}"
        assert (file in there) == (node in taken), f"{node}: {there}"
        if node in taken:
            assert there[file] == str(taken[node].number("call"))
    run = agents["/p"].plan if "/p" in agents else None
    if run is not None:
        done = {one for one in raced if run.state.nodes[one].state == "executed"}
        assert done <= taken.keys()
        assert not run.taking
    assert not (place / "copies").exists()
