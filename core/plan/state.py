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
    """A change of a node's state, under plan version `version`.

    `at`: seconds since the plan's start. `attempt`: how often it has been dispatched. `detail`: the error or the
    reason. `output`, `labels` (the sources of its data) and `validation` (the kind of rule that passed it) are only set
    when it executed.
    """

    node: str
    version: int
    cause: Cause
    source: State
    target: State
    at: float = 0.0
    attempt: int = 0
    detail: str = ""
    output: JSON = None
    labels: tuple[str, ...] = ()
    validation: str = ""

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
    """The state of one node. `started`, `ended`: seconds since the plan's start.

    `version`: the plan version that governed its last change. `rung`: how far recovery of it has gone.
    """

    node: PlanNode
    state: State = "pending"
    version: int = 1
    attempts: int = 0
    retries: int = 0
    started: float | None = None
    ended: float | None = None
    output: JSON = None
    labels: tuple[str, ...] = ()
    error: str = ""
    validation: str = ""
    cause: Cause | None = None
    """The cause of the last change."""
    rung: Rung = "pristine"
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
        for one in change.drop:
            if self.nodes[one].state not in ("cancelled", "skipped"):
                raise PlanError(f"version {change.version} drops {one!r}, which is {self.nodes[one].state}")
        for node in change.rewire:
            if self.nodes[node.id].state in STARTED:
                raise PlanError(f"version {change.version} rewires {node.id!r}, which has started")
        for node in change.add:
            if node.id in self.nodes:
                raise PlanError(f"version {change.version} adds {node.id!r}, an id that was used before")
        self.versions.append(change)
        self.plan = self.plan.adopt(change)
        for node in change.rewire:
            for one in self.nodes[node.id].node.dependencies:
                self.nodes[one].serves.remove(node.id)
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
        record.ended = change.at
        self.open -= 1
        if change.target != "executed":
            return
        node = record.node.id
        record.output, record.labels, record.validation = change.output, change.labels, change.validation
        record.error = ""
        self.outputs[node] = change.output
        for one in record.serves:
            follower = self.nodes[one]
            if follower.node.join == "any_of" and node in follower.node.after:
                if follower.winner is None:
                    follower.winner = node
            else:
                follower.missing -= 1

    def _count(self, record: NodeRecord) -> None:
        node = record.node
        record.missing = 0
        record.winner = None
        for one in node.required:
            insort(self.nodes[one].serves, node.id)
            record.missing += self.nodes[one].state != "executed"
        for one in node.candidates:
            insort(self.nodes[one].serves, node.id)
            if record.winner is None and self.nodes[one].state == "executed":
                record.winner = one

    # --- questions --------------------------------------------------------------------------------

    def join(self, node: str) -> JoinState:
        """Whether the node may run, must wait, or never will run."""
        record = self.nodes[node]
        raced = record.node.join == "any_of"
        if record.missing == 0 and (not raced or record.winner is not None):
            return "holds"
        if record.missing and any(self._lost(one) for one in record.node.required):
            return "lost"
        if raced and record.winner is None and all(self._lost(one) for one in record.node.candidates):
            return "lost"
        return "open"

    def _lost(self, node: str) -> bool:
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
        for one in record.serves:
            follower = self.nodes[one]
            if follower.state in ("cancelled", "skipped"):
                continue
            if follower.node.join != "any_of" or node not in follower.node.after:
                return False
            if follower.winner in (None, node):
                return False
        return any(self.nodes[one].winner not in (None, node) for one in record.serves)

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
        for one in tuple(self.nodes[change.node].serves):
            follower = self.nodes[one]
            if follower.missing == 0 and follower.state == "pending" and self.join(one) == "holds":
                yield one, "joined"
            if follower.winner == change.node:
                losers.update(c for c in follower.node.candidates if c != change.node)
        changed = bool(losers)
        while changed:
            changed = False
            for one in sorted(losers):
                if self.nodes[one].state not in TERMINAL and self.superfluous(one):
                    changed = True
                    yield one, "lost_race"

    def entries(self) -> Iterator[str]:
        """Yield the pending nodes that may become ready now, in order of id."""
        for one in sorted(self.plan.nodes):
            if self.nodes[one].state == "pending" and self.join(one) == "holds":
                yield one

    def in_state(self, *states: State) -> list[str]:
        """Ids of the nodes of the current version in one of `states`, in order of id."""
        return [one for one in sorted(self.plan.nodes) if self.nodes[one].state in states]

    def work_in(self, *states: State) -> list[str]:
        """The same, without the nodes that represent thoughts."""
        return [one for one in self.in_state(*states) if self.nodes[one].node.kind in WORK]

    @property
    def under_repair(self) -> frozenset[str]:
        """Failed steps for which a replacement is being thought of."""
        repairs = self.in_state("running") if self.versions else ()
        return frozenset(
            self.nodes[one].node.spawned_by for one in repairs if self.nodes[one].node.kind == "micro_planner"
        )

    def waits_for(self, node: str) -> list[str]:
        """Why a node is not ready, one phrase per predecessor: "cves is failed"."""
        record = self.nodes[node]
        return [
            f"{one} is {self.nodes[one].state}"
            for one in record.node.dependencies
            if self.nodes[one].state != "executed"
        ]

    def labels_of(self, node: str) -> tuple[str, ...]:
        """The sources of the data in a node's arguments: the labels of all that its refs touch."""
        names = self.nodes[node].node.refs
        return tuple(sorted({label for name in names for label in self.labels_of_ref(node, name)}))

    def labels_of_ref(self, node: str, name: str) -> tuple[str, ...]:
        """The sources of the data of one of a node's refs."""
        record = self.nodes[node]
        ref = record.node.refs[name]
        step = record.winner if ref.step == WINNER else ref.step
        return self.nodes[step].labels if step is not None else ()

    def picks(self, node: str, name: str) -> bool:
        """Whether a ref takes one element out of several: the ref's author made that choice."""
        record = self.nodes[node]
        ref = record.node.refs[name]
        step = record.winner if ref.step == WINNER else ref.step
        return step is not None and step in self.outputs and picks(self.outputs[step], ref.field)
