"""The state of a plan: a fold over its events, and the only place that changes it.

`PlanState.apply` takes a `NodeChange`, `adopt` a `PlanVersion`, `extend` a `PlanExtension`. They come from the machine
while a plan runs and from the journal when it is replayed, and lead to the same state. Readiness is counted, not
searched: a node knows how many of its required predecessors are missing, and a completion only touches its out-edges.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from iact.core.plan.model import (
    WINNER,
    WORK,
    PlanError,
    PlanExtension,
    PlanGraph,
    PlanNode,
    PlanVersion,
    make_plan,
)
from iact.core.plan.refs import picks
from iact.core.plan.states import STARTED, TERMINAL, Cause, IllegalTransition, JoinState, State, step
from iact.core.ports import JSON

Rung = Literal["pristine", "retried", "patched"]
"""How far up the recovery ladder a failed node has been (Graph Harness, section 6.2)."""

DEFAULT_RETRIES: Final = 2
SPENT: Final[frozenset[Cause]] = frozenset({"transient", "interrupted"})


class NodeChange(NamedTuple):
    """A change of a node's state."""

    node: str
    version: int
    """The plan version under which it happened."""
    cause: Cause
    source: State
    target: State
    at: float = 0.0
    """Seconds since the plan's start."""
    attempt: int = 0
    """How often the node has been dispatched."""
    detail: str = ""
    """The error or the reason."""
    output: JSON = None
    """What its work returned; this field and those below are only set when it executed."""
    labels: tuple[str, ...] = ()
    """The sources of the output's data."""
    validation: str = ""
    """The kind of rule that passed the output."""

    def to_json(self) -> dict[str, JSON]:
        """The change in its journal form."""
        data: dict[str, JSON] = {
            "node": self.node,
            "version": self.version,
            "cause": self.cause,
            "from": self.source,
            "to": self.target,
            "at": round(self.at, 6),
            "attempt": self.attempt,
        }
        if self.detail:
            data["detail"] = self.detail
        if self.cause == "succeeded":
            data |= {"output": self.output, "labels": list(self.labels), "validation": self.validation}
        return data

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> NodeChange:
        """Read a change from a journal.

        Raises:
            PlanError: it holds no change.
        """
        try:
            cause = data["cause"]
            if cause not in get_args(Cause):
                raise ValueError(cause)
            return NodeChange(
                str(data["node"]), int(data["version"]), cast(Cause, cause), data["from"], data["to"],
                float(data["at"]), int(data["attempt"]), str(data.get("detail", "")), data.get("output"),
                tuple(data.get("labels", ())), str(data.get("validation", "")),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise PlanError(f"the journal holds a node change that can't be read ({error!r})") from error


PlanEvent = NodeChange | PlanVersion | PlanExtension
"""The events that a plan's state follows from, in order."""


@dataclass(slots=True)
class NodeRecord:
    """The state of one node."""

    node: PlanNode
    state: State = "pending"
    version: int = 1
    """The plan version that governed its last change."""
    attempts: int = 0
    retries: int = 0
    started: float | None = None
    """Seconds since the plan's start."""
    ended: float | None = None
    """Seconds since the plan's start."""
    output: JSON = None
    labels: tuple[str, ...] = ()
    error: str = ""
    validation: str = ""
    cause: Cause | None = None
    """The cause of the last change."""
    rung: Rung = "pristine"
    """How far recovery of it has gone."""
    winner: str | None = None
    """For an `any_of` join: the candidate that succeeded first."""
    missing: int = 0
    """The number of required predecessors that have not executed."""
    serves: list[str] = field(default_factory=list)
    """Ids of the nodes that wait for this one, in order."""
    failures: list[str] = field(default_factory=list)
    """The errors of its attempts, oldest first."""
    arguments: Mapping[str, JSON] | None = None
    """What its last attempt was carried out with; None if there was none, or in a journal of an older format."""


class PlanState:
    """A plan and its nodes, as their events made them."""

    def __init__(self, id: str = "plan", goal: str = "") -> None:
        self.plan: PlanGraph = make_plan(id, (), goal=goal)
        self.versions: list[PlanVersion] = []
        self.nodes: dict[str, NodeRecord] = {}
        """Every node that any version had, including dropped ones."""
        self.outputs: dict[str, JSON] = {}
        """The outputs of the nodes that executed."""
        self.open = 0
        """The number of nodes that are not in a terminal state."""

    # --- events -----------------------------------------------------------------------------------

    def adopt(self, change: PlanVersion) -> None:
        """Switch to the next version. Dropped nodes must already be `cancelled` (cause `dropped`).

        Raises:
            PlanError: the version does not follow the current one, or breaks the law of versions.
        """
        current = self.versions[-1].version if self.versions else None
        if change.parent != current or change.version != (current or 0) + 1:
            raise PlanError(f"version {change.version} of the plan does not follow on version {current}")
        for id in change.drop:
            if self.nodes[id].state not in ("cancelled", "skipped"):
                raise PlanError(f"version {change.version} drops {id!r}, which is {self.nodes[id].state}")
        for node in change.rewire:
            if self.nodes[node.id].state in STARTED:
                raise PlanError(f"version {change.version} rewires {node.id!r}, which has started")
        for node in change.add:
            if node.id in self.nodes:
                raise PlanError(f"version {change.version} adds {node.id!r}, an id that was used before")

        self.versions.append(change)
        self.plan = self.plan.adopt(change)

        for node in change.rewire:
            for dependency in self.nodes[node.id].node.dependencies:
                self.nodes[dependency].serves.remove(node.id)
            self.nodes[node.id].node = node
        self._take_in(change.add, change.version)
        for node in (*change.rewire, *change.add):
            self._count(self.nodes[node.id])

    def extend(self, more: PlanExtension) -> None:
        """Add nodes to the current version.

        Raises:
            PlanError: it is about another version, or an id was used before.
        """
        if not self.versions or more.version != self.versions[-1].version:
            raise PlanError(f"version {more.version} of the plan is not the present one")

        taken = [node.id for node in more.add if node.id in self.nodes]
        if taken:
            raise PlanError(f"version {more.version} is to get {taken[0]!r}, an id that was used before")

        self.versions[-1] = replace(self.versions[-1], add=(*self.versions[-1].add, *more.add))
        self.plan = self.plan.extend(more.add)
        self._take_in(more.add, more.version)
        for node in more.add:
            self._count(self.nodes[node.id])

    def _take_in(self, nodes: Iterable[PlanNode], version: int) -> None:
        """Make records for nodes of a version. Their dependencies are counted when all of them are there."""
        for node in nodes:
            self.nodes[node.id] = NodeRecord(node, version=version)
            self.open += 1
            if node.kind == "micro_planner" and node.spawned_by in self.nodes:
                self.nodes[node.spawned_by].rung = "patched"

    def apply(self, change: NodeChange) -> None:
        """Change one node's state.

        Raises:
            IllegalTransition: the table has no such arrow, or its guard does not hold.
        """
        record = self.nodes[change.node]
        if record.state != change.source:
            raise IllegalTransition(f"node {change.node!r} is {record.state}, not {change.source}")

        target = step(record.state, change.cause, self, change.node, change.validation)
        if target != change.target:
            raise IllegalTransition(
                f"{change.cause!r} leads node {change.node!r} to {target}, not {change.target}"
            )
        self._commit(record, change)

    def happen(self, node: str, cause: Cause, at: float, detail: str = "") -> NodeChange:
        """Make the change that `cause` leads to now, and apply it.

        Raises:
            IllegalTransition: as `apply`.
        """
        record = self.nodes[node]
        source = record.state
        target = step(source, cause, self, node)
        attempt = record.attempts + 1 if cause == "dispatched" else record.attempts
        change = NodeChange(node, self.versions[-1].version, cause, source, target, at, attempt, detail)
        self._commit(record, change)
        return change

    def _commit(self, record: NodeRecord, change: NodeChange) -> None:
        """Write a change into the record of its node. The caller has checked that the table has this arrow."""
        target = change.target
        record.state = target
        record.version = change.version
        record.cause = change.cause

        if change.cause == "dispatched":
            record.attempts += 1
            if record.started is None:
                record.started = change.at
        elif change.cause == "retried":
            record.retries += 1

        if change.detail or change.cause == "lost_race":
            record.error = change.detail
        if change.cause in ("transient", "interrupted", "broke") and change.detail:
            record.failures.append(change.detail)

        if target in TERMINAL:
            if target == "failed":
                record.rung = "patched" if change.cause == "join_failed" else "retried"
            self._end(record, change)

    def _end(self, record: NodeRecord, change: NodeChange) -> None:
        """Note the end of a node, and what it means for those that wait for it."""
        record.ended = change.at
        self.open -= 1
        if change.target != "executed":
            return

        node = record.node.id
        record.output = change.output
        record.labels = change.labels
        record.validation = change.validation
        record.error = ""
        self.outputs[node] = change.output

        for follower_id in record.serves:
            follower = self.nodes[follower_id]
            races = follower.node.join == "any_of" and node in follower.node.after
            if not races:
                follower.missing -= 1
            elif follower.winner is None:
                follower.winner = node

    def _count(self, record: NodeRecord) -> None:
        """Count what a node waits for, and note with its dependencies that it does."""
        node = record.node
        record.missing = 0
        record.winner = None
        for dependency in node.required:
            insort(self.nodes[dependency].serves, node.id)
            if self.nodes[dependency].state != "executed":
                record.missing += 1

        for candidate in node.candidates:
            insort(self.nodes[candidate].serves, node.id)
            if record.winner is None and self.nodes[candidate].state == "executed":
                record.winner = candidate

    # --- questions --------------------------------------------------------------------------------

    def join(self, node: str) -> JoinState:
        """Whether the node may run, must wait, or never will run."""
        record = self.nodes[node]
        raced = record.node.join == "any_of"
        if record.missing == 0 and (not raced or record.winner is not None):
            return "holds"

        if record.missing and any(self._lost(required) for required in record.node.required):
            return "lost"
        if raced and record.winner is None and all(map(self._lost, record.node.candidates)):
            return "lost"
        return "open"

    def _lost(self, node: str) -> bool:
        """Whether a node has ended without a result."""
        return self.nodes[node].state in ("failed", "cancelled", "skipped")

    def any_of(self, node: str) -> bool:
        """Whether its join is a race."""
        return self.nodes[node].node.join == "any_of"

    def retries_left(self, node: str) -> int:
        """The automatic retries left in its budget."""
        record = self.nodes[node]
        budget = DEFAULT_RETRIES if record.node.retries is None else record.node.retries
        return budget - record.retries

    def superfluous(self, node: str) -> bool:
        """Whether each node that it serves is a race that another candidate has won."""
        record = self.nodes[node]
        if not record.serves:
            return False

        for follower_id in record.serves:
            follower = self.nodes[follower_id]
            if follower.state in ("cancelled", "skipped"):
                continue
            if follower.node.join != "any_of" or node not in follower.node.after:
                return False
            if follower.winner in (None, node):
                return False

        # Of a node whose followers were all cancelled, no race was won.
        return any(self.nodes[follower].winner not in (None, node) for follower in record.serves)

    def contract_passed(self, node: str, validation: str) -> bool:
        """Whether any kind of rule passed the output: nothing executes unvalidated."""
        return bool(validation)

    def consequences(self, change: NodeChange) -> Iterator[tuple[str, Cause]]:
        """Yield the immediate consequences of an applied change: nodes that became ready, siblings that lost a race.

        Deterministic: in order of node id, readiness before losses. Apply each before asking for the next, because
        whether a node is superfluous depends on which nodes were skipped already.
        """
        if change.target == "pending":
            if self.join(change.node) == "holds":
                yield change.node, "joined"
            return
        if change.target != "executed":
            return

        losers: set[str] = set()
        for follower_id in tuple(self.nodes[change.node].serves):
            follower = self.nodes[follower_id]
            may_start = follower.missing == 0 and follower.state == "pending"
            if may_start and self.join(follower_id) == "holds":
                yield follower_id, "joined"
            if follower.winner == change.node:
                losers.update(rival for rival in follower.node.candidates if rival != change.node)

        # The end of one loser can make another superfluous, so they are gone through until nothing changes.
        changed = bool(losers)
        while changed:
            changed = False
            for loser in sorted(losers):
                if self.nodes[loser].state not in TERMINAL and self.superfluous(loser):
                    changed = True
                    yield loser, "lost_race"

    def entries(self) -> Iterator[str]:
        """Yield the pending nodes that may become ready now, in order of id."""
        for node in sorted(self.plan.nodes):
            if self.nodes[node].state == "pending" and self.join(node) == "holds":
                yield node

    def in_state(self, *states: State) -> list[str]:
        """Ids of the nodes of the current version in one of `states`, in order of id."""
        return [node for node in sorted(self.plan.nodes) if self.nodes[node].state in states]

    def work_in(self, *states: State) -> list[str]:
        """The same, without the nodes that represent thoughts."""
        return [node for node in self.in_state(*states) if self.nodes[node].node.kind in WORK]

    @property
    def under_repair(self) -> frozenset[str]:
        """Failed steps for which a replacement is being thought of."""
        running = self.in_state("running") if self.versions else ()
        patchers = [
            self.nodes[node].node for node in running if self.nodes[node].node.kind == "micro_planner"
        ]
        return frozenset(patcher.spawned_by for patcher in patchers)

    def waits_for(self, node: str) -> list[str]:
        """Why a node is not ready, one phrase per predecessor: "cves is failed"."""
        record = self.nodes[node]
        return [
            f"{dependency} is {self.nodes[dependency].state}"
            for dependency in record.node.dependencies
            if self.nodes[dependency].state != "executed"
        ]

    def labels_of(self, node: str) -> tuple[str, ...]:
        """The sources of the data in a node's arguments: the labels of all that its refs touch."""
        names = self.nodes[node].node.refs
        return tuple(sorted({label for name in names for label in self.labels_of_ref(node, name)}))

    def labels_of_ref(self, node: str, name: str) -> tuple[str, ...]:
        """The sources of the data of one of a node's refs."""
        source = self._source_of(node, name)
        return self.nodes[source].labels if source is not None else ()

    def picks(self, node: str, name: str) -> bool:
        """Whether a ref takes one element out of several: the ref's author made that choice."""
        source = self._source_of(node, name)
        if source is None or source not in self.outputs:
            return False
        return picks(self.outputs[source], self.nodes[node].node.refs[name].field)

    def _source_of(self, node: str, name: str) -> str | None:
        """The step that a node's ref takes its value from; None for the winner of a race that has none yet."""
        record = self.nodes[node]
        step = record.node.refs[name].step
        return record.winner if step == WINNER else step
