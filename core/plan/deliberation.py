"""The thinking about a plan while it runs: planning, reflecting, patching, judging.

Each thought is one self-contained model call, bounded by the plan's budget, with a safe default if no reply can be
obtained. Reflections, observers, patches and interjections are nodes of the plan (a new version adds them), so the
trail shows what was thought when, and under which version. A thought is a generator: it yields its question and is sent
the answer. Only the machine that drives it knows about time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from iact.core.plan import answers, contracts, questions
from iact.core.plan.admission import (
    DONE_OR_RUNNING,
    NOT_STARTED,
    UNDER_WAY,
    graft,
    inheriting,
    spawned,
)
from iact.core.plan.answers import Analysis, ReflectionAnswer
from iact.core.plan.asked_for import asked_for
from iact.core.plan.asking import asked
from iact.core.plan.contracts import as_text, is_empty
from iact.core.plan.execution import Execution
from iact.core.plan.model import NO_ERROR, WORK, NodeKind, PlanError, PlanNode
from iact.core.plan.modes.base import DueThought
from iact.core.plan.planner import Planner, Thinking
from iact.core.plan.protocol import QuestionKind, StepSuccess
from iact.core.plan.recovery import Exhausted, RecoveryRefused
from iact.core.plan.result import gather
from iact.core.plan.state import NodeRecord
from iact.core.plan.states import TERMINAL
from iact.core.plan.verdict import STOPPED, GoalJudgement
from iact.core.ports import JSON

NO_REPLY = "No reply could be had from the model."
MOMENT: Final = 0.25
"""Seconds within which results have one observer together. An observer takes longer than that to answer."""


@dataclass(frozen=True, slots=True)
class Due:
    """A thought that is about to begin."""

    think: Callable[[], Thinking]
    holds: bool = False
    """Whether nothing starts until it is over."""


class Deliberation:
    """The thinking of one run, except for writing its steps (`planner`). Thoughts about to begin are in `due`."""

    def __init__(self, run: Execution, planner: Planner) -> None:
        self.due: list[Due] = []
        self._run = run
        self._planner = planner
        self._messages: list[tuple[str, str]] = []
        """Messages of a person that nobody has thought about yet: the node of each, and its text."""
        self._numbers: dict[str, int] = {}
        """The number of nodes of each kind of thought that were named so far."""
        self._repaired: set[str] = set()
        """Failed steps that the ladder deals with, so that no observer is asked because of them."""
        self._unobserved: list[str] = []
        """Steps of this moment that wait for an observer."""
        self._fallback: str | None = None
        """The answer if no report can be had."""
        self._assessment = ""
        """The latest assessment of the evidence."""
        self._reported: tuple[str, frozenset[str]] | None = None
        """The goal and the results that the newest report is about."""

    # --- starting thoughts ----------------------------------------------------------------------------

    def begin(self) -> None:
        """Ask for the plan's steps, unless they are being written."""
        if self._planner.growing:
            return
        if not self._run.asks:
            self._run.warn("The plan has a goal but no steps, and there is no planner to write them.")
            return
        self._start(self._planner.plan)

    def go_on(self, answered: Sequence[tuple[QuestionKind, str]], *, unplanned: bool) -> None:
        """Restore after folding a history: its answered thoughts are counted, and its unanswered messages still wait.

        `answered`: questions of that history with their answers. `unplanned`: it ended while the planner was writing.
        """
        run = self._run
        state = run.state
        thoughts = [record for record in state.nodes.values() if record.node.kind not in WORK]

        # A journal without answers tells at least which thoughts had one.
        replans = sum(version.reason.startswith("replan") for version in state.versions)
        counted = len(answered) or sum(record.state == "executed" for record in thoughts) + replans
        run.calls = min(counted, run.limits.model_calls)

        for record in thoughts:
            if record.node.kind != "interjection":
                continue
            if record.state in ("pending", "ready"):
                run.hold()
                self._messages.append((record.node.id, record.node.task))
            elif record.state == "executed":
                run.goal += f"\n\n{record.node.task}"

        if unplanned and run.asks:
            self.plan_on()

    def plan_on(self) -> None:
        """Ask the planner, which was cut off, for the rest."""
        self._start(self._planner.plan_on)

    def ended(self, node: str) -> None:
        """Think about a tool or agent node that has ended, if the mode asks for it."""
        run = self._run
        if not run.asks or run.concluded:
            return

        ask = run.mode.after(run.state, node) if run.affordable else None
        if ask is None:
            return

        # Before format 1.3, each result had an observer of its own at once.
        if ask.kind == "observe" and run.follows_1_3:
            self._gather(node)
        elif ask.kind != "observe" or node not in self._repaired:
            self._think(ask)

    def _gather(self, node: str) -> None:
        """Let a result wait for the others of its moment. A failed step has the ladder, and is only seen beside them."""
        if not self._unobserved:
            self._run.timer(self._run.at + MOMENT, "moment")
        self._unobserved.append(node)

    def observe(self) -> bool:
        """Ask one observer about the results of a moment, which is over. Returns whether a thought begins."""
        run = self._run
        ended = self._unobserved
        self._unobserved = []
        if run.concluded or not run.affordable or self._repaired.issuperset(ended):
            return False

        in_order = [node for node in run.state.plan.nodes if node in ended]
        ask = run.mode.together(run.state, in_order)
        if ask is None:
            return False
        self._think(ask)
        return True

    def recover(self, node: str) -> None:
        """Ask for a patch for a node that failed for good, if something needs it."""
        run = self._run
        state = run.state
        if run.concluded:
            return
        if self._other_candidates_suffice(node):
            run.ladder.give_up(node)
            return
        if isinstance(run.ladder.attempt_patch(node), Exhausted):
            return

        # What a person is to do or to accept, no model does in their place.
        is_persons = state.nodes[node].node.kind == "person" or node in run.unanswered
        if is_persons or not run.mode.patches or not run.affordable:
            run.ladder.give_up(node)
            return
        if run.follows_1_3:
            self._repaired.add(node)
        self._start(partial(self._patch, node))

    def _other_candidates_suffice(self, node: str) -> bool:
        """Whether everything that waits for a step is a race that can still be won without it."""
        state = self._run.state
        followers = state.nodes[node].serves
        return bool(followers) and all(
            state.any_of(follower) and state.join(follower) != "lost" for follower in followers
        )

    def hear(self) -> bool:
        """Think about a person's next message, now that running steps have ended. Returns whether there was one."""
        if not self._messages or self._run.cancelled:
            return False
        self._start(partial(self._interjection, *self._messages.pop(0)))
        return True

    def at_rest(self) -> bool:
        """Think about a plan in which nothing runs and nothing can start. Returns whether a thought begins."""
        run = self._run
        if not run.asks or run.cancelled or run.dismissed or not run.state.versions:
            return False

        ask = run.mode.at_rest(run.state)
        if ask is not None and run.affordable and (ask.kind != "synthesize" or run.limits.report):
            self._think(ask)
            return True

        if self._may_replan():
            try:
                rung = run.ladder.request_replan()
            except RecoveryRefused as refused:
                run.warn(f"No new plan was asked for: {refused}.")
                return False
            if not isinstance(rung, Exhausted):
                reason = "some steps failed and what follows on them can't run"
                self._start(partial(self._planner.replan, reason))
                return True

        if self._report_due():
            self._think(DueThought("synthesize", final=True, reason=self._assessment))
            return True
        return False

    def _may_replan(self) -> bool:
        """Whether the ladder may ask for a new plan, because a failure keeps something from being reached."""
        run = self._run
        if not run.mode.replans or run.no_new_plan or run.concluded:
            return False

        # Without a goal, the steps as they were written are all that is known of what is wanted.
        knows_what_for = bool(run.goal) or not run.follows_1_3
        return knows_what_for and self._broken() and run.affordable

    def judge_whole(self) -> bool:
        """Have the result held against what the plan's own contract asks of it in words. Returns whether that begins."""
        run = self._run
        contract = run.contract
        if contract.judgement is None or not (run.follows_1_3 and run.asks and run.affordable):
            return False
        if run.cancelled or run.dismissed:
            return False

        result = run.result()
        is_judged = run.whole_judged is not None and run.whole_judged[0] == as_text(result)
        is_broken = contracts.violation(contract, StepSuccess(result)) is not None
        if is_judged or is_broken or is_empty(result):
            return False

        self._start(partial(self._judge_whole, contract.judgement, result))
        return True

    def _judge_whole(self, condition: str, result: JSON) -> Thinking:
        run = self._run
        parts = questions.judge_whole(run.situation(), condition, result)
        text = yield from asked(run, "judge", parts)

        # Without an answer it stays unchecked, and is not asked again about the same result.
        holds = answers.judged(text) if text is not None else None
        run.whole_judged = (as_text(result), holds)

    def _report_due(self) -> bool:
        """Whether a report is due: the plan has ended, and there is no answer for its current results."""
        run = self._run
        if not (run.mode.reports and run.limits.report and run.affordable):
            return False
        if run.answer is not None or not run.outputs() or self._reported == self._subject():
            return False
        return not (run.follows_1_3 and self._is_answered())

    def _is_answered(self) -> bool:
        """Whether what the last step gave is the answer: an agent wrote it for this goal, and nothing is missing beside it."""
        run = self._run
        ends = gather(run.state, run.superseded)
        writers = [node for node in ends.outputs if run.state.nodes[node].node.kind == "agent"]
        is_from_one_agent = len(ends.outputs) == len(writers) == 1
        return is_from_one_agent and not self._gaps()

    def _subject(self) -> tuple[str, frozenset[str]]:
        """What a report is about."""
        return self._run.goal, frozenset(self._run.outputs())

    def interject(self, text: str, *, at_once: bool) -> None:
        """Put a person's message into the plan; everything that has not started waits for it."""
        node = self._thought("interjection", "a person's message", task=text, start=False)
        self._run.hold()
        self._run.gate_all()

        if at_once:
            self._start(partial(self._interjection, node, text, at_once=True))
        elif self._run.attempts and self._run.asks and self._run.follows_1_3:
            self._start(partial(self._weigh, node, text))
        else:
            self._messages.append((node, text))

    def _broken(self) -> bool:
        """Whether a failure keeps something from being reached."""
        state = self._run.state
        superseded = self._run.superseded
        return any(node not in superseded and not state.superfluous(node) for node in state.work_in("failed"))

    def _think(self, ask: DueThought) -> None:
        think = {
            "reflect": self._reflect,
            "observe": self._observe,
            "analyze": self._analyze,
            "synthesize": self._synthesize,
            "own": self._own,
        }[ask.kind]
        if ask.holds:
            self._run.hold()
        self._start(partial(think, ask), holds=ask.holds)

    def _start(self, think: Callable[[], Thinking], *, holds: bool = False) -> None:
        self.due.append(Due(think, holds))

    # --- nodes that represent thoughts --------------------------------------------------------------

    def _thought(
        self, kind: NodeKind, reason: str, *, spawned_by: str = "", task: str = "", start: bool = True
    ) -> str:
        """Add a node that represents a thought, and let it run."""
        run = self._run
        node = self._fresh_id(kind)
        added = PlanNode(node, kind, task=task or reason, spawned_by=spawned_by)
        run.join(reason, [added])
        if start:
            run.emit(node, "dispatched")
        return node

    def _fresh_id(self, kind: str) -> str:
        """An id for the next node of a kind of thought, which no step has."""
        while True:
            self._numbers[kind] = self._numbers.get(kind, 0) + 1
            name = f"{kind}-{self._numbers[kind]}"
            if name not in self._run.state.nodes:
                return name

    def _answered(self, node: str, text: str | None, answer: JSON) -> None:
        """Record the answer of a node that represents a thought. `text`: as the model wrote it; None: there is none."""
        if text is not None:
            self._run.thought(node, answer)
        elif self._run.state.nodes[node].state == "running":
            self._run.emit(node, "broke", detail=NO_REPLY)

    # --- judging ----------------------------------------------------------------------------------------

    def _reflect(self, ask: DueThought) -> Thinking:
        run = self._run
        node = self._thought("reflection", ask.reason or "what was found so far")
        text = yield from asked(run, "reflect", questions.reflect(run.situation()), node)

        # A mode may overrule its judge, whose own words count for whether the goal is reached.
        judged = answers.verdict(text or "", final=ask.final)
        verdict = run.mode.decided(ask, judged)
        self._judge(judgement_in(judged, verdict, final=ask.final))
        self._assessment = verdict.reason
        self._answered(node, text, _verdict_to_json(verdict))

        if verdict.way_out is not None and not run.concluded:
            run.leave(verdict.way_out)
            return
        self._leave_out(verdict)
        yield from self._follow(verdict, charge=True)

    def _leave_out(self, verdict: ReflectionAnswer) -> None:
        """Cancel the planned steps that a reflection finds needless, except those that the person asked for."""
        run = self._run
        if verdict.decision != "continue" or run.concluded:
            return

        for node in run.state.work_in(*NOT_STARTED):
            record = run.state.nodes[node]
            if node not in verdict.not_needed or record.state not in NOT_STARTED:
                continue

            is_wanted = node in run.by_person or asked_for(record.node, run.words())
            if is_wanted:
                run.warn(f"The step {node!r} was found needless, and stays, since the person asked for it.")
                continue

            why = verdict.not_needed[node] or verdict.reason
            detail = f"Not needed any more: {why}" if why else "Not needed any more."
            run.unneeded.add(node)
            run.emit(node, "cancelled", detail=detail)

    def _interjection(self, node: str, message: str, *, at_once: bool = False) -> Thinking:
        """Think about a person's message, and do what follows from it. `at_once`: what runs may be ended for it."""
        run = self._run
        if run.state.nodes[node].state in TERMINAL:  # a person withdrew it
            run.let_go()
            return

        run.emit(node, "dispatched")
        try:
            text = yield from asked(run, "interject", questions.reflect(run.situation(), message), node)
            verdict = answers.verdict(text or "", final=False)
            if verdict.decision == "continue" and run.mode.on_interjection == "replan" and not run.concluded:
                verdict = ReflectionAnswer("replan", message)
            self._answered(node, text, _verdict_to_json(verdict))

            if verdict.way_out is not None and not run.concluded:
                run.leave(verdict.way_out)
            elif verdict.decision == "conclude":
                self._end_for_person(verdict, at_once=at_once)
            else:
                yield from self._go_on_after(message, verdict)
        finally:
            run.let_go()

    def _go_on_after(self, message: str, verdict: ReflectionAnswer) -> Thinking:
        """Let the plan go on after a person's message, with other steps if the verdict on it asks for them."""
        run = self._run
        if verdict.decision == "replan":
            # Only a person's message reopens a concluded plan.
            run.concluded = run.dismissed = False
            run.way_out = None
            run.judgement = None
            run.mode.interjected()
            run.no_new_plan = False

        run.goal += f"{questions.FOLLOW_UP}{message}"
        self._leave_out(verdict)
        yield from self._follow(verdict, charge=False)

    def _weigh(self, node: str, message: str) -> Thinking:
        """Ask what a person's message asks of the work while it goes on: what runs is stopped if that is what it says.

        Everything else is thought about when what runs has ended.
        """
        run = self._run
        text = yield from asked(run, "word", questions.word(run.situation(), message), node)
        word, reason = answers.word(text or "")
        if run.state.nodes[node].state in TERMINAL or word not in ("stop", "nothing"):
            self._messages.append((node, message))
            return

        run.emit(node, "dispatched")
        self._answered(node, text, {"decision": word, "reason": reason})
        if word == "stop":
            self._end_for_person(ReflectionAnswer("conclude", reason, reached=False), at_once=True)
        run.let_go()

    def _judge(self, judgement: GoalJudgement | None) -> None:
        """Note what a judge said. What says nothing about the goal changes nothing about what was said before."""
        if judgement is not None:
            self._run.judgement = judgement

    def _end_for_person(self, verdict: ReflectionAnswer, *, at_once: bool) -> None:
        """End the plan because of a person's message.

        If it leaves work undone, the plan counts as stopped, unless the verdict says that the goal is reached.
        """
        run = self._run
        ended_with_it = UNDER_WAY if at_once else ()
        undone = run.state.work_in(*NOT_STARTED, "failed_retryable", *ended_with_it)
        stops = bool(undone) if verdict.reached is None else not verdict.reached
        if stops:
            run.stopped_by_person = verdict.reason or STOPPED
        else:
            run.judgement = GoalJudgement("reached", verdict.reason, "person")

        run.dismissed = True
        run.conclude(verdict.reason, verdict.answer)
        if at_once:
            for node in run.state.work_in(*UNDER_WAY):
                run.emit(node, "cancelled", detail="A message of the user ended the plan.")

    def _follow(self, verdict: ReflectionAnswer, *, charge: bool) -> Thinking:
        """Carry out a verdict. A conclusion stands, whatever later verdicts say."""
        run = self._run
        if run.cancelled or run.concluded or verdict.decision == "continue":
            return
        if verdict.decision == "conclude":
            run.conclude(verdict.reason, verdict.answer)
            return

        try:
            rung = run.ladder.request_replan(charge=charge)
        except RecoveryRefused as refused:
            run.warn(f"No new plan was asked for: {refused}.")
            return
        if isinstance(rung, Exhausted):
            run.warn(f"No new plan was asked for: {rung.why}.")
            return

        reason = verdict.reason or "the evidence does not suffice"
        yield from self._planner.replan(reason, wanted=not charge)

    def _observe(self, ask: DueThought) -> Thinking:
        run = self._run
        state = run.state
        subjects = ask.subject
        results = "the result" if len(subjects) == 1 else "the results"
        about = f"{results} of {', '.join(subjects)}"
        node = self._thought("observer", about, spawned_by=subjects[0])
        waiting = {record.node.id for record in questions.work(state) if record.state in NOT_STARTED}

        text = yield from asked(run, "observe", questions.observe(run.situation(), subjects), node)
        observation = answers.observation(text or "")
        self._answered(node, text, {"action": observation.action, "reason": observation.reason})
        if run.concluded:
            return
        if observation.way_out is not None:
            run.leave(observation.way_out)
            return

        match observation.action:
            case "inject":
                self._inject(subjects, about, observation.steps)
            case "cancel":
                # What was added while the observer thought is not what it could have meant.
                self._cancel(waiting.intersection(observation.cancel), observation.reason, about)
            case "reflect":
                reflection = run.mode.wants_reflection(state, subjects[0])
                if reflection is not None:
                    self._think(reflection)

    def _cancel(self, nodes: Collection[str], reason: str, about: str) -> None:
        """Cancel steps that an observer finds needless, as far as they have not started. `about`: what it looked at."""
        run = self._run
        for node in sorted(nodes):
            if run.state.nodes[node].state in NOT_STARTED:
                run.unneeded.add(node)
                run.emit(node, "cancelled", detail=reason or f"Cancelled after {about}.")

    def _inject(self, subjects: Sequence[str], about: str, steps: Sequence[PlanNode]) -> None:
        """Add an observer's follow-up steps. Faults in them only cause a warning."""
        run = self._run
        failed = run.state.work_in("failed")
        repairs = [step.id for step in steps if step.spawned_by in failed]
        if repairs and run.follows_1_3:
            run.warn(
                f"Steps that were to follow on {about} were not added: "
                f"{', '.join(repairs)} would repair what failed, which is not an observer's to do."
            )
            return

        known = set(run.state.in_state(*DONE_OR_RUNNING, *NOT_STARTED))
        try:
            checked = run.admission.check_renamed(steps, known)
        except PlanError as error:
            run.warn(f"Steps that were to follow on {about} could not be used: {error}")
            return

        # Only what has a result can be followed up: a failed step gets others in its place, from the ladder.
        with_result = [node for node in subjects if run.state.nodes[node].state == "executed"] or subjects
        added = [_following(step, with_result) for step in checked.nodes.values()]
        run.add(f"inject: after {about}", added)

    def _analyze(self, ask: DueThought) -> Thinking:
        run = self._run
        node = self._thought("reflection", "was the goal reached?")

        text = yield from asked(run, "analyze", questions.analyze(run.situation()), node)
        analysis = answers.analysis(text or "")
        verdict = run.mode.analyzed(analysis)
        self._fallback = analysis.final_answer or self._fallback
        self._answered(node, text, {"achieved": analysis.achieved, "confidence": analysis.confidence})

        if run.concluded:
            return

        run.confidence = analysis.confidence
        self._judge(judgement_of(analysis))

        if verdict.decision == "continue":
            self._assessment = f"The goal was not reached. {analysis.reasoning}"
            self._fallback = pasted(run.outputs())
            if not self._report_due():
                run.answer = self._fallback
        elif verdict.decision == "conclude":
            run.conclude(verdict.reason, verdict.answer)
        else:
            yield from self._follow(verdict, charge=True)

    def _synthesize(self, ask: DueThought) -> Thinking:
        run = self._run
        self._reported = self._subject()
        node = self._thought("aggregator", "the answer")
        parts = questions.synthesize(run.situation(), ask.reason, self._gaps())
        text = yield from asked(run, "synthesize", parts, node)

        self._answered(node, text, text)
        if text is not None and not is_empty(text):
            run.answer = text
        else:
            run.answer = self._fallback or run.answer

    def _gaps(self) -> list[str]:
        """Steps without a result, each with the reason, except steps that were replaced."""
        run = self._run
        return [
            f"{record.node.id} ({questions.step(record.node)}): {_why_without(record)}"
            for record in questions.work(run.state)
            if record.state in ("failed", "skipped", "cancelled") and record.node.id not in run.superseded
        ]

    def _own(self, ask: DueThought) -> Thinking:
        """Ask what the mode asks itself, and do what it makes of the answer."""
        run = self._run
        state = run.state
        question = run.mode.question(ask, run.situation())
        node = self._thought("aggregator" if question.kind == "reason" else "reflection", ask.reason)
        text = yield dataclasses.replace(question, node=node)
        self._answered(node, text, text)

        try:
            nodes, answer = run.mode.answered(state, ask, text, run.catalogue)
        except PlanError as error:
            run.warn(f"The repaired plan could not be used: {error}")
            return

        self._judge(run.mode.judgement)
        if answer is not None:
            run.answer = answer
        if nodes and not run.concluded:
            dropped = state.work_in(*NOT_STARTED, "failed_retryable")
            gone = [*state.work_in("failed", "skipped"), *dropped]
            placed = run.take_places(nodes, gone)
            run.adopt(state.plan.revise(ask.reason, add=placed, drop=dropped))

    # --- patching -----------------------------------------------------------------------------------------

    def _patch(self, failed: str) -> Thinking:
        """Ask for steps in the place of a failed one, and put them there."""
        run = self._run
        record = run.state.nodes[failed]
        node = self._thought("micro_planner", f"a replacement for {failed}", spawned_by=failed)
        text = yield from asked(run, "patch", questions.patch(run.situation(), record), node)

        patch = answers.patch(text or "")
        self._answered(node, text, _patch_to_json(patch))
        if run.concluded:
            return
        if patch.way_out is not None:
            run.leave(patch.way_out)
            return
        if not (patch.steps or patch.skip):
            return

        contract = record.node.contract if run.follows_1_3 else NO_ERROR
        try:
            steps = inheriting(self._checked(patch.steps), contract)
            version = graft(run.state, failed, spawned(steps, failed))
        except PlanError as error:
            run.warn(f"The replacement for {failed!r} could not be used: {error}")
            return
        run.note_replaced(failed, [step.id for step in steps], inherits=bool(steps))
        run.adopt(version)

    def _checked(self, steps: Sequence[PlanNode]) -> Sequence[PlanNode]:
        """Check the steps of a patch, which may refer to steps that have run or are running. A patch may have none.

        Raises:
            PlanError: they may not join.
        """
        run = self._run
        if not steps:
            return ()

        known = set(run.state.in_state(*DONE_OR_RUNNING))
        return tuple(run.admission.check_renamed(steps, known).nodes.values())


