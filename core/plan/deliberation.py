"""Everything that somebody thinks about a plan while it runs: planning, reflecting, patching, judging.

Each thought is one self-contained model call, bounded by the plan's budget, with a safe default when
no reply can be had. Reflections, observers, patches and interjections stand in the plan as nodes (a new
version adds them), so the trail shows what was thought when, and under which version.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Container, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from core.errors import ModelError
from core.plan import answers, questions
from core.plan.answers import Verdict
from core.plan.contracts import as_text, is_empty
from core.plan.forms import read_plan, read_step
from core.plan.model import WORK, Node, NodeKind, PlanError, Ref, make_plan
from core.plan.modes.base import Ask
from core.plan.recovery import Exhausted, RecoveryRefused
from core.plan.seams import Asker, FunctionInfo, Question, QuestionKind
from core.plan.streaming import StepReader
from core.plan.validate import PlanInvalid, check
from core.ports import JSON

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine

_NO_REPLY: Final = "No reply could be had from the model."


Thought = Callable[[], Coroutine[object, object, None]]


class Deliberation:
    """The thinking of one `PlanEngine`. `calls`: model calls so far."""

    def __init__(self, engine: PlanEngine, asker: Asker | None, *, growing: bool) -> None:
        self.calls = 0
        self.goal = engine.state.plan.goal
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self._engine = engine
        self._asker = asker
        self._growing = growing
        self._busy = 0
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: list[tuple[str, str]] = []
        self._reader = StepReader()
        self._held: dict[str, Node] = {}
        self._problems: list[str] = []
        self._numbers: dict[str, int] = {}
        self._fallback: str | None = None

    @property
    def busy(self) -> bool:
        """Whether a thought is under way, or the plan still being written."""
        return self._busy > 0 or self._growing

    # --- starting thoughts ----------------------------------------------------------------------------

    def begin(self) -> None:
        """There are no steps yet: ask for them, unless somebody is writing them."""
        if self._growing:
            return
        if self._asker is None:
            self._engine.warn("The plan has a goal but no steps, and there is no planner to write them.")
            return
        self._start(self._plan)

    def go_on(self, answered: Sequence[tuple[QuestionKind, str]], *, unplanned: bool) -> None:
        """After a history was folded: its answered thoughts count, and its unanswered messages still wait.

        `answered`: questions of that history with their answers. `unplanned`: it ended while the planner wrote.
        """
        state = self._engine.state
        thoughts = [record for record in state.nodes.values() if record.node.kind not in WORK]
        replans = sum(version.reason.startswith("replan") for version in state.versions)
        counted = len(answered) or sum(record.state == "executed" for record in thoughts) + replans
        self.calls = min(counted, self._engine.limits.model_calls)
        for record in thoughts:
            if record.node.kind != "interjection":
                continue
            if record.state in ("pending", "ready"):
                self._engine.holds += 1
                self._messages.append((record.node.id, record.node.task))
            elif record.state == "executed":
                self.goal += f"\n\n{record.node.task}"
        if unplanned and self._asker is not None:
            self._start(self._plan_on)

    def ended(self, node: str) -> None:
        """A tool or agent node has ended."""
        if self._asker is None or self._engine.concluded:
            return
        ask = self._engine.mode.after(self._engine.state, node) if self._affordable() else None
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
        if self._asker is None or not engine.mode.patches or not self._affordable():
            engine.ladder.give_up(node)
            return
        self._start(partial(self._patch, node))

    def at_rest(self) -> bool:
        """Nothing runs and nothing can start. Whether a thought changes that."""
        engine = self._engine
        if self._messages and not engine.cancelled:
            self._start(partial(self._interjection, *self._messages.pop(0)))
            return True
        if self._asker is None or engine.cancelled or not engine.state.versions:
            return False
        ask = engine.mode.at_rest(engine.state)
        if ask is not None and self._affordable():
            self._think(ask)
            return True
        if engine.mode.replans and not engine.concluded and self._broken() and self._affordable():
            try:
                rung = engine.ladder.request_replan()
            except RecoveryRefused as refused:
                engine.warn(f"No new plan was asked for: {refused}.")
                return False
            if not isinstance(rung, Exhausted):
                self._start(partial(self._replan, "some steps failed and what follows on them can't run"))
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
        self._growing = False
        self._stopped = True
        for task in self._tasks:
            task.cancel()

    def _broken(self) -> bool:
        """Whether a failure keeps something from being reached."""
        engine, state = self._engine, self._engine.state
        for one in state.in_state("failed"):
            if state.nodes[one].node.kind not in WORK or one in engine.superseded:
                continue
            if not state.superfluous(one):
                return True
        return False

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

    # --- asking ---------------------------------------------------------------------------------------

    def _affordable(self) -> bool:
        engine = self._engine
        bound = engine.limits.model_calls
        if engine.mode.max_calls is not None:
            bound = min(bound, engine.mode.max_calls)
        return self.calls < bound and not engine.bound

    async def _ask(self, question: Question, each: Callable[[str], None] | None = None) -> str | None:
        """The reply's text, or None if none can be had or afforded."""
        engine = self._engine
        if self._asker is None or not self._affordable():
            return None
        self.calls += 1
        await self.unpaused.wait()
        text: list[str] = []
        try:
            async for piece in self._asker.ask(question):
                text.append(piece)
                if engine.observer is not None:
                    engine.observer.on_text(question, piece)
                if each is not None:
                    each(piece)
        except ModelError as error:
            engine.warn(f"{_NO_REPLY} {error}")
            return None
        except Exception as error:
            engine.warn(f"{_NO_REPLY} ({type(error).__name__}: {error})")
            return None
        return "".join(text)

    def _infos(self) -> Sequence[FunctionInfo]:
        return self._engine.catalogue.all() if self._engine.catalogue is not None else ()

    def _thought(
        self, kind: NodeKind, reason: str, *, spawned_by: str = "", task: str = "", start: bool = True
    ) -> str:
        """Add a node that stands for a thought, and let it run."""
        engine = self._engine
        node = self._fresh_id(kind)
        added = Node(node, kind, task=task or reason, spawned_by=spawned_by)
        engine.adopt(engine.state.plan.revise(f"{kind}: {reason}", add=[added]) if engine.state.versions
                     else dataclasses.replace(engine.state.plan.revise(reason, add=[added]), version=1, parent=None))  # fmt: skip
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
            self._engine.emit(node, "broke", detail=_NO_REPLY)

    # --- planning -------------------------------------------------------------------------------------

    async def _plan(self) -> None:
        engine = self._engine
        opening = engine.mode.opening(self.goal, self._infos())
        if opening is not None:
            await self._open(opening)
            return
        question = Question("plan", "smart", questions.plan(self.goal, self._infos()))
        text = await self._ask(question, self._read)
        if text is None:
            engine.warn("No plan could be had, so nothing was done.")
            return
        if self._finish_reading():
            await self._corrected(question, text)

    async def _open(self, question: Question) -> None:
        """The mode's own opening, with one corrected try."""
        engine = self._engine
        for _ in range(2):
            text = await self._ask(question)
            if text is None:
                engine.warn("No plan could be had, so nothing was done.")
                return
            try:
                self._add("profile", engine.mode.opened(text, engine.catalogue))
            except PlanError as error:
                engine.warn(f"The plan could not be used: {error}")
                question = Question("correct", "smart", questions.correct(question.text, text, [str(error)]))
            else:
                return

    async def _corrected(self, question: Question, text: str) -> None:
        """The planner's one corrected try; steps that have started stay as they are."""
        engine = self._engine
        running = [one for one, node in engine.state.plan.nodes.items() if node.kind in WORK]
        problems = [
            *self._problems,
            *([f"These steps run already, don't write them again: {', '.join(running)}."] if running else []),
        ]
        nodes = await self._steps(
            Question("correct", "smart", questions.correct(question.text, text, problems))
        )
        if nodes is None:
            engine.warn("The plan could not be used, also after one correction.", *self._problems)
            return
        self._add("corrected", nodes)

    async def _plan_on(self) -> None:
        """The planner was cut off: what it wrote stands, and a step that it writes again is the one that stands."""
        engine, state = self._engine, self._engine.state
        reason = "the plan was cut off while it was being written"
        text = await self._ask(
            Question("plan", "smart", questions.replan(self.goal, self._infos(), state, reason))
        )
        if text is None:
            return
        room = engine.limits.nodes - sum(r.node.kind in WORK for r in state.nodes.values())
        try:
            written = read_plan(answers.plan_text(text), id=state.plan.id).nodes.values()
            rest = make_plan(state.plan.id, [one for one in written if one.id not in state.nodes])
            if not rest.nodes:
                return
            known = [
                one for one in state.plan.nodes if state.nodes[one].state not in ("cancelled", "skipped")
            ]
            checked = check(
                rest, engine.catalogue, known=known, max_nodes=max(room, 0), agents=engine.mode.agents
            )
        except PlanError as error:
            engine.warn(f"The rest of the plan could not be used: {error}")
            return
        engine.warn(*checked.warnings)
        self._add("planned on", list(checked.nodes.values()))

    async def _replan(self, reason: str) -> None:
        await self._replanned(reason)

    async def _replanned(self, reason: str) -> bool:
        """Ask for further steps in place of those that have not run; one corrected try."""
        engine, state = self._engine, self._engine.state
        question = Question("replan", "smart", questions.replan(self.goal, self._infos(), state, reason))
        text = await self._ask(question)
        nodes = self._parsed(text) if text is not None else None
        if nodes is None and text is not None:
            correction = questions.correct(question.text, text, self._problems)
            nodes = await self._steps(Question("correct", "smart", correction))
        if nodes is None or engine.cancelled:
            engine.warn("No usable new plan could be had; the old one stands.")
            return False
        gone = [one for one in state.in_state("pending", "ready", "blocked", "failed_retryable")
                if state.nodes[one].node.kind in WORK]  # fmt: skip
        engine.superseded.update(
            one for one in state.in_state("failed") if state.nodes[one].node.kind in WORK
        )
        engine.adopt(state.plan.revise(f"replan: {reason}", add=nodes, drop=gone, finished=[]))
        return True

    async def _steps(self, question: Question) -> tuple[Node, ...] | None:
        text = await self._ask(question)
        return self._parsed(text) if text is not None else None

    def _parsed(self, text: str) -> tuple[Node, ...] | None:
        """The valid steps in a reply, with ids of their own; None and `_problems` if it has none."""
        engine, state = self._engine, self._engine.state
        kept = set(state.in_state("executed", "running", "waiting_human"))
        room = engine.limits.nodes - sum(r.node.kind in WORK for r in state.nodes.values())
        try:
            plan = read_plan(answers.plan_text(text), id=state.plan.id)
            nodes = renamed(plan.nodes.values(), taken=state.nodes, suffix=f"-v{state.plan.version + 1}")
            checked = check(
                make_plan(plan.id, nodes),
                engine.catalogue,
                known=kept,
                max_nodes=max(room, 0),
                agents=engine.mode.agents,
            )
        except PlanError as error:
            self._problems = list(error.problems) if isinstance(error, PlanInvalid) else [str(error)]
            return None
        engine.warn(*checked.warnings)
        return tuple(checked.nodes.values())

    # --- a plan that is still being written -------------------------------------------------------------

    def write(self, piece: str) -> None:
        """The next piece from whoever writes the plan."""
        self._read(piece)

    def written(self) -> None:
        """The writer is done; what is wrong goes into the warnings."""
        self._growing = False
        if self._finish_reading():
            self._engine.warn(*self._problems)

    def _read(self, piece: str) -> None:
        for raw in self._reader.feed(piece):
            self._arrived(raw)
        self._engine.pump()

    def _arrived(self, raw: JSON) -> None:
        """Hold a complete step until what it depends on has arrived; then it may run."""
        try:
            node = read_step(raw)
        except PlanError as error:
            self._problems.append(str(error))
            return
        if node.id in self._held or node.id in self._engine.state.nodes:
            self._problems.append(f"Two steps have the id {node.id!r}; give each its own.")
            return
        self._held[node.id] = node
        while self._admit_some():
            pass

    def _admit_some(self) -> bool:
        present = self._engine.state.plan.nodes
        able = [n for n in self._held.values() if all(d in present for d in n.dependencies)]
        return bool([n for n in able if self._admitted(n)])

    def _admitted(self, node: Node) -> bool:
        engine = self._engine
        present = engine.state.plan.nodes
        room = engine.limits.nodes - sum(n.kind in WORK for n in present.values())
        try:
            check(
                make_plan("step", [node]),
                engine.catalogue,
                known=present.keys(),
                max_nodes=room,
                agents=engine.mode.agents,
            )
        except PlanError:
            return False
        del self._held[node.id]
        self._add("written", [node])
        return True

    def _finish_reading(self) -> bool:
        """Take what is left, with dangling references pruned. Whether something is wrong."""
        engine = self._engine
        for raw in self._reader.close():
            self._arrived(raw)
        begun = any(node.kind in WORK for node in engine.state.plan.nodes.values())
        if not begun and not self._held and not self._problems:
            nodes = self._parsed(self._reader.text)
            if nodes is not None:
                self._add("planned", nodes)
            return nodes is None
        if self._held:
            present = engine.state.plan.nodes
            room = engine.limits.nodes - sum(n.kind in WORK for n in present.values())
            try:
                rest = make_plan(engine.state.plan.id, self._held.values())
                checked = check(
                    rest,
                    engine.catalogue,
                    known=present.keys(),
                    max_nodes=max(room, 0),
                    agents=engine.mode.agents,
                )
            except PlanError as error:
                self._problems.extend(error.problems if isinstance(error, PlanInvalid) else [str(error)])
                return True
            engine.warn(*checked.warnings)
            self._held.clear()
            self._add("written", list(checked.nodes.values()))
        return bool(self._problems)

    def _add(self, reason: str, nodes: Sequence[Node]) -> None:
        """The version that adds `nodes`; the first one if there is none yet."""
        engine = self._engine
        version = engine.state.plan.revise(reason, add=nodes)
        if not engine.state.versions:
            version = dataclasses.replace(version, version=1, parent=None)
        engine.adopt(version)

    # --- judging ----------------------------------------------------------------------------------------

    async def _reflect(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        node = self._thought("reflection", ask.reason or "what was found so far")
        text = await self._ask(
            Question("reflect", "smart", questions.reflect(self.goal, state, ask.subject), node)
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
                self.goal += f"\n\n[User follow-up]: {message}"
                engine.thought(node, {"decision": "replan"})
                await self._follow(Verdict("replan", message), charge=False)
                return
            done = [r.node.id for r in questions.work(state) if r.ended is not None]
            asked = Question("interject", "smart", questions.reflect(self.goal, state, done, message), node)
            text = await self._ask(asked)
            verdict = answers.verdict(text or "", final=False)
            self._answered(node, text, {"decision": verdict.decision, "reason": verdict.reason})
            self.goal += f"\n\n{message}"
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
        await self._replanned(verdict.reason or "the evidence does not suffice")

    async def _observe(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        seen = ask.subject[0]
        node = self._thought("observer", f"the result of {seen}", spawned_by=seen)
        waiting = [r.node.id for r in questions.work(state) if r.state in ("pending", "ready", "blocked")]
        text = await self._ask(
            Question("observe", "fast", questions.observe(self.goal, state.nodes[seen], waiting), node)
        )
        seen_as = answers.observation(text or "")
        self._answered(node, text, {"action": seen_as.action, "reason": seen_as.reason})
        if engine.concluded:
            return
        if seen_as.action == "inject":
            self._inject(seen, seen_as.steps)
        elif seen_as.action == "cancel":
            for one in sorted({*seen_as.cancel} & {*waiting}):
                if state.nodes[one].state in ("pending", "ready", "blocked"):
                    engine.emit(
                        one, "cancelled", detail=seen_as.reason or f"Cancelled after the result of {seen}."
                    )
        elif seen_as.action == "reflect":
            more = engine.mode.wants_reflection(state, seen)
            if more is not None:
                self._think(more)

    def _inject(self, seen: str, steps: Sequence[Node]) -> None:
        """Follow-up steps of an observer; what is wrong with them is only warned of."""
        engine, state = self._engine, self._engine.state
        room = engine.limits.nodes - sum(r.node.kind in WORK for r in state.nodes.values())
        try:
            nodes = renamed(steps, taken=state.nodes, suffix=f"-v{state.plan.version + 1}")
            known = set(state.in_state("executed", "running", "waiting_human", "ready", "pending", "blocked"))
            checked = check(make_plan("more", nodes), engine.catalogue, known=known, max_nodes=max(room, 0))
        except PlanError as error:
            engine.warn(f"Steps that were to follow on {seen!r} could not be used: {error}")
            return
        spawned = [dataclasses.replace(one, spawned_by=seen) for one in checked.nodes.values()]
        self._add(f"inject: after the result of {seen}", spawned)

    async def _analyze(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        node = self._thought("reflection", "was the goal reached?")
        text = await self._ask(Question("analyze", "smart", questions.analyze(self.goal, state), node))
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
        asked = Question("synthesize", "smart", questions.synthesize(self.goal, state, ask.reason), node)
        text = await self._ask(asked)
        self._answered(node, text, text)
        if text is not None and not is_empty(text):
            engine.answer = text
        else:
            engine.answer = self._fallback or engine.answer or pasted(state_outputs(engine))

    async def _own(self, ask: Ask) -> None:
        engine, state = self._engine, self._engine.state
        question = engine.mode.question(state, ask, self.goal, self._infos())
        node = self._thought("aggregator" if question.kind == "reason" else "reflection", ask.reason)
        text = await self._ask(dataclasses.replace(question, node=node))
        self._answered(node, text, text)
        try:
            nodes, answer = engine.mode.answered(state, ask, text, engine.catalogue)
        except PlanError as error:
            engine.warn(f"The repaired plan could not be used: {error}")
            return
        if answer is not None:
            engine.answer = answer
        if nodes:
            failed = [
                one for one in state.in_state("failed", "skipped") if state.nodes[one].node.kind in WORK
            ]
            engine.superseded.update(failed)
            gone = state.in_state("pending", "ready", "blocked", "failed_retryable")
            drop = [one for one in gone if state.nodes[one].node.kind in WORK]
            engine.adopt(state.plan.revise(ask.reason, add=nodes, drop=drop))

    async def judged(self, node: Node, output: JSON) -> bool:
        """Whether a model finds that the output keeps the node's contract; no answer means no."""
        asked = Question(
            "judge", "fast", questions.judge(node, node.contract.judgement or "", output), node.id
        )
        text = await self._ask(asked)
        return text is not None and answers.judged(text)

    # --- patching -----------------------------------------------------------------------------------------

    async def _patch(self, failed: str) -> None:
        engine, state = self._engine, self._engine.state
        record = state.nodes[failed]
        node = self._thought("micro_planner", f"a replacement for {failed}", spawned_by=failed)
        family = {one for d in record.node.dependencies for one in (d, *state.nodes[d].serves)} - {failed}
        siblings = [state.nodes[one] for one in sorted(family)]
        asked = Question("patch", "fast", questions.patch(self.goal, record, siblings, self._infos()), node)
        text = await self._ask(asked)
        patch = answers.patch(text or "")
        self._answered(
            node, text, {"steps": [n.id for n in patch.steps], "skip": patch.skip, "reason": patch.reason}
        )
        if engine.concluded or not (patch.steps or patch.skip):
            return
        try:
            self._graft(failed, patch.steps)
        except PlanError as error:
            engine.warn(f"The replacement for {failed!r} could not be used: {error}")

    def _graft(self, failed: str, steps: Sequence[Node]) -> None:
        """The version in which `steps` stand in for `failed`, or nothing does.

        Raises:
            PlanError: the steps are not valid.
        """
        engine, state = self._engine, self._engine.state
        suffix = f"-v{state.plan.version + 1}"
        new = renamed(steps, taken=state.nodes, suffix=suffix)
        known = set(state.in_state("executed", "running", "waiting_human"))
        if new:
            room = engine.limits.nodes - sum(r.node.kind in WORK for r in state.nodes.values())
            checked = check(
                make_plan("patch", new),
                engine.catalogue,
                known=known,
                max_nodes=max(room, 0),
                agents=engine.mode.agents,
            )
            new = tuple(dataclasses.replace(one, spawned_by=failed) for one in checked.nodes.values())
        inner = {d for one in new for d in one.dependencies}
        lasts = tuple(one.id for one in new if one.id not in inner)
        rewired = {}
        for one in state.nodes[failed].serves:
            if one in state.plan.nodes and state.nodes[one].state in ("pending", "blocked"):
                rewired[one] = rewire(state.plan.nodes[one], failed, lasts)
        engine.superseded.add(failed)
        reason = f"patch: {failed} is {'replaced by ' + ', '.join(n.id for n in new) if new else 'left out'}"
        engine.adopt(state.plan.revise(reason, add=new, rewire=rewired))


def renamed(nodes: Iterable[Node], *, taken: Container[str], suffix: str) -> tuple[Node, ...]:
    """New nodes under ids that are not taken; they keep referring to each other."""
    new = list(nodes)
    ids = {one.id: f"{one.id[:56]}{suffix}" for one in new if one.id in taken}
    if not ids:
        return tuple(new)
    return tuple(
        dataclasses.replace(
            one,
            id=ids.get(one.id, one.id),
            after=tuple(ids.get(d, d) for d in one.after),
            refs={name: dataclasses.replace(r, step=ids.get(r.step, r.step)) for name, r in one.refs.items()},
        )
        for one in new
    )


def rewire(node: Node, failed: str, lasts: Sequence[str]) -> Node:
    """A dependent of `failed`, standing behind `lasts` instead; a ref goes to the last of them.

    Raises:
        PlanError: it needs a value of `failed`, and nothing replaces it.
    """
    after: list[str] = []
    for one in node.after:
        after.extend(lasts if one == failed else (one,))
    refs: dict[str, Ref] = {}
    for name, ref in node.refs.items():
        if ref.step == failed:
            if not lasts:
                raise PlanError(
                    f"{node.id!r} takes {name!r} from {failed!r}, so {failed!r} can't be left out"
                )
            ref = dataclasses.replace(ref, step=lasts[-1])
        refs[name] = ref
    join = node.join if len(after) > 1 else "all_of"
    return dataclasses.replace(node, after=tuple(dict.fromkeys(after)), refs=refs, join=join)


def state_outputs(engine: PlanEngine) -> dict[str, JSON]:
    """The outputs of finished work, by id, in the order of the plan."""
    return {r.node.id: r.output for r in questions.work(engine.state) if r.state == "executed"}


def pasted(outputs: dict[str, JSON]) -> str:
    """All results one after another: what is left when nobody could put them into words."""
    return (
        "\n\n---\n\n".join(f"{one}: {as_text(output)}" for one, output in outputs.items())
        or "(goal not achieved)"
    )
