"""Plans in the tree: written by agents, run by the engine through the gate, recorded so that they verify and go on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from core.errors import UsageError
from core.fold.bounds import Bounds
from core.fold.plan_report import plan_json
from core.gate.policy_file import Policies
from core.journal import Record, read_journal
from core.models.roles import Models
from core.modules.door import Modules
from core.ports import ChatMessage, ModelEvent, ModuleHost, StreamEnd, TextDelta, Usage, UsageReport
from core.tree.replay import replay
from core.tree.runtime import Runtime
from core.tree.session import Session
from tests.core.tree.fakes import FakeHost, FakeModules, Script, ScriptedModel, World, replies

Answers = Mapping[str, Sequence[str] | str]
"""By the first words of a question: one answer after another, or the same each time."""


class Thinker(ScriptedModel):
    """Agents get what `script` says; questions about plans, which have no opening, get `answers` by their first words."""

    def __init__(self, script: Script, answers: Answers) -> None:
        super().__init__(script)
        self._answers = {
            start: texts if isinstance(texts, str) else list(texts) for start, texts in answers.items()
        }
        self.questions: list[str] = []

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        if len(messages) > 1:
            async for event in super().stream(messages, max_tokens=max_tokens):
                yield event
            return
        question = messages[0].content
        self.questions.append(question)
        start = next(one for one in self._answers if question.startswith(one))
        texts = self._answers[start]
        text = texts if isinstance(texts, str) else texts.pop(0)
        for at in range(0, len(text), 16):
            await asyncio.sleep(0)
            yield TextDelta(text[at : at + 16])
        yield UsageReport(Usage(len(question) // 4, 0, len(text) // 4))
        yield StreamEnd("stop")


def runtime(
    data: Path,
    script: Script,
    *,
    answers: Answers | None = None,
    world: World | None = None,
    bounds: Bounds | None = None,
    policy: str = "",
) -> Runtime:
    """As in `fakes`, with a real clock: a plan has timers."""
    it = world or World()

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return FakeModules(it)

    models = Models({"smart": Thinker(script, answers or {})})
    return Runtime(
        data,
        models,
        FakeHost(),
        bounds=bounds,
        open_modules=open_modules,
        policies=lambda: Policies.from_toml(policy),
    )


def ask(data: Path, script: Script, **options: object) -> tuple[Session, Record, list[Record]]:
    """One task to its end: the session, its answer, its records; and it verifies."""

    async def run() -> tuple[Session, Record]:
        async with runtime(data, script, **options) as opened:  # type: ignore[arg-type]
            session = await opened.open()
            return session, await session.ask("Go")

    session, answer = asyncio.run(run())
    replay(session.journal, verify=True)
    return session, answer, list(read_journal(session.journal.parent).records)


def plan(body: str, head: str = "PLAN audit") -> str:
    return f"I have a plan.\n\n```{head}\n{body}\n```"


def changes(records: Sequence[Record], path: str = "/audit") -> list[tuple[str, str]]:
    return [(one.text("node"), one.text("to")) for one in records if one.kind == "node" and one.agent == path]


async def until(condition: Callable[[], object]) -> None:
    """Wait for `condition`: timers of plans are real, so this looks again and again, not for ever."""
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.002)
    raise AssertionError("it never came to that")


def heard(session: Session, path: str = "/") -> str:
    return "\n".join(one.content for one in session.state.agents[path].history.messages())


TWO = """\
goal: Look
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.read, refs: {text: {step: a, field: stdout, template: "<{}>"}}}
"""


def test_steps_run_in_order_and_the_summary_comes_back(tmp_path: Path) -> None:
    world = World()
    session, answer, records = ask(tmp_path, replies({"/": [plan(TWO), "Done."]}), world=world)
    assert answer.body == "Done."
    assert [text for _, _, text in world.done] == ["one", "<one>"]
    told = heard(session)
    assert "Message from your plan /audit, kept as $audit_1, with $a" in told
    assert "The plan concluded: 2 of 2 steps executed." in told
    assert "Result of b:\n<one>" in told
    assert session.state.agents["/"].table["b"].text() == "<one>"
    assert "tool:t.read" in session.state.agents["/"].table["b"].labels
    assert changes(records)[-1] == ("b", "executed")
    found = plan_json(session.state, session.state.agents["/audit"])
    assert found["path"] == "/audit"
    assert found["status"] == "concluded"
    assert found["versions"] == [{"version": 1, "parent": None, "reason": "planned", "nodes": ["a", "b"]}]


EIGHT = """\
goal: Eight steps, one of which fails
steps:
  - {id: s1, call: t.read, params: {text: one}}
  - {id: s2, call: t.read, params: {text: two}}
  - {id: s3, call: t.read, params: {text: three}}
  - {id: bad, call: t.fail, params: {text: four}}
  - {id: s5, call: t.write, params: {text: five}}
  - {id: s6, call: t.read, params: {text: six}, after: [s1, s2]}
  - {id: s7, call: t.read, params: {text: seven}, after: [s3]}
  - {id: s8, call: t.read, params: {text: eight}}
  - {id: last, call: t.read, params: {text: never}, after: [bad, s8]}