def _why_without(record: NodeRecord) -> str:
    """Why a step has no result, for the author of a report."""
    if record.cause == "concluded":
        return "left out, as not needed any more"
    return record.error or record.state


def _following(node: PlanNode, subjects: Sequence[str]) -> PlanNode:
    """A step as the follow-up of the result that it builds on, or else of the first."""
    followed = next((subject for subject in subjects if subject in node.dependencies), subjects[0])
    return dataclasses.replace(node, spawned_by=followed)


def _verdict_to_json(verdict: ReflectionAnswer) -> JSON:
    """A verdict as the result of the node that represents the reflection."""
    data: dict[str, JSON] = {"decision": verdict.decision, "reason": verdict.reason}
    if verdict.not_needed:
        data["not_needed"] = dict(verdict.not_needed)
    if verdict.way_out is not None:
        data["instead"] = verdict.way_out.kind
        data["say"] = verdict.way_out.text
    return data


def judgement_in(
    judged: ReflectionAnswer, followed: ReflectionAnswer, *, final: bool
) -> GoalJudgement | None:
    """What a reflection says about whether the goal is reached; None if nothing, because the plan goes on.

    `judged`: its answer. `followed`: what the mode makes of it. `final`: nothing is left to run.
    """
    if judged.reason == answers.UNREADABLE:
        return GoalJudgement("unreadable") if final else None
    if judged.decision == "replan":
        return GoalJudgement("wanted_more", judged.reason)

    if judged.decision == "continue" and followed.decision == "conclude":
        return GoalJudgement("wanted_more", followed.reason)
    if judged.decision == "continue":
        return GoalJudgement("not_said", judged.reason) if final else None

    if judged.goes_on_with_nothing and judged.reached is None:
        return GoalJudgement("not_said", judged.reason)
    is_reached = judged.reached is not False
    return GoalJudgement("reached" if is_reached else "not_reached", judged.reason)


def judgement_of(analysis: Analysis) -> GoalJudgement:
    """What an analysis says about whether the goal is reached."""
    if analysis.reasoning == answers.UNREADABLE:
        return GoalJudgement("unreadable")
    return GoalJudgement("reached" if analysis.achieved else "not_reached", analysis.reasoning)


def _patch_to_json(patch: answers.PatchAnswer) -> JSON:
    """The result of a patch: what was done about the failure, and its diagnosis, if there is one."""
    data: dict[str, JSON] = {
        "steps": [step.id for step in patch.steps],
        "skip": patch.skip,
        "reason": patch.reason,
    }
    if patch.diagnosis is not None:
        data["diagnosis"] = dataclasses.asdict(patch.diagnosis)
    return data


def pasted(outputs: dict[str, JSON]) -> str:
    """All results one after another: the fallback if no model could put them into words."""
    parts = [f"{node}: {as_text(output)}" for node, output in outputs.items()]
    return "\n\n---\n\n".join(parts) or "(goal not achieved)"
