"""The states of a node, and every arrow between them, in one table.

Theory. A node is a small machine; a plan is many of them, coupled only through joins. Two facts make the whole
terminate and be attributable (Graph Harness, propositions 6.1 and 6.2):

- *Absorption.* No arrow leaves `executed`, `failed`, `cancelled` or `skipped`. A successor may rely forever on
  what it has seen of its predecessors; a replacement for a failed node is another node.
- *Progress.* Every cycle of the table passes through `failed_retryable → ready`, guarded by the node's
  retry budget, or through `blocked → pending` (and `waiting_human → running`), each of which needs an
  event from outside that is itself bounded (a verdict, a person's time limit). Without such an event, a
  node makes at most 3 + 3 × retries steps.

An arrow is (state, cause) → state. A cause is the reason for the change, and the journal shows it. A guard is what must
hold for the plan at that moment. It is checked where the change is applied, in a running plan and in a replay alike. A
change that is not in the table, or whose guard does not hold, is a programming error and raises `IllegalTransition`;
nothing that a model writes can lead there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, get_args

State = Literal[
    "pending", "ready", "running", "waiting_human", "blocked",
    "executed", "failed_retryable", "failed", "cancelled", "skipped",
]  # fmt: skip
Cause = Literal[
    "joined", "dispatched", "gated", "released", "ref_missing", "needs_human", "approved", "denied", "expired",
    "succeeded", "transient", "broke", "interrupted", "retried", "exhausted",
    "lost_race", "join_failed", "dependency_failed", "concluded", "dropped", "cancelled",
]  # fmt: skip

STATES: Final[tuple[State, ...]] = get_args(State)
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
TERMINAL: Final[frozenset[State]] = frozenset({"executed", "failed", "cancelled", "skipped"})
STARTED: Final[frozenset[State]] = TERMINAL | {"running", "waiting_human", "failed_retryable"}
"""States of nodes that no version may rewire."""

JoinState = Literal["open", "holds", "lost"]
"""The state of a node's join: undecided, may run, can never run."""


class IllegalTransition(Exception):
    """A change of a node's state that is not in the table: our bug."""


class Situation(Protocol):
    """The facts that guards check."""

    def join(self, node: str) -> JoinState: ...
    def retries_left(self, node: str) -> int: ...
    def superfluous(self, node: str) -> bool:
        """Whether everything that this node served has what it needs without it."""
        ...

    def any_of(self, node: str) -> bool: ...
    def contract_passed(self, node: str, validation: str) -> bool: ...


Guard = Callable[[Situation, str, str], bool]
"""Takes the situation, the node, and the validation that passed its output."""


def _always(at: Situation, node: str, validation: str) -> bool:
    return True


def _join_holds(at: Situation, node: str, validation: str) -> bool:
    return at.join(node) == "holds"


def _race_lost_by_all(at: Situation, node: str, validation: str) -> bool:
    return at.any_of(node) and at.join(node) == "lost"


def _dependency_lost(at: Situation, node: str, validation: str) -> bool:
    return at.join(node) == "lost"


def _contract_holds(at: Situation, node: str, validation: str) -> bool:
    return at.contract_passed(node, validation)


def _may_retry(at: Situation, node: str, validation: str) -> bool:
    return at.retries_left(node) > 0 and at.join(node) == "holds"


def _superfluous(at: Situation, node: str, validation: str) -> bool:
    return at.superfluous(node)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One arrow. `says`: its guard in words, for the docs."""

    source: State
    cause: Cause
    target: State
    guard: Guard = _always
    says: str = ""


_OPEN: Final[tuple[State, ...]] = tuple(one for one in STATES if one not in TERMINAL)

ARROWS: Final[tuple[Arrow, ...]] = (
    Arrow("pending", "joined", "ready", _join_holds, "its join holds"),
    Arrow("pending", "join_failed", "failed", _race_lost_by_all, "no candidate of its any_of join can succeed"),
    Arrow("pending", "dependency_failed", "skipped", _dependency_lost, "something it needs can't succeed"),
    Arrow("blocked", "dependency_failed", "skipped", _dependency_lost, "something it needs can't succeed"),
    Arrow("pending", "gated", "blocked"),
    Arrow("ready", "gated", "blocked"),
    Arrow("blocked", "released", "pending"),
    Arrow("ready", "dispatched", "running", _join_holds, "its join holds"),
    Arrow("ready", "ref_missing", "failed"),
    Arrow("running", "needs_human", "waiting_human"),
    Arrow("waiting_human", "approved", "running"),
    Arrow("waiting_human", "denied", "running"),
    Arrow("waiting_human", "expired", "failed"),
    Arrow("running", "succeeded", "executed", _contract_holds, "its contract holds"),
    Arrow("running", "transient", "failed_retryable"),
    Arrow("running", "interrupted", "failed_retryable"),
    Arrow("waiting_human", "interrupted", "failed_retryable"),
    Arrow("running", "broke", "failed"),
    Arrow("failed_retryable", "retried", "ready", _may_retry, "retries are left and its join still holds"),
    Arrow("failed_retryable", "exhausted", "failed"),
    *(Arrow(state, "lost_race", "skipped", _superfluous, "its join was won by a sibling") for state in _OPEN),
    *(
        Arrow(state, "concluded", "skipped")
        for state in ("pending", "ready", "blocked", "failed_retryable")
    ),
    Arrow("waiting_human", "concluded", "skipped"),
    *(Arrow(state, "dropped", "cancelled") for state in _OPEN),
    *(Arrow(state, "cancelled", "cancelled") for state in _OPEN),
)  # fmt: skip

TABLE: Final[Mapping[tuple[State, Cause], Arrow]] = {(one.source, one.cause): one for one in ARROWS}


def step(source: State, cause: Cause, at: Situation, node: str, validation: str = "") -> State:
    """Return the state that `cause` leads to from `source`.

    Raises:
        IllegalTransition: there is no such arrow, or its guard does not hold.
    """
    arrow = TABLE.get((source, cause))
    if arrow is None:
        raise IllegalTransition(f"node {node!r} is {source}; {cause!r} leads nowhere from there")
    if not arrow.guard(at, node, validation):
        raise IllegalTransition(f"node {node!r} is {source}; {cause!r} needs that {arrow.says}")
    return arrow.target


def diagram() -> str:
    """The table as a Mermaid state diagram, for the docs."""
    lines = ["stateDiagram-v2", "    [*] --> pending"]
    for arrow in ARROWS:
        guard = f" [{arrow.says}]" if arrow.says else ""
        lines.append(f"    {arrow.source} --> {arrow.target}: {arrow.cause}{guard}")
    lines += [f"    {state} --> [*]" for state in STATES if state in TERMINAL]
    return "\n".join(lines) + "\n"