"""


def test_one_step_of_eight_fails(tmp_path: Path) -> None:
    """The seven results are kept, what depended on the failed step says so, and the caller gets one summary."""
    script = replies({"/": [plan(EIGHT), "Done."]})
    session, _, records = ask(
        tmp_path, script, answers={"A step failed.": ['{"skip": false}'], "Plan the": ["no"]}
    )
    told = heard(session)
    assert "The plan came back partial: 7 of 9 steps executed" in told
    assert "- bad (t.fail): failed: it failed" in told
    assert "- last (t.read): skipped: It waited for what did not succeed: bad is failed." in told
    assert "Missing: bad, last." in told or "Missing: last." in told
    assert {"s1", "s5", "s8"} <= session.state.agents["/"].table.keys()
    assert sum(one.kind == "reply" and one.agent == "/audit" for one in records) == 1


AGENTS = """\
goal: Ask somebody
steps:
  - {id: version, call: t.read, params: {text: "6.1"}}
  - {id: cves, agent: researcher, task: "Find CVEs.", role: "You know CVEs.", refs: {kernel: {step: version}}}
  - {id: again, agent: researcher, task: "And once more.", after: [cves]}
  - {id: save, call: t.write, refs: {text: {step: again}}}
"""


def researcher() -> dict[str, list[str]]:
    return {
        "/": [plan(AGENTS), "Done."],
        "/audit/researcher": ["I look.\n\n```WRITE\nnote\n```", "Three CVEs, see $write_1.", "Still three."],
    }


def test_agent_steps_are_children_with_dialogues(tmp_path: Path) -> None:
    world = World()
    session, _, _ = ask(tmp_path, replies(researcher()), world=world)
    child = heard(session, "/audit/researcher")
    assert "You are agent /audit/researcher, called by /audit." in child
    assert "You know CVEs." in child
    assert "with $kernel (text/plain, 3 B)" in child
    assert session.state.agents["/audit/researcher"].table["kernel"].labels == {"tool:t.read"}
    assert "What you can use: $cves, $write_1." in child
    assert [text for _, function, text in world.done if function == "t.write"] == ["note", "Still three."]
    assert "- again (agent researcher): executed, $again" in heard(session)
    tree = session.state
    assert tree.root.spent == sum(
        one.usage.prompt_tokens + one.usage.completion_tokens for one in tree.agents.values()
    )


NESTED = {
    "/": ["```CALL a\nTask.\n```", "Done."],
    "/a": [plan("steps: [{id: x, agent: b, task: Do it.}]"), "A done."],
    "/a/audit/b": [plan("steps: [{id: y, call: t.write, params: {text: deep}}]", "PLAN inner"), "B done."],
}


def test_plans_inside_agents_inside_plans(tmp_path: Path) -> None:
    world = World()
    session, answer, records = ask(tmp_path, replies(NESTED), world=world)
    assert answer.body == "Done."
    assert [text for _, _, text in world.done] == ["deep"]
    assert changes(records, "/a/audit/b/inner")[-1] == ("y", "executed")
    shapes = {view.path: view.kind for view in session.tree()}
    assert shapes["/a/audit"] == shapes["/a/audit/b/inner"] == "plan"
    assert shapes["/a/audit/b"] == "agent"


WRITTEN = """\
steps:
  - {id: a, call: t.read, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}, after: [a]}
