"""`orchestrator`: each result gets its own light observer (KAIJU, section 5).

Observers continue, inject, cancel, or ask for a reflection. Results of the same moment have one observer together. With
n ended nodes and depth d there are at most n + d observers, reflections and replans, and one plan: n + d + 1 calls (KAIJU,
table 3). What observers leave of their share is for the reflections that they ask for. Patches, corrections and judged
contracts belong to the ladder and the contracts, and are additional.
"""

from __future__ import annotations

from collections.abc import Sequence

from iact.core.plan.answers import ReflectionAnswer
from iact.core.plan.model import WORK
from iact.core.plan.modes.base import DueThought, Mode, fresh_work, open_work, work_levels
from iact.core.plan.state import PlanState


class Orchestrator(Mode):
    """An observer for the results of a moment; one reflection is always kept for the end."""

    name = "orchestrator"
    judges = True
    reports = True
    replans = False

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._used = 0
        """Questions that were asked so far, of those that are bounded."""
        self._most = 1
        """The bound on them, as it was measured last."""
        self._owed = False
        """Whether an observer asked for a reflection that the bound did not allow yet."""

    def after(self, state: PlanState, node: str) -> DueThought | None:
        # Where nothing is left to run, the reflection at the end sees the result and can add as much.
        can_add = _goes_on(state) or not self.follows_1_3
        return DueThought("observe", (node,)) if can_add else None

    def together(self, state: PlanState, nodes: Sequence[str]) -> DueThought | None:
        if not _goes_on(state):
            return None

        # Every result adds one to the bound, so what was owed can be asked for now: it sees more than an observer.
        self._most = self._measured(state)
        if self._owed and self._used + 2 <= self._most:
            return self._ask(state, final=False)

        self._used += 1
        return DueThought("observe", tuple(nodes))

    def wants_reflection(self, state: PlanState, node: str) -> DueThought | None:
        self._most = self._measured(state)
        if self._used + 2 > self._most:
            self._owed = True
            return None
        return self._ask(state, final=False)

    def at_rest(self, state: PlanState) -> DueThought | None:
        self._most = self._measured(state)
        if not fresh_work(state, self._seen) or self._used + 1 > self._most:
            return None
        return self._ask(state, final=not open_work(state))

    def decided(self, ask: DueThought, verdict: ReflectionAnswer) -> ReflectionAnswer:
        if verdict.decision != "replan":
            return verdict

        if self._used + 2 > self._most:
            return ReflectionAnswer(
                "conclude" if ask.final else "continue", verdict.reason, answer=verdict.answer
            )
        self._used += 1
        return verdict

    def _ask(self, state: PlanState, *, final: bool) -> DueThought:
        self._used += 1
        self._owed = False
        self._seen.update(fresh_work(state, self._seen))
        return DueThought("reflect", _ended(state), final=final, reason="the evidence so far")

    def _measured(self, state: PlanState) -> int:
        """How many observers, reflections and replans there may be, given what has ended."""
        ended = _ended(state)
        levels = work_levels(state)
        depth = 1 + max((levels[one] for one in ended), default=0)
        # Before format 1.3, observers were not counted, and each result had one.
        return len(ended) + depth if self.follows_1_3 else depth


def _goes_on(state: PlanState) -> bool:
    """Whether anything is left to run, or will be when a failed step has been repaired."""
    return bool(open_work(state) or state.under_repair)


def _ended(state: PlanState) -> tuple[str, ...]:
    """Tool and agent nodes that have ended, in order of id."""
    return tuple(one for one in state.in_state("executed", "failed") if state.nodes[one].node.kind in WORK)
