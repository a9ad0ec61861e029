"""A bug in any kind of task costs the agent that it is for an error in the journal; the session and its siblings go on.

Nothing is left behind either: once a session is closed, none of its tasks is there any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest

from iact.core.errors import IactError
from iact.core.gate.gate import Ticket
from iact.core.language.actions import ActionSpec
from iact.core.models.roles import Models
from iact.core.modules.client import OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.outcome import StateChange
from iact.core.modules.registry import Start
from iact.core.ports import (
    CatalogueEntry,
    ChatMessage,
    MemoryQuestion,
    ModelEvent,
    ModuleHost,
    Recollection,
    Report,
    Right,
)
from iact.core.records.record import Record
from iact.core.session.child_calls import ChildCalls
from iact.core.session.function_calls import FunctionCalls
from iact.core.session.plan_runner import PlanRunner
from iact.core.session.runtime import Runtime
from iact.core.session.scheduler import Ending
from iact.core.session.session import Session
from iact.core.session.steps import StepExecutor
from iact.core.stored.replay import replay
from iact.core.tree.agent import Agent, Step
from iact.core.tree.tree import Tree
from tests.core.session.fakes import Asked, FakeHost, FakeModules, World
from tests.core.session.memories import FakeMemory
from tests.core.session.plan_scenes import Thinker, plan, until
from tests.sealing import give_key

CHILD = "```CALL_ASYNC broken\nBreak.\n```\n```CALL_ASYNC well\nWork.\n```\n```WAIT\n```"
"""The root has two children: one that meets a bug, and one that does not."""

STEPS = plan(
    "goal: Look\n"
    "steps:\n"
    "  - {id: a, call: t.read, params: {text: fine}}\n"
    "  - {id: b, call: t.read, params: {text: break}}\n"
)
REFLECTS = plan(
    "goal: Look\nsteps:\n  - {id: a, call: t.read, params: {text: fine}}\n", "PLAN audit mode=reflect"
)


class Bug(Exception):
    """One of ours."""


class Breaking(Thinker):
    """Its stream meets a bug where its script, or its answer to a question, is this word."""

    async def warm(self) -> None:
        raise Bug("in a model that gets ready")  # in all of these tests: it harms none of the sessions

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if len(messages) == 1:
            raise Bug("in an answer")
        async for event in super().stream(messages, max_tokens=max_tokens):
            yield event


class BreakingModules(FakeModules):
    """A call of which the text is "break" meets a bug, and so does starting a module ahead."""

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        if call.arguments.get("text") == "break":
            raise Bug("in a call")
        if call.arguments.get("text") == "state" and call.on_state is not None:
            await call.on_state(StateChange("running", (), ""))
        return await super().call(ticket, call, on_output=on_output, on_artifact=on_artifact, report=report)

    async def warm(
        self, module: str, report: Report, start: Start, *, right: Right = "work", agent: str = ""
    ) -> None:
        raise Bug("in a module that is started ahead")


class BreakingHost(FakeHost):
    async def catalogue(self) -> Sequence[CatalogueEntry]:
        raise Bug("in the catalogue")


class BreakingMemory(FakeMemory):
    async def recall(self, ask: MemoryQuestion) -> Recollection:
        if ask.agent == "/broken":
            raise Bug("in memory")
        return await super().recall(ask)


def script(first: str, child: str) -> Callable[[Asked], str]:
    """The root says `first` once and then that it is done, the child that breaks `child`, and the other that it is well."""

    def say(asked: Asked) -> str:
        if asked.path == "/":
            return first if asked.turn == 0 else "Done."
        if asked.path == "/well":
            return "```READ\nfine\n```" if asked.turn == 0 else "All is well."
        if child == "break":
            raise Bug("in a reply")
        return child if asked.turn == 0 else "It went on."

    return say


def run(
    data: Path,
    first: str,
    child: str = "It went on.",
    *,
    host: FakeHost | None = None,
    warm: Sequence[str] = (),
) -> tuple[Session, list[Record], Record]:
    """Ask the root twice: the session, its records, and the second answer."""
    give_key(data)

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return BreakingModules(World())

    async def main() -> tuple[Session, list[Record], Record]:
        before = asyncio.all_tasks()
        models = Models({"smart": Breaking(script(first, child), {})})
        async with Runtime(
            data, models, host or FakeHost(), open_modules=open_modules, memory=BreakingMemory(), warm=warm
        ) as runtime:
            session = await runtime.open()
            assert (await session.ask("Go")).text("status") == "ok"
            again = await session.ask("Again")
            await until(lambda: warm == () or notices(session.records()))
            assert session.failure is None
            await runtime.close(session.id)
            left = [task for task in asyncio.all_tasks() - before if session.id in task.get_name()]
            assert not left
            records = list(session.records())
        assert asyncio.all_tasks() == before
        return session, records, again

    session, records, again = asyncio.run(asyncio.wait_for(main(), 60))
    replay(session.journal, verify=True)
    return session, records, again


def notices(records: Sequence[Record]) -> list[str]:
    return [one.body for one in records if one.kind == "notice" and one.text("code") == "internal"]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # the bugs are on purpose


@pytest.mark.parametrize(
    "child",
    ["break", "```READ\nbreak\n```", "```READ\nfine\n```\n```READ\nbreak\n```\n```READ\nfine\n```"],
    ids=["a model's reply", "a call", "one of several calls"],
)
def test_a_bug_in_the_task_of_an_agent_ends_its_work_with_an_error(tmp_path: Path, child: str) -> None:
    session, records, again = run(tmp_path, CHILD, child)
    ends = {one.agent: one for one in records if one.kind == "reply" and one.agent != "/"}
    assert ends["/broken"].text("status") == "failed"
    assert "internal error" in ends["/broken"].body
    assert (ends["/well"].text("status"), ends["/well"].body) == ("ok", "All is well.")
    assert not any(agent.actions or agent.active for agent in session.state.agents.values())
    assert again.text("status") == "ok"


def test_a_bug_while_an_agent_recalls_ends_its_work(tmp_path: Path) -> None:
    _, records, _ = run(tmp_path, CHILD)
    ends = {one.agent: one.text("status") for one in records if one.kind == "reply" and one.agent != "/"}
    assert ends == {"/broken": "failed", "/well": "ok"}


def test_a_bug_while_an_agent_waits_ends_its_work_and_that_of_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = ChildCalls.wait

    async def wait(self: ChildCalls, agent: Agent, *rest: object) -> None:
        if agent.path == "/broken":
            raise Bug("in a wait")
        await held(self, agent, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ChildCalls, "wait", wait)
    monkeypatch.setattr(BreakingMemory, "recall", FakeMemory.recall)
    _, records, _ = run(tmp_path, CHILD, "```CALL_ASYNC deep\nWork.\n```\n```WAIT\n```")
    ends = {one.agent: one.text("status") for one in records if one.kind == "reply" and one.agent != "/"}
    assert ends == {"/broken": "failed", "/broken/deep": "cancelled", "/well": "ok"}


def test_a_bug_when_a_module_tells_of_its_state_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is met in the task of whoever listens to the module, which goes on."""

    async def moved(self: FunctionCalls, agent: Agent, spec: ActionSpec, change: StateChange) -> None:
        raise Bug("in a change of state")

    monkeypatch.setattr(FunctionCalls, "_moved_by_itself", moved)
    _, records, again = run(tmp_path, "```READ\nstate\n```")
    assert [one.text("status") for one in records if one.kind == "result"] == ["ok"]
    assert len(notices(records)) == 1
    assert again.text("status") == "ok"