"""


def test_a_planner_writes_the_steps_and_a_reflection_concludes(tmp_path: Path) -> None:
    answers = {
        "Plan the steps": [WRITTEN],
        "Judge the evidence": [
            '{"decision": "continue"}',
            '{"decision": "conclude", "answer": "All is well."}',
        ],
    }
    world = World()
    session, _, records = ask(
        tmp_path,
        replies({"/": [plan("goal: Find out", "PLAN mode=reflect"), "Done."]}),
        answers=answers,
        world=world,
    )
    assert [text for _, _, text in world.done] == ["one", "two"]
    assert "Result:\nAll is well." in heard(session)
    asked = [one for one in records if one.kind == "ask"]
    assert [one.text("question") for one in asked] == ["plan", "reflect", "reflect"]
    assert [one.agent for one in asked] == ["/plan"] * 3
    usage = session.state.agents["/plan"].usage
    assert usage.completion_tokens > 0
    assert (
        session.state.root.spent
        == session.state.usage().prompt_tokens + session.state.usage().completion_tokens
    )


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        (plan("steps: [{id: a, call: t.nothing}]"), "is not a function that you have"),
        (plan("steps: [{id: a, call: t.read}]"), "needs the parameter 'text'"),
        (plan("steps: [{id: a, call: t.read, params: {text: x}, after: [a]}]"), "wait for each other"),
        (plan("nonsense"), "a plan is a mapping"),
        (plan("goal: Say hello", "PLAN mode=auto"), "Do it yourself."),
        (plan("goal: Say hello", "PLAN mode=odd"), "must be one of"),
        (plan("steps: [{id: a, call: t.read, params: {text: x}}]", 'PLAN scope="u.*"'), "is not a function"),
    ],
)
def test_a_plan_that_cannot_run_is_explained_and_leaves_no_trace(
    tmp_path: Path, block: str, sentence: str
) -> None:
    session, answer, _ = ask(tmp_path, replies({"/": [block, "Done."]}))
    assert "`PLAN` was not run: " in heard(session)
    assert sentence in heard(session)
    assert list(session.state.agents) == ["/"]
    assert answer.body == "Done."


def test_every_plan_has_a_path_of_its_own(tmp_path: Path) -> None:
    session, _, _ = ask(tmp_path, replies({"/": [plan(TWO), plan(TWO), "Done."]}))
    assert list(session.state.agents) == ["/", "/audit", "/audit-2"]


def test_a_grant_of_the_caller_binds_every_step(tmp_path: Path) -> None:
    """A step is denied like a call of a dialogue: it did not complete, and nothing says why."""
    world = World()
    body = "steps: [{id: a, call: t.destroy, params: {text: all}}]"
    session, _, records = ask(
        tmp_path,
        replies({"/": [plan(body), "Done."]}),
        world=world,
        answers={"A step": ["{}"], "Plan": ["no"]},
    )
    assert world.done == []
    gate = next(one for one in records if one.kind == "gate")
    assert (gate.agent, gate.fields["allow"], gate.text("by")) == ("/audit", False, "impact")
    assert "- a (t.destroy): failed: t.destroy did not complete." in heard(session)


# --- control ----------------------------------------------------------------------------------------------------

HELD = """\
steps:
  - {id: a, call: t.write, params: {text: held}}
  - {id: b, call: t.write, params: {text: after}, after: [a]}
  - {id: c, call: t.read, params: {text: beside}}
