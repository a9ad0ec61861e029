"""Everything that somebody thinks about a plan while it runs: planning, reflecting, patching, judging.

Each thought is one self-contained model call, bounded by the plan's budget, with a safe default when
no reply can be had. Reflections, observers, patches and interjections stand in the plan as nodes (a new
version adds them), so the trail shows what was thought when, and under which version.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING

from core.plan import answers, questions
from core.plan.admission import DONE_OR_RUNNING, NOT_STARTED, graft, spawned
from core.plan.answers import Verdict
from core.plan.asking import NO_REPLY, Asking
from core.plan.contracts import as_text, is_empty
from core.plan.model import WORK, Node, NodeKind, PlanError
from core.plan.modes.base import Ask
from core.plan.planner import Planner
from core.plan.recovery import Exhausted, RecoveryRefused
from core.plan.seams import Asker, Question, QuestionKind
from core.ports import JSON

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine


Thought = Callable[[], Coroutine[object, object, None]]


class Deliberation:
    """The thinking of one `PlanEngine`, its steps' writing apart (`planner`)."""

    def __init__(self, engine: PlanEngine, asker: Asker | None, *, growing: bool) -> None:
        self._engine = engine
        self._asking = Asking(engine, asker)
        self.planner = Planner(engine, self._asking, growing=growing)
        self._busy = 0
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: list[tuple[str, str]] = []
        self._numbers: dict[str, int] = {}
        self._fallback: str | None = None

    @property
    def calls(self) -> int:
        """Model calls so far."""
        return self._asking.calls

    def pause(self) -> None:
        """Ask nothing more until `resume`."""
        self._asking.unpaused.clear()

    def resume(self) -> None:
        """Go on asking."""
        self._asking.unpaused.set()

    @property
    def busy(self) -> bool:
        """Whether a thought is under way, or the plan still being written."""
        return self._busy > 0 or self.planner.growing

    # --- starting thoughts ----------------------------------------------------------------------------

    def begin(self) -> None:
        """There are no steps yet: ask for them, unless somebody is writing them."""
        if self.planner.growing:
            return
        if not self._asking.possible:
            self._engine.warn("The plan has a goal but no steps, and there is no planner to write them.")
            return
        self._start(self.planner.plan)

    def go_on(self, answered: Sequence[tuple[QuestionKind, str]], *, unplanned: bool) -> None:
        """After a history was folded: its answered thoughts count, and its unanswered messages still wait.

        `answered`: questions of that history with their answers. `unplanned`: it ended while the planner wrote.
        """
        engine, state = self._engine, self._engine.state
        thoughts = [record for record in state.nodes.values() if record.node.kind not in WORK]
        replans = sum(version.reason.startswith("replan") for version in state.versions)
        counted = len(answered) or sum(record.state == "executed" for record in thoughts) + replans
        self._asking.calls = min(counted, engine.limits.model_calls)
        for record in thoughts:
            if record.node.kind != "interjection":
                continue
            if record.state in ("pending", "ready"):
                engine.holds += 1
                self._messages.append((record.node.id, record.node.task))
            elif record.state == "executed":
                engine.goal += f"\n\n{record.node.task}"
        if unplanned and self._asking.possible:
            self._start(self.planner.plan_on)

    def ended(self, node: str) -> None:
        """A tool or agent node has ended."""
        if not self._asking.possible or self._engine.concluded:
            return
        ask = self._engine.mode.after(self._engine.state, node) if self._asking.affordable else None
        if ask is not None:
            self._think(ask)

    def recover(self, node: str) -> None:
        """A node failed for good: ask for a patch, if something needs it."""
        engine, state = self._engine, self._engine.state
        if engine.concluded:
            return
        races = [one for one in state.nodes[node].serves if state.any_of(one)]
        if (
            races
            and len(races) == len(state.nodes[node].serves)
            and all(state.join(r) != "lost" for r in races)
        ):
            engine.ladder.give_up(node)
            return
        rung = engine.ladder.attempt_patch(node)
        if isinstance(rung, Exhausted):
            return
        if not self._asking.possible or not engine.mode.patches or not self._asking.affordable:
            engine.ladder.give_up(node)
            return
        self._start(partial(self._patch, node))

    def at_rest(self) -> bool:
        """Nothing runs and nothing can start. Whether a thought changes that."""
        engine = self._engine
        if self._messages and not engine.cancelled:
            self._start(partial(self._interjection, *self._messages.pop(0)))
            return True
        if not self._asking.possible or engine.cancelled or not engine.state.versions:
            return False
        ask = engine.mode.at_rest(engine.state)
        if ask is not None and self._asking.affordable:
            self._think(ask)
            return True
        if engine.mode.replans and not engine.concluded and self._broken() and self._asking.affordable:
            try:
                rung = engine.ladder.request_replan()
            except RecoveryRefused as refused:
                engine.warn(f"No new plan was asked for: {refused}.")
                return False
            if not isinstance(rung, Exhausted):
                self._start(
                    partial(self.planner.replan, "some steps failed and what follows on them can't run")
                )
                return True
        return False

    def interject(self, text: str) -> None:
        """Put a person's message into the plan; everything that has not started waits behind it."""
        node = self._thought("interjection", "a person's message", task=text, start=False)
        self._engine.holds += 1
        self._engine.gate_all()
        self._messages.append((node, text))

    def stop(self) -> None:
        """Abort every thought."""
        self.planner.growing = False
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    def _broken(self) -> bool:
        """Whether a failure keeps something from being reached."""
        state, superseded = self._engine.state, self._engine.superseded
        return any(one not in superseded and not state.superfluous(one) for one in state.work_in("failed"))

    def _think(self, ask: Ask) -> None:
        start = {
            "reflect": self._reflect,
            "observe": self._observe,
            "analyze": self._analyze,
            "synthesize": self._synthesize,
            "own": self._own,
        }[ask.kind]
        if ask.holds:
            self._engine.holds += 1
        self._start(partial(start, ask), released=ask.holds)

    def _start(self, thought: Thought, *, released: bool = False) -> None:
        self._busy += 1
        self._engine.group.create_task(self._whole(thought, released))

    async def _whole(self, thought: Thought, released: bool) -> None:
        """One thought from start to end; what it held is let go, whatever came of it."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if not self._engine.cancelled:
                await thought()
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        finally:
            self._tasks.discard(task)
            self._busy -= 1
            if released:
                self._let_go()
        self._engine.pump()

    def _let_go(self) -> None:
        self._engine.holds -= 1
        if not self._engine.holds:
            self._engine.release()

    # --- the nodes that stand for thoughts --------------------------------------------------------------

    def _thought(
        self, kind: NodeKind, reason: str, *, spawned_by: str = "", task: str = "", start: bool = True
    ) -> str:
        """Add a node that stands for a thought, and let it run."""
        engine = self._engine
        node = self._fresh_id(kind)
        added = Node(node, kind, task=task or reason, spawned_by=spawned_by)
        self.planner.add(f"{kind}: {reason}" if engine.state.versions else reason, [added])
        if start:
            engine.emit(node, "dispatched")
        return node

    def _fresh_id(self, kind: str) -> str:
        while True:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            name = f"{kind}-{self._numbers[kind]}"
            if name not in self._engine.state.nodes:
                return name

    def _answered(self, node: str, text: str | None, answer: JSON) -> None:
        if text is not None:
            self._engine.thought(node, answer)
        elif self._engine.state.nodes[node].state == "running":
            self._engine.emit(node, "broke", detail=NO_REPLY)

    # --- judging ----------------------------------------------------------------------------------------

    async def _reflect(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        node = self._thought("reflection", ask.reason or "what was found so far")
        text = await self._asking.ask(
            Question("reflect", "smart", questions.reflect(engine.goal, state, ask.subject), node)
        )
        verdict = answers.verdict(text or "", final=ask.final)
        verdict = engine.mode.decided(ask, verdict)
        self._answered(node, text, {"decision": verdict.decision, "reason": verdict.reason})
        await self._follow(verdict, charge=True)

    async def _interjection(self, node: str, message: str) -> None:
        engine, state = self._engine, self._engine.state
        engine.emit(node, "dispatched")
        engine.mode.interjected()
        engine.concluded = False
        try:
            if engine.mode.on_interjection == "replan":
                engine.goal += f"\n\n[User follow-up]: {message}"
                engine.thought(node, {"decision": "replan"})
                await self._follow(Verdict("replan", message), charge=False)
                return
            done = [r.node.id for r in questions.work(state) if r.ended is not None]
            asked = Question("interject", "smart", questions.reflect(engine.goal, state, done, message), node)
            text = await self._asking.ask(asked)
            verdict = answers.verdict(text or "", final=False)
            self._answered(node, text, {"decision": verdict.decision, "reason": verdict.reason})
            engine.goal += f"\n\n{message}"
            await self._follow(verdict, charge=False)
        finally:
            self._let_go()

    async def _follow(self, verdict: Verdict, *, charge: bool) -> None:
        """Do what a verdict says."""
        engine = self._engine
        if engine.cancelled or verdict.decision == "continue":
            return
        if verdict.decision == "conclude":
            engine.conclude(verdict.reason, verdict.answer)
            return
        try:
            rung = engine.ladder.request_replan(charge=charge)
        except RecoveryRefused as refused:
            engine.warn(f"No new plan was asked for: {refused}.")
            return
        if isinstance(rung, Exhausted):
            engine.warn(f"No new plan was asked for: {rung.why}.")
            return
        await self.planner.replan(verdict.reason or "the evidence does not suffice")

    async def _observe(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        seen = ask.subject[0]
        node = self._thought("observer", f"the result of {seen}", spawned_by=seen)
        waiting = [r.node.id for r in questions.work(state) if r.state in NOT_STARTED]
        text = await self._asking.ask(
            Question("observe", "fast", questions.observe(engine.goal, state.nodes[seen], waiting), node)
        )
        seen_as = answers.observation(text or "")
        self._answered(node, text, {"action": seen_as.action, "reason": seen_as.reason})
        if engine.concluded:
            return
        if seen_as.action == "inject":
            self._inject(seen, seen_as.steps)
        elif seen_as.action == "cancel":
            for one in sorted({*seen_as.cancel} & {*waiting}):
                if state.nodes[one].state in NOT_STARTED:
                    engine.emit(
                        one, "cancelled", detail=seen_as.reason or f"Cancelled after the result of {seen}."
                    )
        elif seen_as.action == "reflect":
            more = engine.mode.wants_reflection(state, seen)
            if more is not None:
                self._think(more)

    def _inject(self, seen: str, steps: Sequence[Node]) -> None:
        """Follow-up steps of an observer; what is wrong with them is only warned of."""
        engine = self._engine
        known = set(engine.state.in_state(*DONE_OR_RUNNING, *NOT_STARTED))
        try:
            checked = engine.admission.check_renamed(steps, known)
        except PlanError as error:
            engine.warn(f"Steps that were to follow on {seen!r} could not be used: {error}")
            return
        self.planner.add(f"inject: after the result of {seen}", spawned(checked.nodes.values(), seen))

    async def _analyze(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        node = self._thought("reflection", "was the goal reached?")
        text = await self._asking.ask(
            Question("analyze", "smart", questions.analyze(engine.goal, state), node)
        )
        analysis = answers.analysis(text or "")
        verdict = engine.mode.analyzed(analysis)
        self._fallback = analysis.final_answer or self._fallback
        self._answered(node, text, {"achieved": analysis.achieved, "confidence": analysis.confidence})
        if verdict.decision == "continue":
            engine.flags.append(f"The goal was not reached: {analysis.reasoning}")
            engine.answer = pasted(state_outputs(engine))
        elif verdict.decision == "conclude":
            engine.conclude(verdict.reason, verdict.answer)
        else:
            await self._follow(verdict, charge=True)

    async def _synthesize(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        node = self._thought("aggregator", "the answer")
        asked = Question("synthesize", "smart", questions.synthesize(engine.goal, state, ask.reason), node)
        text = await self._asking.ask(asked)
        self._answered(node, text, text)
        if text is not None and not is_empty(text):
            engine.answer = text
        else:
            engine.answer = self._fallback or engine.answer or pasted(state_outputs(engine))

    async def _own(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        question = engine.mode.question(state, ask, engine.goal, self.planner.infos())
        node = self._thought("aggregator" if question.kind == "reason" else "reflection", ask.reason)
        text = await self._asking.ask(dataclasses.replace(question, node=node))
        self._answered(node, text, text)
        try:
            nodes, answer = engine.mode.answered(state, ask, text, engine.catalogue)
        except PlanError as error:
            engine.warn(f"The repaired plan could not be used: {error}")
            return
        if answer is not None:
            engine.answer = answer
        if nodes:
            engine.superseded.update(state.work_in("failed", "skipped"))
            drop = state.work_in(*NOT_STARTED, "failed_retryable")
            engine.adopt(state.plan.revise(ask.reason, add=nodes, drop=drop))

    async def judged(self, node: Node, output: JSON) -> bool:
        """Whether a model finds that the output keeps the node's contract; no answer means no."""
        asked = Question(
            "judge", "fast", questions.judge(node, node.contract.judgement or "", output), node.id
        )
        text = await self._asking.ask(asked)
        return text is not None and answers.judged(text)

    # --- patching -----------------------------------------------------------------------------------------

    async def _patch(self, failed: str) -> None:
        engine, state = self._engine, self._engine.state
        record = state.nodes[failed]
        node = self._thought("micro_planner", f"a replacement for {failed}", spawned_by=failed)
        family = {one for d in record.node.dependencies for one in (d, *state.nodes[d].serves)} - {failed}
        siblings = [state.nodes[one] for one in sorted(family)]
        asked = Question(
            "patch", "fast", questions.patch(engine.goal, record, siblings, self.planner.infos()), node
        )
        text = await self._asking.ask(asked)
        patch = answers.patch(text or "")
        self._answered(
            node, text, {"steps": [n.id for n in patch.steps], "skip": patch.skip, "reason": patch.reason}
        )
        if engine.concluded or not (patch.steps or patch.skip):
            return
        try:
            new = self._checked(patch.steps)
            version = graft(state, failed, spawned(new, failed))
        except PlanError as error:
            engine.warn(f"The replacement for {failed!r} could not be used: {error}")
            return
        engine.superseded.add(failed)
        engine.adopt(version)

    def _checked(self, steps: Sequence[Node]) -> Sequence[Node]:
        """Steps of a patch, which may refer to what has run or runs; a patch may have none.

        Raises:
            PlanError: they may not join.
        """
        engine = self._engine
        if not steps:
            return ()
        known = set(engine.state.in_state(*DONE_OR_RUNNING))
        return tuple(engine.admission.check_renamed(steps, known).nodes.values())


def state_outputs(engine: PlanEngine) -> dict[str, JSON]:
    """The outputs of finished work, by id, in the order of the plan."""
    return {r.node.id: r.output for r in questions.work(engine.state) if r.state == "executed"}


def pasted(outputs: dict[str, JSON]) -> str:
    """All results one after another: what is left when nobody could put them into words."""
    return (
        "\n\n---\n\n".join(f"{one}: {as_text(output)}" for one, output in outputs.items())
        or "(goal not achieved)"
    )