def test_a_bug_in_a_step_of_a_plan_costs_the_plan_that_step(tmp_path: Path) -> None:
    session, records, again = run(tmp_path, STEPS)
    nodes = {one.text("node"): one.text("to") for one in records if one.kind == "node"}
    assert nodes["a"] == "executed"
    assert nodes["b"] == "failed"
    assert not session.state.agents["/audit"].active
    assert again.text("status") == "ok"


def test_a_bug_in_a_question_about_a_plan_costs_the_answer(tmp_path: Path) -> None:
    session, _, again = run(tmp_path, REFLECTS)
    assert not session.state.agents["/audit"].active
    assert again.text("status") == "ok"


def test_a_bug_in_the_task_of_a_plan_ends_it_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def execute(self: PlanRunner, plan: Agent) -> None:
        raise Bug("in a plan")

    monkeypatch.setattr(PlanRunner, "execute", execute)
    _, records, again = run(tmp_path, STEPS)
    (end,) = [one for one in records if one.kind == "reply" and one.agent == "/audit"]
    assert (end.text("status"), "internal error" in end.body) == ("failed", True)
    assert again.text("status") == "ok"


def test_a_bug_while_modules_are_loaded_is_told_and_agents_begin_without_them(tmp_path: Path) -> None:
    _, records, again = run(tmp_path, "Done.", host=BreakingHost())
    assert len(notices(records)) == 1
    assert "(modules)" in notices(records)[0]
    assert again.text("status") == "ok"


def test_a_bug_while_a_module_is_started_ahead_is_told(tmp_path: Path) -> None:
    _, records, again = run(tmp_path, "Done.", warm=("t",))
    assert len(notices(records)) == 1
    assert again.text("status") == "ok"


@pytest.mark.no_prefix_law("both sessions share one model")
@pytest.mark.parametrize("where", ["while an error is recorded", "between two steps"])
def test_a_bug_that_nobody_can_be_told_of_stops_its_session_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Its state can't be trusted any more; opened again, the session is what its journal says, and goes on."""
    give_key(tmp_path)
    broken: list[str] = []
    ended, right = StepExecutor.end, Tree.next_step

    def end(self: StepExecutor, agent: Agent, status: Ending, why: str) -> None:
        if self.live.tree.session in broken:
            raise Bug("in an error")
        ended(self, agent, status, why)

    def next_step(self: Tree, path: str) -> Step | None:
        child = self.agents.get("/well")
        child_ended = child is not None and not child.active
        if self.session in broken and path == "/" and child_ended:
            raise Bug("in the tree")
        return right(self, path)

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return FakeModules(World())

    async def main() -> None:
        models = Models({"smart": Breaking(script(CHILD, "break"), {})})
        async with Runtime(tmp_path, models, FakeHost(), open_modules=open_modules) as runtime:
            one, other = await runtime.open(), await runtime.open()
            broken.append(one.id)
            if where == "between two steps":
                monkeypatch.setattr(Tree, "next_step", next_step)
            monkeypatch.setattr(StepExecutor, "end", end)
            await one.say("Go")
            with pytest.raises(IactError, match="An internal error stopped this session"):
                await one.answer(0)
            assert (await other.ask("Go")).text("status") == "ok"
            await runtime.close(one.id)
            broken.clear()
            again = await runtime.open(one.id)
            assert (await again.answer(0)).text("status") == "ok"

    asyncio.run(asyncio.wait_for(main(), 60))