"""


class Scene:
    """A session whose plan stands in a tool call until `hold` is set."""

    def __init__(
        self, data: Path, script: Mapping[str, Sequence[str]], answers: Answers | None = None
    ) -> None:
        self.hold = asyncio.Event()
        self.world = World(hold={"held": self.hold})
        self.runtime = runtime(data, replies(script), world=self.world, answers=answers)
        self.session: Session

    async def __aenter__(self) -> Scene:
        await self.runtime.__aenter__()
        self.session = await self.runtime.open()
        self.said = await self.session.say("Go")
        await until(lambda: any(text == "held" for _, _, text in self.world.done))
        return self

    async def __aexit__(self, *exit: object) -> None:
        self.hold.set()
        await self.runtime.__aexit__(None, None, None)
        self.records = list(replay(self.session.journal, verify=True).records)

    async def finish(self) -> Record:
        self.hold.set()
        return await self.session.answer(self.said.n)

    @property
    def texts(self) -> list[str]:
        return [text for _, _, text in self.world.done]


def state_of(scene: Scene, step: str) -> str:
    run = scene.session.state.agents["/audit"].plan
    assert run is not None
    return run.state.nodes[step].state


def test_a_paused_plan_starts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
            await scene.session.pause("/audit")
            scene.hold.set()
            await until(lambda: state_of(scene, "a") == "executed")
            assert "after" not in scene.texts
            assert {view.path: view.state for view in scene.session.tree()} == {
                "/": "waiting",
                "/audit": "paused",
            }
            await scene.session.resume("/audit")
            assert (await scene.finish()).body == "Done."
            assert "after" in scene.texts

    asyncio.run(main())


def test_a_cancelled_plan_has_one_outcome_for_each_step(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
            await scene.session.cancel("/audit")
            assert (await scene.session.answer(scene.said.n)).body == "Done."
            await until(lambda: not scene.world.running)
        return scene

    scene = asyncio.run(main())
    assert "Your child /audit did not finish (cancelled)" in heard(scene.session)
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"]) == ("cancelled", "cancelled")
    results = [one for one in scene.records if one.kind == "result" and one.number("action") == 1]
    assert [one.text("status") for one in results] == ["cancelled"]
    assert "after" not in scene.texts


def test_one_step_can_be_cancelled(tmp_path: Path) -> None:
    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}) as scene:
            await scene.session.cancel("/audit/a")
            assert (await scene.session.answer(scene.said.n)).body == "Done."
        return scene

    scene = asyncio.run(main())
    ended = dict(changes(scene.records))
    assert (ended["a"], ended["b"], ended["c"]) == ("cancelled", "skipped", "executed")
    assert "The plan came back partial" in heard(scene.session)


def test_a_message_to_a_plan_is_thought_about(tmp_path: Path) -> None:
    answers = {"Judge the evidence": ['{"decision": "conclude", "reason": "asked to", "answer": "Stopped."}']}

    async def main() -> Scene:
        async with Scene(tmp_path, {"/": [plan(HELD), "Done."]}, answers) as scene:
            await scene.session.inject("/audit", "Stop here, please.")
            assert (await scene.finish()).body == "Done."
            with pytest.raises(UsageError, match="has ended"):
                await scene.session.inject("/audit", "Too late.")
        return scene

    scene = asyncio.run(main())
    assert "after" not in scene.texts
    assert dict(changes(scene.records))["interjection-1"] == "executed"
    assert "Result:\nStopped." in heard(scene.session)


def test_steps_wait_for_clearance_side_by_side(tmp_path: Path) -> None:
    """Each step asks for itself, whichever is answered first; a step that is denied did not complete."""
    policy = '[scope.default]\nfunctions = ["*"]\nclearance = ["t.write"]'
    body = """\
steps:
  - {id: a, call: t.write, params: {text: one}}
  - {id: b, call: t.write, params: {text: two}}
