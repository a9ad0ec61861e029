"""The data model of a plan: an immutable version of a graph of steps.

A version never changes. Each structural change makes the next version with `PlanGraph.revise`, which names its parent
and its reason, and refuses changes that a running plan must not suffer: dropping a node that is finished, or rewiring
one that has started. (KAIJU grafts onto a live graph and the Graph Harness forbids any change; versions that record
what governed which action allow both.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

from iact.core.errors import UsageError
from iact.core.ports import JSON

NodeKind = Literal[
    "tool", "agent", "person", "reflection", "observer", "micro_planner", "interjection", "aggregator"
]
WORK: Final[frozenset[NodeKind]] = frozenset({"tool", "agent", "person"})
"""Kinds that a planner may write; the others are the engine's thoughts about the plan."""

Join = Literal["all_of", "any_of"]

WINNER: Final = "*"
"""Stands for the step of a ref: whichever candidate won this node's `any_of` join."""

MAX_NODES: Final = 256
"""The most steps that a plan may have, over all of its versions."""

_EMPTY: Final[Mapping[str, JSON]] = MappingProxyType({})


class PlanError(UsageError):
    """A plan that can't run; the sentence names the place. `fatal`: no part of it can be kept."""


def size_fault(steps: int, most: int = MAX_NODES) -> str:
    """Say that a plan has too many steps."""
    return f"The plan has {steps} steps, at most {most} are allowed; merge some."


@dataclass(frozen=True, slots=True)
class Ref:
    """Data from another node: the value at path `field` of the output of `step`.

    `field`: keys and list indices joined by dots, "" for the whole output. `template`: a text whose `{}`
    is replaced by the value.
    """

    step: str
    field: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Contract:
    """What must hold for an output before its node counts as executed. Every rule that is set must hold.

    `schema`: JSON Schema. `pattern`: must be found in the output as text. `exit_status`: the tool's own. `judgement`: a
    question to a model that must be answered with yes. `by`: "person" if the person must accept the output; then the
    question is theirs, too.
    """

    schema: Mapping[str, JSON] | None = None
    pattern: str | None = None
    non_empty: bool = False
    exit_status: int | None = None
    judgement: str | None = None
    by: Literal["", "person"] = ""

    @property
    def empty(self) -> bool:
        """Whether it has no rules at all."""
        return (
            self.schema is None
            and self.pattern is None
            and not self.non_empty
            and self.exit_status is None
            and self.judgement is None
            and not self.by
        )


NO_ERROR: Final = Contract(exit_status=0)
"""The contract of a node that states none: the runner reported no error, and no exit status other than 0."""


