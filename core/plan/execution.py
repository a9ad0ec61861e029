"""The state of a running plan, and the changes that every part of its policy may make.

Pure: the time is `at`, set by the caller that tells the machine what happened, and what must be done in the world is
appended to `out`. The parts above (dispatch, thoughts, the machine) decide. Here a decision becomes an event, with all
its immediate consequences.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from iact.core.context.tokens import estimate
from iact.core.plan.admission import NOT_STARTED, Admission, former_id, inheriting
from iact.core.plan.answers import SHAPES, WayOut, WayOutKind
from iact.core.plan.briefing import NOTHING, Briefing
from iact.core.plan.commands import Command, PlanNotice
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import WORK, PlanError, PlanExtension, PlanGraph, PlanNode, PlanVersion
from iact.core.plan.modes.base import Mode
from iact.core.plan.prompt import UNLIMITED, build, window_for
from iact.core.plan.protocol import (
    ROLES,
    FunctionCatalogue,
    FunctionInfo,
    PlanQuestion,
    QuestionKind,
    StepFailure,
    StepSuccess,
)
from iact.core.plan.questions import PlanSituation
from iact.core.plan.recovery import Exhausted, LadderBudget, RecoveryLadder, Retry
from iact.core.plan.result import gather
from iact.core.plan.schedule import ReadyQueue
from iact.core.plan.state import NodeChange, PlanEvent, PlanState
from iact.core.plan.states import TERMINAL, Cause
from iact.core.plan.validate import effective_impact
from iact.core.plan.verdict import GoalJudgement, JudgementKind
from iact.core.ports import JSON

Timer = Literal["retry", "throttled", "overdue", "moment", "late"]
"""What a timer waits for: a retry's backoff, an endpoint's rate, an attempt's time limit, the end of the moment whose
results have one observer, or the plan's time limit."""

NEVER: Final = float("inf")

_FOR_PERSON: Final[frozenset[QuestionKind]] = frozenset({"word", "interject"})
"""Questions about a person's message."""

_LEFT_WITH: Final[Mapping[WayOutKind, JudgementKind]] = {
    "nothing to do": "nothing_to_do",
    "ask the person": "wanted_more",
    "it can't be done": "not_reached",
}
"""What a way out says about whether the goal is reached."""


@dataclass(slots=True)
class Attempt:
    """One attempt in progress."""

    node: PlanNode
    arguments: Mapping[str, JSON]
    names: tuple[str, ...]
    """Resources that it holds exclusively."""
    shared: tuple[str, ...] = ()
    """Resources that it holds together with other attempts of a race, each in a copy of the workspace."""
    race: str = ""
    """The node for which it races; empty if it does not."""
    ending: Literal["", "timeout", "stopped"] = ""
    """Why it is being stopped: its time was over, or its result is no longer needed."""
    judging: int = 0
    """The thought that judges its output; 0 if none does."""
    kept: StepSuccess | None = None
    """Its result in its copy, which is not taken over yet."""
    shown: StepSuccess | None = None
    """Its result, while a person is asked whether they accept it."""
    questions: int = 0
    """How often its agent has asked something."""