"""
    world = World()

    async def main() -> Session:
        script = replies({"/": [plan(body), "Done."]})
        async with runtime(
            tmp_path, script, world=world, policy=policy, answers={"A step": ["{}"], "Plan": ["no"]}
        ) as opened:
            session = await opened.open()
            said = await session.say("Go")
            await until(lambda: len(asked(session)) == 2)
            run = session.state.agents["/audit"].plan
            assert run is not None
            await until(lambda: run.state.in_state("waiting_human") == ["a", "b"])
            first, second = asked(session)
            await session.clear(second, True)
            await session.clear(first, False)
            assert (await session.answer(said.n)).body == "Done."
            return session

    session = asyncio.run(main())
    records = list(replay(session.journal, verify=True).records)
    assert [text for _, _, text in world.done] == ["two"]
    assert {"a": "failed", "b": "executed"}.items() <= dict(changes(records)).items()
    assert "- a (t.write): failed: t.write did not complete." in heard(session)


def asked(session: Session) -> list[int]:
    return [one.n for one in session.records() if one.kind == "clearance" and one.text("op") == "ask"]


# --- crashes ----------------------------------------------------------------------------------------------------


def test_a_plan_goes_on_from_every_record_and_no_effect_happens_twice(tmp_path: Path) -> None:
    """As after `kill -9` behind each record of a session with steps, a child agent and a failure."""
    script, answers = researcher(), {"A step failed.": "{}", "Plan the": "no"}
    first = World()
    body = AGENTS + "  - {id: bad, call: t.fail, params: {text: bad}}\n"
    script["/"] = [plan(body), "Done."]

    async def main() -> int:
        async with runtime(tmp_path, replies(script), world=first, answers=answers) as opened:
            session = await opened.open()
            await session.ask("Go")
            records, name = list(session.records()), session.id
        began = next(one.n for one in records if one.kind == "spawn")
        for at in range(began, len(records)):
            world = World()
            async with runtime(tmp_path, replies(script), world=world, answers=answers) as opened:
                copy = await opened.open(await opened.fork(name, at))
                await copy.answer(at)
            replay(copy.journal, verify=True)
            called = {
                (one.agent, one.number("action"))
                for one in records[:at]
                if one.kind == "call" and one.text("function") in ("t.write", "t.fail")
            }
            made = [
                one
                for one in copy.records(at)
                if one.kind == "call" and one.text("function") in ("t.write", "t.fail")
            ]
            effects = [text for _, function, text in world.done if function == "t.write"]
            assert len(called) + len(made) <= 3, f"behind record {at}: {made}"
            assert len(effects) == len(set(effects))
        return len(records) - began

    assert asyncio.run(main()) > 40


JUDGING = {
    "Plan the": WRITTEN,
    "Judge the": '{"decision": "continue", "reason": "go on"}',
    "Look at one": '{"action": "continue"}',
    "A step failed.": '{"steps": [{"id": "instead", "call": "t.read", "params": {"text": "instead"}}]}',
    "Decide whether": '{"achieved": true, "confidence": 0.9, "reasoning": "all there", "final_answer": "There."}',
    "Answer from": "All is there.",
    "Answer the task": "All is there [a].",
    "Write the whole": json.dumps(
        {
            "steps": [
                {"id": "a", "call": "t.read", "params": {"text": "one"}},
                {"id": "b", "call": "t.write", "auto": {"text": "lower(a)"}, "after": ["a"]},
                {"id": "c", "call": "t.read", "params": {"text": "three"}},
            ],
            "confidence": 0.9,
            "branches": [{"step": "c", "when": "a contains 'one'", "set": {"text": "four"}}],
        }
    ),
}


@pytest.mark.parametrize("mode", ["reflect", "nreflect", "orchestrator", "analyze", "profile"])
def test_a_plan_of_every_mode_goes_on_after_a_crash(tmp_path: Path, mode: str) -> None:
    """Behind every few records: it ends, verifies, and makes no call with an effect a second time."""
    script = replies({"/": [plan("goal: Find out", f"PLAN audit mode={mode}"), "Done."]})

    async def main() -> list[str]:
        async with runtime(tmp_path, script, answers=JUDGING) as opened:
            session = await opened.open()
            await session.ask("Go")
            records, name = list(session.records()), session.id
        replay(session.journal, verify=True)
        began = next(one.n for one in records if one.kind == "spawn")
        for at in range(began, len(records), 4):
            world = World()
            async with runtime(tmp_path, script, world=world, answers=JUDGING) as opened:
                copy = await opened.open(await opened.fork(name, at))
                await copy.answer(at)
            replay(copy.journal, verify=True)
            before = sum(one.kind == "call" and one.text("function") == "t.write" for one in records[:at])
            after = sum(function == "t.write" for _, function, _ in world.done)
            assert before + after == 1, f"behind record {at}"
        return [one.text("question") for one in records if one.kind == "ask"]

    questions = asyncio.run(main())
    assert questions[0] == ("profile" if mode == "profile" else "plan")
    assert len(questions) >= 2


def test_a_plan_that_was_cut_off_while_it_was_planned_is_planned_on(tmp_path: Path) -> None:
    more = {"Plan the steps": ["steps: [{id: c, call: t.write, params: {text: three}}]"]}
    script = replies({"/": [plan("goal: Find out"), "Done."]})

    async def main() -> None:
        async with runtime(tmp_path, script, answers={"Plan the steps": [WRITTEN]}) as opened:
            session = await opened.open()
            await session.ask("Go")
            cut = next(one.n for one in session.records() if one.kind == "plan")
            forked = await opened.fork(session.id, cut)
        async with runtime(tmp_path, script, answers=more) as opened:
            copy = await opened.open(forked)
            await copy.answer(cut)
            assert dict(changes(copy.records()))["c"] == "executed"
        replay(copy.journal, verify=True)

    asyncio.run(main())


def test_verification_notices_a_step_that_moved_otherwise(tmp_path: Path) -> None:
    from core.errors import ReplayMismatch
    from tests.core.tree.test_verify import rewrite

    session, _, _ = ask(tmp_path, replies({"/": [plan(TWO), "Done."]}))

    def early(records: list[Record]) -> list[Record]:
        at = next(n for n, one in enumerate(records) if one.kind == "node" and one.text("to") == "executed")
        return [*records[:at], *records[at + 1 :]]

    rewrite(session.journal, early)
    with pytest.raises(ReplayMismatch):
        replay(session.journal, verify=True)
