"""What a running plan consists of, and the changes that every part of its policy may make.

Pure: time is `at`, set by whoever tells the machine what happened; what is to be done in the world is appended to
`out`. The parts above (dispatch, thoughts, the machine) decide; here a decision becomes an event, with all that
follows from it at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from iact.core.plan.admission import NOT_STARTED, Admission
from iact.core.plan.answers import SHAPES
from iact.core.plan.briefing import NOTHING, Briefing
from iact.core.plan.commands import Command, PlanNotice
from iact.core.plan.limits import PlanLimits
from iact.core.plan.model import WORK, PlanError, PlanExtension, PlanGraph, PlanNode, PlanVersion
from iact.core.plan.modes.base import Mode
from iact.core.plan.protocol import (
    ROLES,
    FunctionCatalogue,
    FunctionInfo,
    PlanQuestion,
    StepFailure,
    StepSuccess,
)
from iact.core.plan.recovery import Exhausted, LadderBudget, RecoveryLadder, Retry
from iact.core.plan.schedule import ReadyQueue
from iact.core.plan.state import NodeChange, PlanEvent, PlanState
from iact.core.plan.states import TERMINAL, Cause
from iact.core.plan.validate import effective_impact
from iact.core.ports import JSON

Timer = Literal["retry", "throttled", "overdue", "late"]
"""What a time is waited for: a retry's backoff, an endpoint's rate, the time limit of an attempt, that of the plan."""

NEVER: Final = float("inf")


@dataclass(slots=True)
class Attempt:
    """One attempt that runs. `names`: what it holds alone meanwhile; `shared`: what it holds with others that race, each
    in a copy of the workspace. `race`: the node for which it does that. `judging`: the thought that looks at its output.

    `kept`: what it gave in its copy, which is not taken over yet. `ending`: it is being stopped, because its time was
    over or because nothing is to come of it.
    """

    node: PlanNode
    arguments: Mapping[str, JSON]
    names: tuple[str, ...]
    shared: tuple[str, ...] = ()
    race: str = ""
    ending: Literal["", "timeout", "stopped"] = ""
    judging: int = 0
    kept: StepSuccess | None = None


class Execution:
    """The state of one run. Times in seconds since the plan's start."""

    def __init__(
        self,
        plan: PlanGraph,
        *,
        mode: Mode,
        limits: PlanLimits,
        catalogue: FunctionCatalogue | None,
        asks: bool,
        briefing: Briefing = NOTHING,
    ) -> None:
        """`asks`: whether there is anybody to ask. `briefing`: what those are told beside the goal."""
        self.limits = limits
        self.briefing = briefing
        self.mode = mode
        self.catalogue = catalogue
        self.asks = asks
        self.state = PlanState(plan.id, plan.goal)
        self.contract = plan.contract
        replans = limits.replans if mode.max_replans is None else mode.max_replans
        self.ladder = RecoveryLadder(
            self.state, LadderBudget(limits.patches, replans), backoff=limits.backoff
        )
        self.admission = Admission(self.state, mode, limits, catalogue)
        self.trail: list[PlanEvent] = []
        self.warnings: list[str] = []
        self.flags: list[str] = []
        self.answer: str | None = None
        self.shortfall = ""
        """Why the goal counts as not reached, as whoever judged last said; empty where nobody says that."""
        self.confidence: float | None = None
        """Of who judged last whether the goal was reached."""
        self.bound = ""
        self.tokens = 0
        self.calls = 0
        """Model calls so far."""
        self.superseded: set[str] = set()
        self.holds = 0
        """Thoughts for whose verdict everything that has not started waits."""
        self.concluded = False
        self.dismissed = False
        """A person's message ended it: nobody needs to think about it any more."""
        self.cancelled = False
        self.goal = plan.goal
        self.at = 0.0
        self.out: list[Command] = []
        self.queue = ReadyQueue()
        self.sleeping: set[str] = set()
        """Nodes that a timer will wake."""
        self.attempts: dict[str, Attempt] = {}
        self.stopped: list[str] = []
        """Attempts that nothing is to come of any more, to be stopped by the machine."""
        self.whole = True
        """Whether the plan was admitted as a whole; it is not while it is still being written."""
        self.unadmitted: list[str] = []
        """Ready nodes that can have an effect, and wait for that."""
        self._timers: list[tuple[float, int, Timer, str]] = []
        self._counted = 0

    # --- events ---------------------------------------------------------------------------------------

    def emit(self, node: str, cause: Cause, *, detail: str = "") -> None:
        """Make a change happen, with all that follows from it at once."""
        self._follow(self.state.happen(node, cause, self.at, detail))

    def succeed(
        self, node: str, output: JSON, labels: tuple[str, ...], validation: str, detail: str = ""
    ) -> None:
        """A node's work is done and valid."""
        record = self.state.nodes[node]
        change = NodeChange(
            node, self.state.versions[-1].version, "succeeded", record.state, "executed", self.at,
            record.attempts, detail, output, labels, validation,
        )  # fmt: skip
        self.state.apply(change)
        self._follow(change)

    def adopt(self, version: PlanVersion) -> None:
        """Go over to a version; what it drops is cancelled first."""
        for one in version.drop:
            if self.state.nodes[one].state not in TERMINAL:
                self.emit(one, "dropped", detail=f"Dropped by version {version.version}: {version.reason}")
        self.state.adopt(version)
        self.trail.append(version)
        self.out.append(version)
        self._begin((*version.add, *version.rewire))

    def _begin(self, nodes: Iterable[PlanNode]) -> None:
        """Nodes that need nothing, or nothing more, are ready at once."""
        for node in sorted(nodes, key=lambda node: node.id):
            record = self.state.nodes[node.id]
            if record.missing == 0 and record.state == "pending" and self.state.join(node.id) == "holds":
                self.emit(node.id, "joined")

    def _follow(self, change: NodeChange) -> None:
        """A change has been applied: tell of it, and do what it means for the queue, the attempts and the others."""
        self.trail.append(change)
        self.out.append(change)
        node, source, target = change.node, change.source, change.target
        if source == "ready" or source == "failed_retryable":
            self.queue.remove(node)
            self.sleeping.discard(node)
        if target == "ready":
            self.became_ready(node)
        elif target == "executed" or target == "pending":
            for one, cause in self.state.consequences(change):
                self.emit(one, cause)
        elif target in TERMINAL and change.cause not in ("broke", "exhausted") and node in self.attempts:
            self.stopped.append(node)

    def became_ready(self, node: str) -> None:
        """A node's join holds: it may be started, or waits for a verdict."""
        if self.state.nodes[node].node.kind not in WORK:
            return
        if self.concluded:
            self.emit(node, "concluded", detail="The plan has concluded.")
        elif self.holds or not self.mode.admits(self.state, node):
            self.emit(node, "gated")
        else:
            self.queue.add(node)

    def release(self) -> None:
        """Let blocked nodes see whether they may start now."""
        for one in self.state.in_state("blocked"):
            self.emit(one, "released")

    def gate_all(self) -> None:
        """Block everything that has not started."""
        for one in self.state.work_in("pending", "ready"):
            self.emit(one, "gated")

    def admit(self) -> None:
        """The plan is valid as a whole: what can have an effect may start."""
        self.whole = True
        waiting, self.unadmitted = self.unadmitted, []
        for one in waiting:
            if self.state.nodes[one].state == "ready":
                self.queue.add(one)

    def hold(self) -> None:
        """A thought begins for whose verdict everything waits."""
        self.holds += 1

    def let_go(self) -> None:
        """It has come."""
        self.holds -= 1
        if not self.holds:
            self.release()

    def conclude(self, reason: str, answer: str | None) -> None:
        """Start nothing more; what runs finishes."""
        self.concluded = True
        self.answer = answer if answer is not None else self.answer
        for one in self.state.work_in(*NOT_STARTED, "failed_retryable"):
            if self.state.nodes[one].state not in TERMINAL:
                self.emit(one, "concluded", detail=reason)

    def warn(self, *texts: str) -> None:
        """For a person; nothing that a model sees."""
        self.warnings.extend(texts)
        self.out.extend(map(PlanNotice, texts))

    def thought(self, node: str, answer: JSON) -> None:
        """A node that stands for a thought has its answer."""
        if self.state.nodes[node].state == "running":
            self.succeed(node, answer, ("model",), "parsed")

    def add(self, reason: str, nodes: Sequence[PlanNode]) -> None:
        """Go over to the version that adds `nodes`, since somebody decided so; the first one if there is none yet."""
        if self.state.versions:
            self.adopt(self.state.plan.revise(reason, add=nodes))
        else:
            self.join(reason, nodes)

    def join(self, reason: str, nodes: Sequence[PlanNode]) -> None:
        """Let `nodes` join the present version: nobody decided anything. The first one begins if there is none yet.

        Raises:
            PlanError: an id is taken.
        """
        taken = [node.id for node in nodes if node.id in self.state.nodes]
        if taken:
            raise PlanError(f"the plan has a step {taken[0]!r} already; choose another id")
        if not self.state.versions:
            self.adopt(PlanVersion(1, None, reason, tuple(nodes)))
            return
        more = PlanExtension(self.state.versions[-1].version, reason, tuple(nodes))
        self.state.extend(more)
        self.trail.append(more)
        self.out.append(more)
        self._begin(nodes)

    # --- what is known ----------------------------------------------------------------------------------

    def info(self, node: PlanNode) -> FunctionInfo | None:
        """What is known of the function that a tool node calls."""
        return self.catalogue.find(node.call) if self.catalogue is not None and node.kind == "tool" else None

    def info_of(self, node: PlanNode, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        """The same of the very call that it makes."""
        if self.catalogue is None or node.kind != "tool":
            return None
        return self.catalogue.of_call(node.call, arguments)

    def impact_of(self, node: PlanNode, arguments: Mapping[str, JSON]) -> float:
        """How much an attempt can do. An agent counts as one that writes, unless the plan says otherwise."""
        info = self.info_of(node, arguments)
        claimed = 1 if node.kind == "agent" and node.impact is None else 0
        return max(claimed, effective_impact(node, info, self.catalogue))

    def infos(self) -> Sequence[FunctionInfo]:
        """The functions that steps may call."""
        return self.catalogue.all() if self.catalogue is not None else ()

    @property
    def affordable(self) -> bool:
        """Whether one more model call is possible, within the plan's bounds and its mode's."""
        bound = self.limits.model_calls
        if self.mode.max_calls is not None:
            bound = min(bound, self.mode.max_calls)
        return self.asks and self.calls < bound and not self.bound

    def addressed(self, question: PlanQuestion) -> PlanQuestion:
        """A question as it is put: to whom, and which form its answer is to have. Nobody else decides about either."""
        role = self.limits.roles.get(question.kind) or ROLES[question.kind]
        return replace(question, role=role, shape=question.shape or SHAPES.get(question.kind))

    def try_again(
        self, node: PlanNode, failure: StepFailure, arguments: Mapping[str, JSON], *, copied: bool = False
    ) -> Retry | Exhausted:
        """Rung 1, for an attempt with these arguments. `copied`: it was made in a copy, so nothing came of it."""
        info = self.info_of(node, arguments)
        impact = 0 if copied else self.impact_of(node, arguments)
        idempotent = bool(node.idempotent or (info is not None and info.idempotent))
        return self.ladder.attempt_retry(node.id, failure, impact=impact, idempotent=idempotent)

    def outputs(self) -> dict[str, JSON]:
        """The outputs of finished work, by id, in the order of the plan."""
        nodes = self.state.nodes
        return {
            one: nodes[one].output
            for one, node in self.state.plan.nodes.items()
            if node.kind in WORK and nodes[one].state == "executed"
        }

    # --- times ----------------------------------------------------------------------------------------------

    @property
    def due(self) -> float | None:
        """When the next timer is due; None if there is none."""
        return self._timers[0][0] if self._timers else None

    def timer(self, due: float, kind: Timer, node: str = "") -> None:
        """Wait for a time. It can't be taken back, so whoever is woken looks whether it still matters."""
        self._counted += 1
        heapq.heappush(self._timers, (due, self._counted, kind, node))

    def take_due(self) -> tuple[Timer, str] | None:
        """The next timer whose time has come."""
        if not self._timers or self._timers[0][0] > self.at:
            return None
        _, _, kind, node = heapq.heappop(self._timers)
        return kind, node