class Execution:
    """The state of one run. Times are in seconds since the plan's start."""

    def __init__(
        self,
        plan: PlanGraph,
        *,
        mode: Mode,
        limits: PlanLimits,
        catalogue: FunctionCatalogue | None,
        asks: bool,
        briefing: Briefing = NOTHING,
        by_person: bool = False,
        follows_1_3: bool = True,
        window: Callable[[str], int] = lambda role: UNLIMITED,
    ) -> None:
        """`asks`: whether there is a model to ask. `briefing`: what models are told besides the goal.
        `by_person`, `follows_1_3`: see `PlanMachine`. `window`: the tokens that the model of a role can read, as far as
        that is known now.
        """
        self.follows_1_3 = follows_1_3
        mode.follows_1_3 = follows_1_3
        self.limits = limits
        self.briefing = briefing
        self.window = window
        self.shorter: dict[str, str] = {}
        """What a model made of long results and messages, by their ids."""
        self.mode = mode
        self.catalogue = catalogue
        self.asks = asks

        self.state = PlanState(plan.id, plan.goal)
        self.contract = plan.contract
        self.whole_judged: tuple[str, bool | None] | None = None
        """The result that a model was asked about for the contract of the whole plan, and whether that holds; None if it
        gave no answer."""

        replans = limits.replans if mode.max_replans is None else mode.max_replans
        self.ladder = RecoveryLadder(
            self.state, LadderBudget(limits.patches, replans), backoff=limits.backoff
        )
        self.admission = Admission(self.state, mode, limits, catalogue)

        self.trail: list[PlanEvent] = []
        self.warnings: list[str] = []
        self.flags: list[str] = []

        # How it may end.
        self.answer: str | None = None
        self.judgement: GoalJudgement | None = None
        """What was said last about whether the goal is reached."""
        self.stopped_by_person = ""
        """How a person ended the plan before its goal was reached; empty if no one did."""
        self.way_out: WayOut | None = None
        """What a model said instead of naming further steps; None if none did."""
        self.confidence: float | None = None
        """The confidence of the latest judgement of whether the goal was reached."""
        self.bound = ""

        # What was spent.
        self.tokens = 0
        self.calls = 0
        """Model calls so far."""
        self.calls_for_person = 0
        """Those of them about a person's messages, which a mode's own bound does not count."""

        # What became of its steps.
        self.superseded: set[str] = set()
        """Steps that count no more: others run in their places, or they were left out."""
        self.wanted_otherwise: set[str] = set()
        """Steps of a model that a person wanted otherwise before they began."""
        self.replaced: dict[str, tuple[str, ...]] = {}
        """Of those, the ones that a model replaced, with the steps in their places; none if it left a step out."""
        self.heirs: set[str] = set()
        """Replaced steps whose contract was inherited by a step in their place."""
        self.given = set(plan.nodes)
        """Steps that the caller wrote, and steps in their places."""
        self.by_person = set(plan.nodes) if by_person else set()
        """Those of them that a person wrote."""
        self.unneeded: set[str] = set()
        """Steps that an observer cancelled, because nobody needed them any more."""
        self.unanswered: set[str] = set()
        """Steps that nobody was there to do, or whose results nobody was there to accept."""
        self.effects: set[str] = set()
        """Calls that changed something, or may have, by step."""
        self.no_new_plan = False
        """Whether the planner could not say what else to do: it is not asked the same again."""

        # What may start, and what is under way.
        self.holds = 0
        """The number of open thoughts that keep everything from starting until their verdict."""
        self.concluded = False
        self.dismissed = False
        """Set when a person's message ended the plan: no more thinking about it is needed."""
        self.cancelled = False
        self.goal = plan.goal
        self.at = 0.0
        self.out: list[Command] = []
        self.queue = ReadyQueue()
        self.sleeping: set[str] = set()
        """Nodes that a timer will wake."""
        self.attempts: dict[str, Attempt] = {}
        self.stopped: list[str] = []
        """Attempts whose results are no longer needed; the machine stops them."""
        self.whole = True
        """Whether the plan was admitted as a whole; False while it is still being written."""
        self.unadmitted: list[str] = []
        """Ready nodes that can have an effect and wait until the plan is admitted as a whole."""
        self._timers: list[tuple[float, int, Timer, str]] = []
        self._counted = 0

    # --- events ---------------------------------------------------------------------------------------

    def emit(self, node: str, cause: Cause, *, detail: str = "") -> None:
        """Apply a change with all its immediate consequences."""
        self._follow(self.state.happen(node, cause, self.at, detail))

    def succeed(
        self, node: str, output: JSON, labels: tuple[str, ...], validation: str, detail: str = ""
    ) -> None:
        """Record a node's work as done and valid."""
        record = self.state.nodes[node]
        change = NodeChange(
            node, self.state.versions[-1].version, "succeeded", record.state, "executed", self.at,
            record.attempts, detail, output, labels, validation,
        )  # fmt: skip
        self.state.apply(change)
        self._follow(change)

    def adopt(self, version: PlanVersion) -> None:
        """Switch to a version; what it drops is cancelled first."""
        for node in version.drop:
            if self.state.nodes[node].state not in TERMINAL:
                reason = f"Dropped by version {version.version}: {version.reason}"
                self.emit(node, "dropped", detail=reason)

        self.state.adopt(version)
        self.trail.append(version)
        self.out.append(version)
        self._begin((*version.add, *version.rewire))

    def _begin(self, nodes: Iterable[PlanNode]) -> None:
        """Make nodes ready at once if they need nothing, or nothing more."""
        for node in sorted(nodes, key=lambda node: node.id):
            record = self.state.nodes[node.id]
            needs_nothing = record.missing == 0 and record.state == "pending"
            if needs_nothing and self.state.join(node.id) == "holds":
                self.emit(node.id, "joined")

    def _follow(self, change: NodeChange) -> None:
        """Report a change that was applied, and act on it: in the queue, the attempts and other nodes."""
        self.trail.append(change)
        self.out.append(change)

        node = change.node
        if change.source == "ready" or change.source == "failed_retryable":
            self.queue.remove(node)
            self.sleeping.discard(node)

        target = change.target
        if target == "ready":
            self.became_ready(node)
        elif target == "executed" or target == "pending":
            for follower, cause in self.state.consequences(change):
                self.emit(follower, cause)
        elif target in TERMINAL and change.cause not in ("broke", "exhausted") and node in self.attempts:
            # It ended for another reason than its attempt, which is still in progress.
            self.stopped.append(node)

    def became_ready(self, node: str) -> None:
        """Queue a node whose join holds, or let it wait for a verdict."""
        if self.state.nodes[node].node.kind not in WORK:
            return

        if self.concluded:
            self.emit(node, "concluded", detail="The plan has concluded.")
        elif self.holds or not self.mode.admits(self.state, node):
            self.emit(node, "gated")
        else:
            self.queue.add(node)

    def release(self) -> None:
        """Let blocked nodes check whether they may start now."""
        for node in self.state.in_state("blocked"):
            self.emit(node, "released")

    def gate_all(self) -> None:
        """Block everything that has not started."""
        for node in self.state.work_in("pending", "ready"):
            self.emit(node, "gated")

    def admit(self) -> None:
        """Admit the plan as a whole, after validation: nodes that can have an effect may start."""
        self.whole = True
        waiting = self.unadmitted
        self.unadmitted = []
        for node in waiting:
            if self.state.nodes[node].state == "ready":
                self.queue.add(node)

    def hold(self) -> None:
        """Begin a thought that keeps everything from starting until its verdict."""
        self.holds += 1

    def let_go(self) -> None:
        """End a thought that kept everything from starting."""
        self.holds -= 1
        if not self.holds:
            self.release()

    def note_replaced(self, node: str, heirs: Sequence[str], *, inherits: bool) -> None:
        """Note that a model put other steps in a step's place, or left it out. `inherits`: its contract, too."""
        self.superseded.add(node)
        self.replaced[node] = tuple(heirs)
        if inherits:
            self.heirs.add(node)

        for written in (self.given, self.by_person):
            if node in written:
                written.update(heirs)

    def note_tried_again(self, names: Mapping[str, str]) -> None:
        """Note that a person has steps run again, under the new ids that `names` gives for theirs.

        Such a step counts no more, no matter what a model did about it; the new one owes what it owed.
        """
        self.superseded.update(names)
        for former, new in names.items():
            self.replaced.pop(former, None)
            self.heirs.discard(former)
            for written in (self.given, self.by_person):
                if former in written:
                    written.add(new)

        for node, heirs in self.replaced.items():
            self.replaced[node] = tuple(names.get(heir, heir) for heir in heirs)

    def take_places(
        self, nodes: Sequence[PlanNode], gone: Sequence[str], *, wanted: bool = False
    ) -> tuple[PlanNode, ...]:
        """Put a planner's new steps in the places of those that failed or will not run. Returns them as they may join.

        A new step takes the place of one that it names, or whose id it was given again, and then its contract binds it.
        Other steps that the caller wrote have all the new ones in their places, unless a person `wanted` others.
        """
        if not self.follows_1_3:
            self.superseded.update(node for node in gone if self.state.nodes[node].state in TERMINAL)
            return tuple(nodes)

        # Each slot has one heir, the first that names it.
        heirs: dict[str, str] = {}
        placed: list[PlanNode] = []
        for node in nodes:
            slot = next((slot for slot in gone if slot in (node.spawned_by, former_id(node.id))), "")
            if slot and slot not in heirs:
                heirs[slot] = node.id
                contract = self.state.nodes[slot].node.contract
                placed += inheriting([replace(node, spawned_by=slot)], contract)
            else:
                placed.append(replace(node, spawned_by=""))

        new_ids = [node.id for node in nodes]
        for slot in gone:
            had_ended = self.state.nodes[slot].state in TERMINAL
            if wanted and slot not in self.given and not had_ended:
                self.wanted_otherwise.add(slot)

            if slot in heirs:
                self.note_replaced(slot, [heirs[slot]], inherits=True)
            elif wanted:
                self.superseded.add(slot)
            elif slot in self.given or had_ended:
                self.note_replaced(slot, new_ids, inherits=False)
        return tuple(placed)

    def conclude(self, reason: str, answer: str | None) -> None:
        """Start nothing more. Running nodes finish."""
        self.concluded = True
        if answer is not None:
            self.answer = answer

        # The end of one step may end others, so each is looked at again.
        for node in self.state.work_in(*NOT_STARTED, "failed_retryable"):
            if self.state.nodes[node].state not in TERMINAL:
                self.emit(node, "concluded", detail=reason)

        # A person's work does not go on by itself: nothing is lost if they are not asked any more.
        for node in self.state.work_in("waiting_human"):
            if self.state.nodes[node].node.kind == "person":
                self.emit(node, "concluded", detail=reason)

    def leave(self, way: WayOut) -> None:
        """End the plan with what a model says instead of naming steps."""
        self.way_out = way
        self.dismissed = True  # nothing that could still be thought would change it
        self.judgement = GoalJudgement(_LEFT_WITH[way.kind], way.text)
        self.conclude(way.text, way.text)

    def warn(self, *texts: str) -> None:
        """Warn a person; models do not see it."""
        self.warnings.extend(texts)
        self.out.extend(map(PlanNotice, texts))

    def thought(self, node: str, answer: JSON) -> None:
        """Record the answer of a node that represents a thought."""
        if self.state.nodes[node].state == "running":
            self.succeed(node, answer, ("model",), "parsed")

    def add(self, reason: str, nodes: Sequence[PlanNode]) -> None:
        """Switch to a version that adds `nodes`, as the result of a decision.

        It is the first version if there is none yet.
        """
        if self.state.versions:
            self.adopt(self.state.plan.revise(reason, add=nodes))
        else:
            self.join(reason, nodes)

    def join(self, reason: str, nodes: Sequence[PlanNode]) -> None:
        """Let `nodes` join the current version without a decision. The first version begins if there is none yet.

        Raises:
            PlanError: an id is taken.
        """
        taken = [node.id for node in nodes if node.id in self.state.nodes]
        if taken:
            raise PlanError(f"the plan has a step {taken[0]!r} already; choose another id")

        if not self.state.versions:
            self.adopt(PlanVersion(1, None, reason, tuple(nodes)))
            return
        extension = PlanExtension(self.state.versions[-1].version, reason, tuple(nodes))
        self.state.extend(extension)
        self.trail.append(extension)
        self.out.append(extension)
        self._begin(nodes)

    # --- what is known ----------------------------------------------------------------------------------

    def info(self, node: PlanNode) -> FunctionInfo | None:
        """The declared facts about the function that a tool node calls."""
        if self.catalogue is None or node.kind != "tool":
            return None
        return self.catalogue.find(node.call)

    def info_of(self, node: PlanNode, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        """The facts about the specific call that a node makes."""
        if self.catalogue is None or node.kind != "tool":
            return None
        return self.catalogue.of_call(node.call, arguments)

    def impact_of(self, node: PlanNode, arguments: Mapping[str, JSON]) -> float:
        """The impact that an attempt can have. An agent or a person counts as writing, unless the plan declares
        otherwise."""
        declares_none = node.kind != "tool" and node.impact is None
        least = 1 if declares_none else 0
        return max(least, effective_impact(node, self.info_of(node, arguments), self.catalogue))

    def infos(self) -> Sequence[FunctionInfo]:
        """The functions that steps may call."""
        return self.catalogue.all() if self.catalogue is not None else ()

    @property
    def affordable(self) -> bool:
        """Whether one more model call is possible, within the plan's bounds and its mode's."""
        if not self._affordable:
            return False
        return self.mode.max_calls is None or self.calls - self.calls_for_person < self.mode.max_calls

    def can_ask(self, kind: QuestionKind) -> bool:
        """Whether a question can be asked now. A person's message is read whatever the mode counts."""
        if kind in _FOR_PERSON and self.follows_1_3:
            return self._affordable
        return self.affordable

    def count(self, kind: QuestionKind) -> None:
        """Count a model call."""
        self.calls += 1
        if kind in _FOR_PERSON and self.follows_1_3:
            self.calls_for_person += 1

    @property
    def _affordable(self) -> bool:
        """Whether one more model call is possible, within the plan's bounds."""
        return self.asks and self.calls < self.limits.model_calls and not self.bound

    def situation(self) -> PlanSituation:
        """The plan as it stands now, for a question about it."""
        return PlanSituation(
            self.goal,
            self.briefing,
            self.infos(),
            self.state,
            frozenset(self.superseded),
            self.mode.rules_applied(),
            reports=self.mode.reports and self.limits.report,
        )

    def words(self) -> list[str]:
        """What the person wrote that the plan is for, and since it runs."""
        interjections = [
            record.node.task for record in self.state.nodes.values() if record.node.kind == "interjection"
        ]
        return [*self.briefing.words, *interjections]

    def role_of(self, kind: QuestionKind) -> str:
        """The role of the model that answers a question. Only decided here."""
        return self.limits.roles.get(kind) or ROLES[kind]

    def addressed(self, question: PlanQuestion) -> PlanQuestion:
        """Complete a question: the role that answers it, the shape of its answer, and its text for that role's window."""
        role = self.role_of(question.kind)
        text = question.text or build(question.parts, self.window(role))
        shape = question.shape or SHAPES.get(question.kind)
        return replace(question, role=role, shape=shape, text=text)

    def made_smaller(self, question: PlanQuestion) -> PlanQuestion:
        """The same question in half of the room, or in what its endpoint has told of its window since."""
        # An endpoint that refused may have told of a window that is smaller than half.
        window = min(self.window(question.role), window_for(estimate(question.text) // 2))
        return replace(question, text=build(question.parts, window), smaller=True)

    def try_again(
        self, node: PlanNode, failure: StepFailure, arguments: Mapping[str, JSON], *, copied: bool = False
    ) -> Retry | Exhausted:
        """Rung 1, for an attempt with these arguments. `copied`: it was made in a copy, so it had no effect."""
        info = self.info_of(node, arguments)
        impact = 0 if copied else self.impact_of(node, arguments)
        idempotent = bool(node.idempotent or (info is not None and info.idempotent))
        return self.ladder.attempt_retry(node.id, failure, impact=impact, idempotent=idempotent)

    def outputs(self) -> dict[str, JSON]:
        """The outputs of finished work, by id, in the order of the plan."""
        nodes = self.state.nodes
        return {
            node.id: nodes[node.id].output
            for node in self.state.plan.nodes.values()
            if node.kind in WORK and nodes[node.id].state == "executed"
        }

    def result(self) -> JSON:
        """The plan's result as it stands: the answer that a model gave, or what the last steps returned."""
        if self.answer is not None:
            return self.answer
        return gather(self.state, self.superseded).result

    # --- times ----------------------------------------------------------------------------------------------

    @property
    def due(self) -> float | None:
        """When the next timer is due; None if there is none."""
        return self._timers[0][0] if self._timers else None

    def timer(self, due: float, kind: Timer, node: str = "") -> None:
        """Start a timer. It can't be cancelled, so its handler checks whether it still matters."""
        self._counted += 1
        heapq.heappush(self._timers, (due, self._counted, kind, node))

    def take_due(self) -> tuple[Timer, str] | None:
        """Take the next timer that is due; None if none is."""
        if not self._timers or self._timers[0][0] > self.at:
            return None
        _, _, kind, node = heapq.heappop(self._timers)
        return kind, node
