"""The recovery ladder: retry, patch, replan, in this order; no rung can be skipped.

The three methods are the only entries. Each raises `RecoveryRefused` if its precondition does not hold (Graph Harness,
proposition 6.4). How far a node has climbed is part of the plan's folded state: it is `retried` once it has failed for
good, which only happens after `attempt_retry` has refused, and `patched` once a micro-planner was asked, or can't be
asked for lack of budget.
"""

from __future__ import annotations

from dataclasses import dataclass

from iact.core.plan.model import WORK
from iact.core.plan.protocol import StepFailure
from iact.core.plan.state import PlanState


class RecoveryRefused(Exception):
    """A rung was tried out of order; `str()` says which and why."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Fire the node again after `delay` seconds."""

    delay: float


@dataclass(frozen=True, slots=True)
class Exhausted:
    """This rung is exhausted; `why` is a phrase for the trail."""

    why: str


@dataclass(frozen=True, slots=True)
class Permitted:
    """The rung may be climbed: ask the micro-planner, or the planner."""


@dataclass(slots=True)
class LadderBudget:
    """The remaining budget of the upper rungs."""

    patches: int
    replans: int


class RecoveryLadder:
    """Recovery of one plan. `backoff`: seconds before the first retry, doubled for each further one, at most 30."""

    def __init__(self, state: PlanState, budget: LadderBudget, *, backoff: float = 0.5) -> None:
        self._state = state
        self._budget = budget
        self._backoff = backoff
        self._given_up: set[str] = set()

    def attempt_retry(
        self, node: str, failure: StepFailure, *, impact: float, idempotent: bool
    ) -> Retry | Exhausted:
        """Rung 1, for a node that has just failed. `impact`: of the call that it made.

        A call that only reads may always be repeated, and is repeated automatically where that may help. Retries that
        the plan itself grants a node are for any failure, including a broken contract: the plan's author knew what is
        repeated. Even so, a call with effects is not repeated if it can't be undone, or if it is unknown whether it was
        made; and a call that a person may have denied is not asked about again.

        Raises:
            RecoveryRefused: the node has not failed, or has been retried for good.
        """
        record = self._state.nodes[node]
        if record.state not in ("running", "waiting_human", "failed_retryable") or record.rung != "pristine":
            raise RecoveryRefused(
                f"{node!r} is {record.state} and {record.rung}; only a fresh failure is retried"
            )
        if failure.kind == "incomplete" or (record.node.retries is None and not failure.transient):
            return Exhausted(f"{failure.kind} is not transient")
        unknown = failure.kind == "interrupted"
        if impact > 0 and not idempotent and (record.node.retries is None or impact >= 2 or unknown):
            return Exhausted("it has effects and is not idempotent")
        if self._state.retries_left(node) <= 0:
            return Exhausted("no retries are left")
        return Retry(min(30.0, self._backoff * 2**record.retries))

    def attempt_patch(self, node: str) -> Permitted | Exhausted:
        """Rung 2, for a node that failed for good.

        Raises:
            RecoveryRefused: it has not been through rung 1, or has been through rung 2 already.
        """
        record = self._state.nodes[node]
        if record.state != "failed" or record.rung != "retried" or node in self._given_up:
            raise RecoveryRefused(
                f"{node!r} is {record.state} and {record.rung}; a patch follows an exhausted retry"
            )
        if self._budget.patches <= 0:
            self._given_up.add(node)
            return Exhausted("no patches are left")
        self._budget.patches -= 1
        return Permitted()

    def give_up(self, node: str) -> None:
        """Note that no micro-planner can be asked about a node that was permitted a patch."""
        self._given_up.add(node)

    def request_replan(self, *, charge: bool = True) -> Permitted | Exhausted:
        """Rung 3, for the plan. `charge`: whether it uses budget; a replan that a person asked for does not.

        Raises:
            RecoveryRefused: a failed node has not been through rungs 1 and 2.
        """
        for one in self._state.in_state("failed_retryable", "failed"):
            record = self._state.nodes[one]
            if record.node.kind in WORK and record.rung != "patched" and one not in self._given_up:
                raise RecoveryRefused(
                    f"{one!r} is {record.rung}; every failed node is retried and patched first"
                )
        if not charge:
            return Permitted()
        if self._budget.replans <= 0:
            return Exhausted("no replans are left")
        self._budget.replans -= 1
        return Permitted()