@dataclass(frozen=True, slots=True)
class PlanNode:
    """One step. `after`: ids of the nodes that must come before; with `any_of`, the candidates of the join.

    `call`: a function, or the name of a child agent; empty for a step that the person does. `impact`: what the plan claims; the gate decides by its own
    rating. `retries`: automatic retries after a transient failure. `timeout`: seconds. `writes`: names of resources
    that no two nodes may write at the same time. `endpoint`: whose rate limit applies. `spawned_by`: the node that this
    one replaces or follows up.
    """

    id: str
    kind: NodeKind = "tool"
    call: str = ""
    task: str = ""
    params: Mapping[str, JSON] = field(default_factory=lambda: _EMPTY)
    refs: Mapping[str, Ref] = field(default_factory=lambda: MappingProxyType({}))
    after: tuple[str, ...] = ()
    join: Join = "all_of"
    impact: int | None = None
    idempotent: bool | None = None
    timeout: float | None = None
    retries: int | None = None
    contract: Contract = NO_ERROR
    model: str = ""
    role: str = ""
    writes: tuple[str, ...] = ()
    endpoint: str = ""
    spawned_by: str = ""
    intent: float | None = None
    """The most impact that an agent step may have; None: the plan's."""
    scope: tuple[str, ...] = ()
    """Patterns of the functions that an agent step may call, among those of the plan; empty: all of them."""
    tools: tuple[str, ...] = ()
    """Functions that an agent step should use, which it is told how to call."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """The nodes of which one must succeed; empty for `all_of`."""
        return self.after if self.join == "any_of" else ()

    @property
    def required(self) -> tuple[str, ...]:
        """The nodes that must all succeed, including refs, each once, in the order of the plan."""
        named = () if self.join == "any_of" else self.after
        if not self.refs:
            return named
        wanted = dict.fromkeys((*named, *(ref.step for ref in self.refs.values() if ref.step != WINNER)))
        return tuple(one for one in wanted if one not in self.candidates)

    @property
    def dependencies(self) -> tuple[str, ...]:
        """All nodes that this node depends on."""
        return self.after if not self.refs else (*self.required, *self.candidates)


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """One version of a plan. `nodes` by id, in the order in which they were written."""

    id: str
    nodes: Mapping[str, PlanNode]
    goal: str = ""
    version: int = 1
    parent_version: int | None = None
    reason: str = "planned"
    contract: Contract = NO_ERROR
    constraints: tuple[str, ...] = ()
    """What its author demands of the models and agents that write or carry out its steps, in words."""

    def revise(
        self,
        reason: str,
        *,
        add: Iterable[PlanNode] = (),
        drop: Collection[str] = (),
        rewire: Mapping[str, PlanNode] | None = None,
        started: Collection[str] = (),
        finished: Collection[str] = (),
    ) -> PlanVersion:
        """Return the change that leads to the next version. `started` includes what is finished.

        Raises:
            PlanError: it drops what is finished, or rewires what has started.
        """
        added, rewired = tuple(add), dict(rewire or {})
        for one in drop:
            if one not in self.nodes:
                raise PlanError(f"the new version drops {one!r}, which the plan does not have")
            if one in finished:
                raise PlanError(f"the new version drops {one!r}, which is finished; its result stays")
        for one, node in rewired.items():
            if one not in self.nodes or node.id != one:
                raise PlanError(f"the new version rewires {one!r}, which the plan does not have")
            if one in started:
                raise PlanError(
                    f"the new version rewires {one!r}, which has started; add another node instead"
                )
        taken = [node.id for node in added if node.id in self.nodes and node.id not in drop]
        if taken:
            raise PlanError(f"the new version adds {taken[0]!r}, an id that is taken; choose another")
        return PlanVersion(
            self.version + 1, self.version, reason, added, tuple(sorted(drop)), tuple(rewired.values())
        )

    def about(self, goal: str) -> PlanGraph:
        """Return the same steps for another goal; an empty goal keeps its own."""
        return replace(self, goal=goal or self.goal)

    def extend(self, nodes: Iterable[PlanNode]) -> PlanGraph:
        """Return the same version with more nodes."""
        return replace(self, nodes={**self.nodes, **{node.id: node for node in nodes}})

    def adopt(self, change: PlanVersion) -> PlanGraph:
        """Return the plan after `change`."""
        nodes = {one: node for one, node in self.nodes.items() if one not in change.drop}
        nodes.update((node.id, node) for node in (*change.rewire, *change.add))
        return replace(
            self, nodes=nodes, version=change.version, parent_version=change.parent, reason=change.reason
        )


@dataclass(frozen=True, slots=True)
class PlanVersion:
    """The difference between a version and its parent. Version 1 has no parent and only adds."""

    version: int
    parent: int | None
    reason: str
    add: tuple[PlanNode, ...] = ()
    drop: tuple[str, ...] = ()
    rewire: tuple[PlanNode, ...] = ()

    @staticmethod
    def first(plan: PlanGraph) -> PlanVersion:
        """Return the version that begins a plan."""
        return PlanVersion(plan.version, plan.parent_version, plan.reason, tuple(plan.nodes.values()))


@dataclass(frozen=True, slots=True)
class PlanExtension:
    """Nodes that join the current version without a new decision: more of a plan still being written, or a thought."""

    version: int
    reason: str
    add: tuple[PlanNode, ...]


def make_plan(
    id: str,
    nodes: Iterable[PlanNode],
    *,
    goal: str = "",
    contract: Contract = NO_ERROR,
    constraints: Iterable[str] = (),
) -> PlanGraph:
    """Return version 1 of a plan.

    Raises:
        PlanError: two nodes have the same id.
    """
    kept: dict[str, PlanNode] = {}
    for node in nodes:
        if node.id in kept:
            raise PlanError(f"two steps have the id {node.id!r}; give each its own")
        kept[node.id] = node
    return PlanGraph(id, MappingProxyType(kept), goal, contract=contract, constraints=tuple(constraints))
