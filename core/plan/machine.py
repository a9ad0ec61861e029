"""A running plan as a pure state machine: it is passed what happened, and returns what must be done.

Nothing here waits, reads a clock or starts a task. The caller that runs a plan passes the time and, one after the
other, the results of what the machine wanted: an attempt ended, a model answered, a person spoke, a timer is due. Each
input is processed completely at once, so equal inputs in equal order lead to equal events. `take` returns what must be
done, in order.

    dispatch      which ready node starts
    deliberation  the thinking about the plan, as generators that yield questions
    execution     the state that all of them share, and the changes that they may make
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from iact.core.context.excerpt import excerpt
from iact.core.plan import answers, contracts, questions, revision
from iact.core.plan.admission import NOT_STARTED
from iact.core.plan.asking import asked
from iact.core.plan.briefing import NOTHING, Briefing
from iact.core.plan.commands import (
    AskAcceptance,
    AskModel,
    AskPerson,
    Command,
    StopAsking,
    StopFiring,
    TakeOverCopy,
    TakeReply,
    TellAgent,
)
from iact.core.plan.deliberation import NO_REPLY, Deliberation
from iact.core.plan.dispatch import Dispatch
from iact.core.plan.execution import NEVER, Attempt, Execution, Timer
from iact.core.plan.forms import plan_text
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import NO_ERROR, WORK, PlanError, PlanExtension, PlanGraph, PlanVersion
from iact.core.plan.modes.base import Mode
from iact.core.plan.planner import Planner, Thinking
from iact.core.plan.prompt import UNLIMITED
from iact.core.plan.protocol import (
    Decision,
    FunctionCatalogue,
    Outcome,
    PlanQuestion,
    QuestionKind,
    StepFailure,
    StepSuccess,
)
from iact.core.plan.recovery import Exhausted
from iact.core.plan.result import PlanResult, gather, status_of
from iact.core.plan.state import NodeChange, PlanEvent
from iact.core.plan.states import TERMINAL
from iact.core.plan.validate import check
from iact.core.plan.verdict import STOPPED, Ended, verdict_of
from iact.core.ports import JSON

_PLANNING: Final[frozenset[QuestionKind]] = frozenset({"plan", "correct", "profile"})
_QUESTIONS: Final = 3
"""How often the agent of one step may ask something; what it asks after that is its result."""
_NOT_ACCEPTED: Final = "The user did not accept the result."
_NOBODY_ACCEPTED: Final = "Nobody was there to accept the result."
_QUOTED: Final = 1000
"""The most characters quoted of an output that broke its contract, for the model that repairs the step."""


@dataclass(slots=True)
class _Thought:
    """A thought in progress."""

    thinking: Thinking
    """Yields questions, and is sent the answers."""
    holds: bool = False
    """Whether nothing starts until it is over."""
    judges: str = ""
    """The node whose output it judges; empty if it is about the plan."""
    question: PlanQuestion | None = None
    """The question that it waits for; None before its first."""


class PlanMachine:
    """One run of one plan. Times are in seconds since the plan's start, and never decrease."""

    def __init__(
        self,
        plan: PlanGraph,
        *,
        mode: Mode | None = None,
        limits: PlanLimits | None = None,
        catalogue: FunctionCatalogue | None = None,
        asks: bool = False,
        growing: bool = False,
        first: bool = False,
        history: Sequence[PlanEvent] = (),
        answers: Sequence[tuple[QuestionKind, str]] = (),
        taken_up: Collection[str] = (),
        briefing: Briefing = NOTHING,
        by_person: bool = False,
        follows_1_3: bool = True,
        window: Callable[[str], int] = lambda role: UNLIMITED,
    ) -> None:
        """`asks`: whether there is a model to ask. `growing`: its steps are still being written; see `write`.
        `briefing`: what models are told besides the goal; the plan's own constraints are added to it.
        `by_person`: whether a person wrote its steps.
        `follows_1_3`: False for the plan of a journal of format 1.2, whose records follow from that format's rules.

        `first`: a person must review the plan before it begins; see `start`.

        `history`: the events of an earlier run of this plan, as a journal of an older format holds them; the plan
        continues from there. What was running when they end counts as interrupted: it is fired again only if that is
        safe. Nodes `taken_up` are not interrupted: their outcomes are awaited. `answers`: what models answered in that
        run.

        Raises:
            PlanInvalid: the plan can't run.
        """
        self.run: Final = Execution(
            plan,
            mode=mode or Mode(),
            limits=limits or PlanLimits(),
            catalogue=catalogue,
            asks=asks,
            briefing=replace(briefing, constraints=plan.constraints),
            by_person=by_person,
            follows_1_3=follows_1_3,
            window=window,
        )
        self.over = False
        self.paused = False
        self.awaited = first
        """Whether a person must review the plan before any of it begins."""
        self._history = tuple(history)
        self._answers = tuple(answers)
        self._taken_up = frozenset(taken_up)
        self._unplanned = not plan.nodes and not any(kind in _PLANNING for kind, _ in answers)
        """Whether the history ended while the planner was writing the first steps."""

        self._planner = Planner(self.run, growing=growing)
        self._deliberation = Deliberation(self.run, self._planner)
        self._dispatch = Dispatch(self.run)
        self._thoughts: dict[int, _Thought] = {}
        """The thoughts in progress, by number."""
        self._counted = 0
        """The number of thoughts so far."""
        self._arrived: dict[str, list[str]] = {}
        """The attempts that finished in their copies, by race, in order. The first of each is being taken over."""
        self._waiting: list[int] = []
        """Thoughts whose question is held back while the plan is paused."""
        self._stood = 0.0
        """Seconds during which the plan's own clock stood still."""
        self._held: set[str] = set()
        """Attempts that wait for a person without a time limit."""
        self._still_since: float | None = None
        """Since when the plan's own clock stands still; None if it runs."""

        starts_with_steps = bool(plan.nodes) and not history
        self._first = self._checked(plan) if starts_with_steps else None
        """The version that the run begins with, if its steps are written and it has no history."""
        if self._first is not None:
            self._planner.given = self._first.add

    def take(self) -> list[Command]:
        """Return what must be done now, in order. Each command is returned once."""
        commands = self.run.out
        self.run.out = []
        commands.extend(self.run.mode.take_told())
        return commands

    @property
    def due(self) -> float | None:
        """When `wake` must be called if nothing happens before; None if never."""
        return self.run.due

    # --- the beginning ----------------------------------------------------------------------------------

    @property
    def began(self) -> float:
        """The time at which the run begins: where the events of its history end."""
        return max((event.at for event in self._history if isinstance(event, NodeChange)), default=0.0)

    def begin(self, at: float) -> None:
        """Begin, or continue after the history."""
        run = self.run
        run.at = at
        if run.limits.wall_clock is not None:
            run.timer(at + run.limits.wall_clock, "late")
        if self.awaited:
            run.hold()

        opens_itself = run.asks and run.mode.opens
        if self._history:
            self._go_on()
        elif self._first is not None and not opens_itself:
            run.adopt(self._first)
        else:
            self._deliberation.begin()
        self._turn()

    def _checked(self, plan: PlanGraph) -> PlanVersion:
        run = self.run
        checked = check(plan, run.catalogue, max_nodes=run.limits.nodes, agents=run.mode.agents)
        run.warn(*checked.warnings)
        return PlanVersion(1, None, plan.reason, tuple(checked.nodes.values()))

    def _go_on(self) -> None:
        """Fold the history, and bring every node to where it can continue."""
        run = self.run
        state = run.state
        self._fold_history()
        run.mode.restore(self._answers, run.catalogue)
        self._deliberation.go_on(self._answers, unplanned=self._unplanned)

        # What lost a race is neither started nor recovered, so it comes first.
        for node in state.in_state(*NOT_STARTED, "running", "waiting_human", "failed_retryable"):
            if state.superfluous(node):
                run.emit(node, "lost_race")

        for node in list(state.entries()):
            run.emit(node, "joined")
        for node in state.in_state("ready"):
            run.became_ready(node)

        for node in state.in_state("running", "waiting_human"):
            if node in self._taken_up:
                self._dispatch.take_up(node)
            else:
                run.emit(node, "interrupted", detail="The program stopped while it ran.")

        # Listed before the recoveries: a node that fails in one of them is patched there.
        unpatched = [node for node in state.work_in("failed") if state.nodes[node].rung == "retried"]
        for node in state.in_state("failed_retryable"):
            self._recovered(node)
        for node in unpatched:
            self._deliberation.recover(node)

    def _fold_history(self) -> None:
        """Apply the events of the history, and note which steps count no more since others replaced them."""
        run = self.run
        state = run.state
        for event in self._history:
            run.trail.append(event)
            if isinstance(event, PlanExtension):
                state.extend(event)
            elif isinstance(event, PlanVersion):
                state.adopt(event)
                if event.reason.startswith("replan"):
                    run.superseded.update(state.in_state("failed"))
            else:
                state.apply(event)

        replaced = {record.node.spawned_by for record in state.nodes.values() if record.node.kind in WORK}
        run.superseded |= {node for node in replaced if node and state.nodes[node].state == "failed"}

    def _recovered(self, node: str) -> None:
        """Recover a node of an earlier run that is not known to have finished."""
        run = self.run
        record = run.state.nodes[node]
        is_work = record.node.kind in WORK

        # Thoughts are not tried again at this node: they are repeated at one of their own.
        may_retry = False
        if is_work:
            failure = StepFailure("interrupted", record.error)
            rung = run.try_again(record.node, failure, record.node.params)
            may_retry = not isinstance(rung, Exhausted)

        if may_retry and run.state.join(node) == "holds":
            run.emit(node, "retried")
            return
        run.emit(node, "exhausted", detail=record.error)
        if is_work:
            self._ended_work(node)

    # --- what happens: attempts ---------------------------------------------------------------------------

    def attempt_ended(self, node: str, outcome: Outcome | None, at: float) -> None:
        """End an attempt. None: it was stopped before it had an outcome."""
        run = self.run
        run.at = at
        attempt = run.attempts[node]
        if attempt.node.kind == "person" and run.state.nodes[node].state == "waiting_human":
            run.emit(node, "approved" if isinstance(outcome, StepSuccess) else "denied")

        if outcome is None:
            self._settle_attempt(attempt, self._overtime(attempt))
        else:
            self._check_outcome(attempt, outcome)
        self._turn()

    def waits_for_person(self, node: str, at: float, *, held: bool = False) -> None:
        """Let an attempt wait for a person: its own time limit stands still, and the person's runs.

        `held`: no person is available, so there is no time limit; the plan's own clock stands still meanwhile.
        """
        run = self.run
        run.at = at
        if node not in run.attempts or run.state.nodes[node].state != "running":
            return

        run.emit(node, "needs_human")
        if not held:
            self._dispatch.limit(node, run.limits.human_timeout)
            return
        self._dispatch.limit(node, NEVER)
        self._held.add(node)
        self._keep_time()

    def stand_still(self, node: str, at: float, *, waiting: bool) -> None:
        """Let the time of an agent's attempt stand still while a call below it waits for a person, or let it go on."""
        run = self.run
        run.at = at
        if node not in run.attempts:
            return

        if waiting:
            self._dispatch.stand(node)
        elif not self.paused and node not in run.queue.held:
            self._dispatch.go_on(node)

    def person_decided(self, node: str, decision: Decision, at: float) -> None:
        """Continue an attempt that a person has decided about, or end it because the person's time is over."""
        run = self.run
        run.at = at
        self._held.discard(node)
        self._keep_time()
        if node not in run.attempts or run.state.nodes[node].state != "waiting_human":
            return

        if decision == "expired":
            self._expired(node)
            self._turn()
        else:
            run.emit(node, decision)
            self._dispatch.limit(node, self._dispatch.time_limit(run.state.nodes[node].node))

    def step_asks(self, node: str, question: str, at: float) -> None:
        """Note that the agent of a step asks something before it can go on. Its time stands still meanwhile."""
        run = self.run
        run.at = at

        attempt = run.attempts[node]
        attempt.questions += 1

        if run.state.nodes[node].state == "running":
            run.emit(node, "needs_human")
            self._dispatch.limit(node, run.limits.human_timeout)

        if run.affordable and run.mode.max_calls is None:
            self._think(_Thought(self._answer_step(node, question)))
        else:
            run.out.append(AskPerson(node, question))
        self._turn()

    def may_ask(self, node: str) -> bool:
        """Whether a question of a step's agent is heard: it is at work, and hasn't asked too often."""
        attempt = self.run.attempts.get(node)
        return attempt is not None and not attempt.ending and attempt.questions < _QUESTIONS

    def _answer_step(self, node: str, question: str) -> Thinking:
        """Answer an agent from what is known, or have the person asked."""
        run = self.run
        parts = questions.answer(run.situation(), run.state.nodes[node].node, question)
        text = yield from asked(run, "answer", parts)
        if run.state.nodes[node].state != "waiting_human" or node not in run.attempts:
            return

        reply = answers.helper_answer(text or "")
        if reply.is_result:
            run.emit(node, "approved")
            run.out.append(TakeReply(node))
        elif reply.text:
            self._tell(node, reply.text)
        else:
            run.out.append(AskPerson(node, question))

    def step_answered(self, node: str, answer: str | None, at: float) -> None:
        """Pass in a person's answer to the question of a step's agent; None if nobody answers it."""
        run = self.run
        run.at = at
        attempt = run.attempts.get(node)
        if attempt is None or run.state.nodes[node].state != "waiting_human":
            return

        if answer is not None:
            self._tell(node, answer)
        else:
            run.emit(node, "denied")
            failure = StepFailure("incomplete", "It asked something that nobody answered.")
            self._settle_attempt(attempt, failure)
        self._turn()

    def _tell(self, node: str, answer: str) -> None:
        """Let the agent of a step go on, with the answer to its question."""
        self.run.emit(node, "approved")
        self._dispatch.limit(node, self._dispatch.time_limit(self.run.state.nodes[node].node))
        self.run.out.append(TellAgent(node, answer))

    def _expired(self, node: str) -> None:
        """End an attempt that was not decided in time.

        Agents never see the gate, so they are told the same as for any denial.
        """
        call = self.run.state.nodes[node].node.call
        self.run.emit(node, "expired", detail=f"{call} did not complete.")
        self._ended_work(node)

    def _overtime(self, attempt: Attempt) -> StepFailure:
        limit = self._dispatch.time_limit(attempt.node)
        return StepFailure("timeout", f"It took longer than {limit:g} seconds and was stopped.")

    def _check_outcome(self, attempt: Attempt, outcome: Outcome) -> None:
        """Settle an outcome, if the node's contract can be checked now. Otherwise a model or a person is asked."""
        if isinstance(outcome, StepFailure):
            self._settle_attempt(attempt, outcome)
            return

        contract = attempt.node.contract
        broken = contracts.violation(contract, outcome)
        if broken is not None:
            message = f"{broken}{_output_of(outcome)}"
            failure = StepFailure("contract", message, outcome.exit_status, outcome.tokens)
            self._settle_attempt(attempt, failure)
            return

        needs_judge = contract.judgement is not None or bool(contract.by)
        if not needs_judge:
            self._settle_attempt(attempt, outcome)
        elif attempt.ending:
            # It is being stopped: nobody needs to hear what is thought of its output.
            self._settle_attempt(attempt, self._overtime(attempt))
        elif contract.by:
            self._ask_acceptance(attempt, outcome)
        else:
            self._think(_Thought(self._judge(attempt, outcome), judges=attempt.node.id))

    def _ask_acceptance(self, attempt: Attempt, outcome: StepSuccess) -> None:
        """Ask the person whether they accept an output. They have all the time that they want."""
        node = attempt.node
        attempt.shown = outcome
        self.run.emit(node.id, "needs_human")
        self._dispatch.limit(node.id, NEVER)
        self._held.add(node.id)
        self.run.out.append(AskAcceptance(node.id, node.contract.judgement or "", outcome.output))

    def acceptance(self, node: str, decision: Decision, words: str, at: float) -> None:
        """Pass in whether the person accepts a step's output. `words`: what they want instead; "expired": nobody was
        there to say."""
        run = self.run
        run.at = at
        self._held.discard(node)
        attempt = run.attempts.get(node)
        if attempt is None or attempt.shown is None:
            return

        outcome = attempt.shown
        attempt.shown = None
        if attempt.ending or run.state.nodes[node].state != "waiting_human":
            self._settle_attempt(attempt, self._overtime(attempt))
        elif decision == "approved":
            run.emit(node, "approved")
            self._settle_attempt(attempt, outcome)
        else:
            self._not_accepted(attempt, outcome, decision, words)
        self._turn()

    def _not_accepted(self, attempt: Attempt, outcome: StepSuccess, decision: Decision, words: str) -> None:
        """End an attempt whose output the person did not accept, or could not be asked about."""
        run = self.run
        run.emit(attempt.node.id, "denied")

        fault = _NOT_ACCEPTED if decision == "denied" else _NOBODY_ACCEPTED
        if decision == "expired":
            run.unanswered.add(attempt.node.id)
        if words:
            fault = f"{fault} They say: {words}"
        failure = StepFailure("contract", f"{fault}{_output_of(outcome)}", tokens=outcome.tokens)
        self._settle_attempt(attempt, failure)

    def _judge(self, attempt: Attempt, outcome: StepSuccess) -> Thinking:
        """Ask a model whether the output satisfies the node's contract; no answer means no."""
        node = attempt.node
        judgement = node.contract.judgement or ""
        parts = questions.judge(node, judgement, outcome.output)
        text = yield PlanQuestion("judge", node=node.id, parts=parts)
        attempt.judging = 0

        if text is not None and answers.judged(text):
            self._settle_attempt(attempt, outcome)
            return
        why = f"{contracts.JUDGED_NOT_TO_HOLD}: {judgement}"
        if text is None:
            why = f"Nobody could judge whether the result holds: {judgement}"
        self._settle_attempt(attempt, StepFailure("contract", why, tokens=outcome.tokens))

    def uncopied(self, node: str, at: float) -> None:
        """Note that a racing attempt can't have a copy: it works in the workspace itself, in turn with the others."""
        self.run.at = at
        if node in self.run.attempts:
            self.run.attempts[node].race = ""

    def taken_over(self, node: str, failure: StepFailure | None, at: float) -> None:
        """Note that an attempt's changes were taken over into the workspace, or could not be: `failure`."""
        run = self.run
        run.at = at
        attempt = run.attempts[node]
        success = attempt.kept
        arrived = self._arrived[attempt.race]
        assert success is not None

        self._settle_attempt(attempt, failure or success, final=True)
        # Attempts that lost the race by this are stopped first, so that none of them is taken over.
        self._stop_stopped()

        arrived.remove(node)
        if arrived:
            run.out.append(TakeOverCopy(arrived[0]))
        else:
            del self._arrived[attempt.race]
        self._turn()

    def _arrive(self, attempt: Attempt, success: StepSuccess) -> None:
        """Finish an attempt in its copy. It wins if none finished before it and its changes can be taken over."""
        attempt.kept = success
        arrived = self._arrived.setdefault(attempt.race, [])
        arrived.append(attempt.node.id)

        if len(arrived) == 1:
            self.run.out.append(TakeOverCopy(attempt.node.id))

    def _settle_attempt(self, attempt: Attempt, outcome: Outcome, *, final: bool = False) -> None:
        """Settle an attempt's outcome: another try at once by a rule of the mode, or the node's end.

        `final`: what it wrote in a copy has been dealt with.
        """
        run = self.run
        node = attempt.node
        if isinstance(outcome, StepSuccess) and attempt.race and not attempt.ending and not final:
            self._arrive(attempt, outcome)
            return
        if isinstance(outcome, StepFailure) and self._recover_by_rule(attempt, outcome):
            return

        self._dispatch.over(node.id)
        if attempt.ending == "stopped":
            return
        if isinstance(outcome, StepSuccess):
            run.succeed(node.id, outcome.output, outcome.labels, contracts.passed_by(node.contract))
            self._deliberation.ended(node.id)
        else:
            self._failed(attempt, outcome)
        if outcome.tokens:
            self.spend(outcome.tokens)

    def _recover_by_rule(self, attempt: Attempt, failure: StepFailure) -> bool:
        """Try again at once with other arguments, if a rule of the mode names some. Returns whether one did."""
        run = self.run
        if attempt.ending or run.concluded:
            return False

        arguments = run.mode.recover(run.state, attempt.node.id, failure, dict(attempt.arguments))
        if arguments is None:
            return False
        attempt.arguments = arguments
        attempt.kept = None
        self._dispatch.fire(attempt)
        return True

    def _failed(self, attempt: Attempt, failure: StepFailure) -> None:
        run = self.run
        node = attempt.node
        rung = run.try_again(node, failure, attempt.arguments, copied=bool(attempt.race))
        if isinstance(rung, Exhausted) or run.concluded:
            why = f" ({rung.why})" if isinstance(rung, Exhausted) and failure.transient else ""
            run.emit(node.id, "broke", detail=f"{failure.message}{why}")
            self._ended_work(node.id)
            return

        run.emit(node.id, "transient", detail=failure.message)
        if run.state.superfluous(node.id):
            run.emit(node.id, "lost_race")
            return
        run.sleeping.add(node.id)
        run.timer(run.at + rung.delay, "retry", node.id)

    def _ended_work(self, node: str) -> None:
        """Think about a step that has ended: about a patch, if it failed, and about what the mode asks for."""
        failed = self.run.state.nodes[node].state == "failed"
        recovers_first = self.run.follows_1_3

        if failed and recovers_first:
            self._deliberation.recover(node)
        self._deliberation.ended(node)
        if failed and not recovers_first:
            self._deliberation.recover(node)

    def _stop_attempt(self, node: str) -> None:
        """Stop an attempt whose result is no longer needed."""
        attempt = self.run.attempts.get(node)
        if attempt is None or attempt.ending == "stopped":
            return

        was_stopping = bool(attempt.ending)
        attempt.ending = "stopped"
        self._end_attempt(attempt, is_told=was_stopping)

    def _end_attempt(self, attempt: Attempt, *, is_told: bool = False) -> None:
        """Have an attempt stopped. If only its output is being judged, it is over at once.

        `is_told`: that was asked for already.
        """
        if attempt.judging:
            self._drop(attempt.judging)
            attempt.judging = 0
            self._settle_attempt(attempt, self._overtime(attempt))
            return

        if attempt.kept is not None:
            arrived = self._arrived[attempt.race]
            is_being_taken_over = arrived[0] == attempt.node.id
            if not is_being_taken_over:
                arrived.remove(attempt.node.id)
                self._settle_attempt(attempt, self._overtime(attempt), final=True)
            return

        if not is_told:
            self.run.out.append(StopFiring(attempt.node.id))

    # --- what happens: answers --------------------------------------------------------------------------------

    def piece(self, thought: int, text: str, at: float) -> None:
        """Pass in the next piece of an answer to a question that was asked with `pieces`."""
        self.run.at = at
        if thought not in self._thoughts or not self._planner.reading:
            return

        try:
            self._planner.write(text)
        except PlanError as error:
            self.run.out.append(StopAsking(thought))
            self.answered(thought, None, f"(PlanError: {error})", at)
            return
        self._turn()

    def cut_off(self, thought: int, at: float) -> None:
        """Ask again for an answer that broke off.

        If part of a plan was read, it stands, and only the rest is asked for.
        """
        self.run.at = at
        if thought in self._thoughts and self._planner.break_off():
            self._drop(thought)
            self._deliberation.plan_on()
            self._turn()

    def answered(
        self, thought: int, text: str | None, why: str, at: float, *, too_long: bool = False
    ) -> None:
        """Pass in a model's answer; None and `why` if it can't answer. `too_long`: since the question was too long."""
        self.run.at = at
        if thought not in self._thoughts:
            return

        question = self._thoughts[thought].question
        may_be_smaller = text is None and too_long and self.run.affordable
        if may_be_smaller and question is not None and not question.smaller:
            self._ask_smaller(thought, question)
            self._turn()
            return

        if text is None:
            self.run.warn(f"{NO_REPLY} {why}")
        self._advance(thought, text)
        self._turn()

    def _ask_smaller(self, number: int, question: PlanQuestion) -> None:
        """Ask a question once more, smaller, because its endpoint found it too long."""
        smaller = self.run.made_smaller(question)
        self._thoughts[number].question = smaller
        self.run.calls += 1

        if self.paused or self._thoughts[number].judges in self.run.queue.held:
            self._waiting.append(number)
        else:
            self._put(number, smaller)

    def _think(self, thought: _Thought) -> None:
        """Begin a thought."""
        self._counted += 1
        number = self._counted
        self._thoughts[number] = thought

        if thought.judges:
            self.run.attempts[thought.judges].judging = number
        self._advance(number, None)

    def _advance(self, number: int, text: str | None) -> None:
        """Continue a thought to its next question, or its end."""
        run = self.run
        thought = self._thoughts[number]
        while True:
            try:
                question = thought.thinking.send(text)
            except StopIteration:
                self._end_thought(number)
                return

            question = run.addressed(question)
            thought.question = question
            if run.can_ask(question.kind):
                break
            # What can't be asked is answered by nobody, and the thought falls back to its default.
            text = None

        run.count(question.kind)
        if self.paused or thought.judges in run.queue.held:
            self._waiting.append(number)
        else:
            self._put(number, question)

    def _put(self, number: int, question: PlanQuestion) -> None:
        pieces = self._planner.reading and question.kind == "plan"
        self.run.out.append(AskModel(number, question, pieces))

    def _end_thought(self, number: int) -> None:
        thought = self._thoughts.pop(number)
        if thought.holds:
            self.run.let_go()

    def _drop(self, number: int) -> None:
        """Drop a thought whose answer is no longer needed."""
        thought = self._thoughts[number]
        if number in self._waiting:
            self._waiting.remove(number)
        else:
            self.run.out.append(StopAsking(number))

        thought.thinking.close()
        self._end_thought(number)

    def _begin_thoughts(self) -> None:
        """Begin the thoughts that are due."""
        thoughts = self._deliberation.due
        self._deliberation.due = []
        for thought in thoughts:
            if not self.run.cancelled:
                self._think(_Thought(thought.think(), thought.holds))
            elif thought.holds:
                self.run.let_go()

    @property
    def _busy(self) -> bool:
        """Whether a thought is in progress or due, or the plan is still being written."""
        return bool(self._thoughts or self._deliberation.due) or self._planner.growing

    # --- what happens: control ----------------------------------------------------------------------------------

    def pause(self, at: float) -> None:
        """Start and ask nothing until `resume`. Running attempts continue; the plan's own clock stands still."""
        self.run.at = at
        self.paused = True
        for node in self.run.attempts:
            self._dispatch.stand(node)
        self._keep_time()

    def resume(self, at: float) -> None:
        """Resume the plan."""
        self.run.at = at
        self._unpause()
        self._turn()

    def _unpause(self) -> None:
        self.paused = False
        for node in self.run.attempts.keys() - self.run.queue.held:
            self._dispatch.go_on(node)
        self._put_waiting()

    def _put_waiting(self) -> None:
        """Ask the questions that were held back, except those about the output of a held step."""
        waiting = self._waiting
        self._waiting = []
        for number in waiting:
            thought = self._thoughts[number]
            assert thought.question is not None

            if self.paused or thought.judges in self.run.queue.held:
                self._waiting.append(number)
            else:
                self._put(number, thought.question)

    def pause_node(self, node: str, at: float) -> None:
        """Start nothing at one step until `resume_node`.

        A call in progress there continues, and so does the rest of the plan.
        """
        self.run.at = at
        self.run.queue.hold(node)

        if node in self.run.attempts:
            self._dispatch.stand(node)
        self._turn()

    def resume_node(self, node: str, at: float) -> None:
        """Resume a step."""
        self.run.at = at
        self.run.queue.let_go(node)

        if node in self.run.attempts and not self.paused:
            self._dispatch.go_on(node)
        self._put_waiting()
        self._turn()

    @property
    def still(self) -> bool:
        """Whether nothing happens on its own: the plan is paused, or all that is left is held by or for a person."""
        run = self.run
        if self.paused or self.over:
            return True

        # A plan stands still for people only: whatever else is under way, or could start, moves it on.
        held = run.queue.held | self._waiting_without_limit()
        if not held and not self.awaited:
            return False

        running = run.attempts.keys() - held
        if running or run.queue or run.sleeping or self._busy:
            return False

        return bool(run.queue.aside or run.attempts or self.awaited)

    def _waiting_without_limit(self) -> set[str]:
        """The steps that wait for a person whose time has no limit."""
        state = self.run.state
        persons = {node for node, attempt in self.run.attempts.items() if attempt.node.kind == "person"}
        return {node for node in self._held | persons if state.nodes[node].state == "waiting_human"}

    def _keep_time(self) -> None:
        """Stop the plan's own clock while the plan stands still."""
        if self.still:
            if self._still_since is None:
                self._still_since = self.run.at
        elif self._still_since is not None:
            self._stood += self.run.at - self._still_since
            self._still_since = None

    def cancel(self, at: float, *, abort: bool = False, reason: str = "") -> None:
        """End the plan: what has not started is cancelled. What runs finishes, or is cancelled too (`abort`)."""
        self.run.at = at
        self._cancel(abort=abort, reason=reason)
        self._turn()

    def _cancel(self, *, abort: bool, reason: str) -> None:
        run = self.run
        run.concluded = run.cancelled = True
        if not run.bound:
            run.stopped_by_person = reason or STOPPED

        self.paused = self.awaited = False
        spared = () if abort else ("running", "waiting_human")
        if abort:
            self._planner.growing = False

        for node, record in list(run.state.nodes.items()):
            is_open = record.state not in TERMINAL and record.state not in spared
            if is_open and node in run.state.plan.nodes:
                run.emit(node, "cancelled", detail=reason)
        if abort:
            # Thoughts about outputs end with their attempts.
            for number in [number for number, thought in self._thoughts.items() if not thought.judges]:
                self._drop(number)
        self._unpause()

    def cancel_node(self, node: str, at: float, *, reason: str = "") -> None:
        """Cancel one node and leave the rest to the plan."""
        self.run.at = at
        if self.run.state.nodes[node].state not in TERMINAL:
            self.run.emit(node, "cancelled", detail=reason)
            self._stop_weighing(node)
            self._turn()

    def _stop_weighing(self, node: str) -> None:
        """Ask no more what a message asks of the work, since it was taken back: nothing waits for it."""
        for number, thought in list(self._thoughts.items()):
            question = thought.question
            if question is not None and question.kind == "word" and question.node == node:
                self._drop(number)
                self.run.let_go()

    def interject(self, text: str, at: float, *, at_once: bool = False) -> None:
        """Pass a person's message to the running plan: what runs finishes, the rest waits for the reflection on it.

        `at_once`: the reflection does not wait for what runs, and if the plan ends, what runs is cancelled.
        """
        self.run.at = at
        if not self.over:
            self._deliberation.interject(text, at_once=at_once)
            self._turn()

    # --- what happens: a person changes the plan --------------------------------------------------------------------

    def start(self, at: float) -> None:
        """Begin a plan that a person had to review first."""
        self.run.at = at
        if self.awaited:
            self.awaited = False
            self.run.let_go()
            self._turn()

    def edited(self, plan: PlanGraph) -> PlanVersion:
        """Return the version that a person's edit makes.

        Raises:
            PlanError: nothing can be changed now, or the steps can't run.
        """
        if self.over or not (self.awaited or self.paused):
            raise PlanError("The plan runs; pause it before you change its steps.")
        if self._busy:
            raise PlanError("The plan is being written or thought about; wait until that is done.")

        return revision.edited(self.run.state, plan, self.run.admission, exact=not self.run.follows_1_3)

    def edit(self, plan: PlanGraph, at: float) -> None:
        """Replace the steps that have not started by a person's.

        Raises:
            PlanError: as `edited`.
        """
        run = self.run
        version = self.edited(plan)
        run.at = at
        run.goal = plan.goal or run.goal
        run.superseded.update(version.drop)

        written = {node.id for node in (*version.add, *version.rewire)}
        run.given |= written
        run.by_person |= written

        # Everything is blocked meanwhile, so that nothing starts before the version stands.
        run.hold()
        run.gate_all()
        run.adopt(version)
        run.let_go()
        self._turn()

    def again(self, node: str) -> tuple[PlanVersion, Mapping[str, str]]:
        """Return the version in which a step without a result is tried again, and the new ids.

        Raises:
            PlanError: it can't be tried again.
        """
        if self.run.cancelled or self.run.bound:
            raise PlanError("The plan was ended, so nothing of it can be tried again.")
        return revision.again(self.run.state, node)

    def retry(self, node: str, at: float) -> None:
        """Run a step without a result again for a person, with the steps that needed it, even if the plan had ended.

        Raises:
            PlanError: as `again`.
        """
        run = self.run
        version, names = self.again(node)
        if self.over:
            self._stood += at - run.at
        run.at = at

        # What ended the plan, or was thought of it as a whole, does not hold any more.
        self.over = run.concluded = run.dismissed = False
        run.way_out = None
        run.answer = run.judgement = None
        run.stopped_by_person = ""

        run.mode.interjected()
        run.note_tried_again(names)
        run.adopt(version)
        self._turn()

    def written_as(self) -> str:
        """Return the plan as a person would write it."""
        return plan_text(self.run.goal, revision.standing(self.run.state, self.run.superseded))

    def write(self, piece: str, at: float) -> None:
        """Pass in the next piece of a plan that is still being written (`growing`). Complete steps start at once."""
        self.run.at = at
        self._planner.write(piece)
        self._turn()

    def written(self, at: float) -> None:
        """Note that the plan is complete."""
        self.run.at = at
        self._planner.written()
        self._turn()

    def spend(self, tokens: int) -> None:
        """Count tokens. The plan ends when the bound is reached."""
        run = self.run
        run.tokens += tokens
        if run.limits.tokens is not None and run.tokens >= run.limits.tokens and not run.bound:
            self._hit("tokens")

    def _hit(self, bound: str) -> None:
        if not self.over:
            self.run.bound = bound
            self._cancel(abort=True, reason=f"The bound on {bound.replace('_', ' ')} was hit.")

    # --- what happens: time ---------------------------------------------------------------------------------------

    def stood_still(self, since: float, at: float) -> None:
        """Note that nothing could happen since then: neither the plan's own clock nor those of its attempts ran."""
        self.run.at = at
        if self._still_since is None:
            self._stood += at - since

        for node, attempt in self.run.attempts.items():
            if not attempt.ending and self.run.state.nodes[node].state == "running":
                self._dispatch.limit(node, self._dispatch.time_limit(attempt.node))

    def wake(self, at: float) -> None:
        """Set the time to `at` and do what is due."""
        self.run.at = at
        while (due := self.run.take_due()) is not None and not self.over:
            self._due(*due)
            self._turn()

    def _due(self, kind: Timer, node: str) -> None:
        match kind:
            case "retry":
                self._retry(node)
            case "throttled":
                self._dispatch.woken(node)
            case "overdue":
                for overdue in self._dispatch.overdue():
                    self._time_over(overdue)
            case "moment":
                self._deliberation.observe()
            case "late":
                self._late()

    def _retry(self, node: str) -> None:
        run = self.run
        run.sleeping.discard(node)
        if run.state.nodes[node].state != "failed_retryable":
            return

        if run.state.join(node) == "holds":
            run.emit(node, "retried")
        else:
            run.emit(node, "exhausted", detail="What it stands on was lost meanwhile.")
            self._ended_work(node)

    def _time_over(self, node: str) -> None:
        attempt = self.run.attempts[node]
        if self.run.state.nodes[node].state == "waiting_human":
            self._expired(node)
        elif not attempt.ending:
            attempt.ending = "timeout"
            self._end_attempt(attempt)

    def _late(self) -> None:
        """End the plan if its time is over, not counting the time that it stood still."""
        run = self.run
        allowed = (run.limits.wall_clock or 0.0) + self._stood
        left = allowed - run.at
        if self.still or left > 0:
            run.timer(run.at + max(left, 1.0), "late")
        else:
            self._hit("wall_clock")

    # --- what follows ------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Do all that follows from an input: start what may start; if nothing can, think, or end."""
        run = self.run
        thoughts = self._deliberation
        while not self.over:
            if run.stopped:
                self._stop_stopped()
            if run.queue and not self.paused:
                self._start()
            if thoughts.due:
                self._begin_thoughts()
            elif not run.stopped and (self._goes_on or not self._rest()):
                break

        if run.stopped:
            self._stop_stopped()
        self._keep_time()

    @property
    def _goes_on(self) -> bool:
        """Whether something is in progress that may still change the plan, or the plan is paused."""
        run = self.run
        runs = run.attempts.keys() - run.queue.held
        return bool(runs or run.queue or run.sleeping or self._busy or self.paused)

    def _stop_stopped(self) -> None:
        run = self.run
        while run.stopped:
            self._stop_attempt(run.stopped.pop(0))

    def _start(self) -> None:
        """Start what may start, up to the limit on concurrency."""
        run = self.run
        while run.queue and len(run.attempts) < run.limits.concurrency:
            self._dispatch.next()
            if self._dispatch.ended:
                ended = self._dispatch.ended
                self._dispatch.ended = []
                for node in ended:
                    self._ended_work(node)

    def _rest(self) -> bool:
        """Handle a plan in which nothing runs and nothing can start. Returns whether something can start again."""
        run = self.run
        if self._deliberation.hear():
            return True
        # Nothing runs that could still end in this moment.
        if self._deliberation.observe():
            return True

        held_by_person = bool(run.attempts or run.queue.aside)
        if held_by_person:
            return False
        if self.awaited and run.state.work_in(*NOT_STARTED):
            return False

        if self._deliberation.at_rest():
            return True

        if run.state.in_state("blocked") and not run.holds:
            run.release()
            if run.queue:
                return True

        if self._deliberation.judge_whole():
            return True

        self._settle()
        self.over = True
        return False

    def _settle(self) -> None:
        """Close a plan that will not change any more: steps that could not run say why (the deadlock report)."""
        run = self.run
        state = run.state
        unfinished = state.in_state("pending", "blocked", "ready", "failed_retryable")
        self._settle_lost(unfinished)

        for node in unfinished:
            if state.nodes[node].state in TERMINAL:
                continue
            why = ", ".join(state.waits_for(node)) or ("nothing" if run.whole else "the rest of the plan")
            run.warn(f"Step {node!r} never started; it waited for {why}.")
            run.emit(node, "cancelled", detail=f"It never started; it waited for {why}.")

    def _settle_lost(self, unfinished: Sequence[str]) -> None:
        """End the steps whose join is lost, until no further one is lost by the end of another."""
        run = self.run
        state = run.state
        changed = True
        while changed:
            changed = False
            for node in unfinished:
                record = state.nodes[node]
                if record.state not in ("pending", "blocked") or state.join(node) != "lost":
                    continue

                why = "It waited for what did not succeed: " + ", ".join(state.waits_for(node)) + "."
                raced = state.any_of(node) and record.missing == 0
                if raced and record.state == "blocked":
                    run.emit(node, "released")
                run.emit(node, "join_failed" if raced else "dependency_failed", detail=why)
                changed = True

    def result(self) -> PlanResult:
        """Return the plan's result."""
        run = self.run
        ends = gather(run.state, run.superseded)
        result = run.result()
        verdict = verdict_of(self._ended(result))

        return PlanResult(
            verdict, status_of(verdict, any_done=ends.any_done), result, run.state.nodes,
            tuple(run.state.versions), tuple(run.trail), run.calls, run.tokens, run.at, run.bound,
            tuple(run.warnings), tuple(run.flags), run.confidence,
        )  # fmt: skip

    def _ended(self, result: JSON) -> Ended:
        """The facts from which the verdict on the plan follows."""
        run = self.run
        return Ended(
            run.state,
            judges=run.mode.judges,
            judgement=run.judgement,
            given=run.given,
            by_person=run.by_person,
            superseded=run.superseded,
            replaced=run.replaced,
            wanted_otherwise=run.wanted_otherwise,
            heirs=run.heirs,
            unneeded=run.unneeded,
            effects=run.effects,
            broken=self._broken(result),
            distrust=run.mode.distrust,
            bound=run.bound,
            stopped=run.stopped_by_person,
        )

    def _broken(self, result: JSON) -> str:
        """How the plan's own contract fell, or was not checked; empty if it holds."""
        contract = self.run.contract
        if contract is NO_ERROR:
            return ""

        broken = contracts.violation(contract, StepSuccess(result))
        if broken is not None:
            return broken
        if contract.judgement is None:
            return ""

        about, holds = self.run.whole_judged or ("", None)
        if holds is None or about != contracts.as_text(result):
            return f"Not checked: {contract.judgement}"
        return "" if holds else f"{contracts.JUDGED_NOT_TO_HOLD}: {contract.judgement}"


def _output_of(success: StepSuccess) -> str:
    """Quote an output that broke its contract, for the model that repairs the step."""
    if contracts.is_empty(success.output):
        return ""
    text = excerpt(contracts.as_text(success.output), _QUOTED).strip()
    return f" Its output: {text}" if text else ""
