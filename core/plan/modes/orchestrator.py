"""`orchestrator`: each result gets its own light observer (KAIJU, section 5).

Observers continue, inject, cancel, or ask for a reflection. With n ended nodes and depth d there are at most n
observers, d reflections and replans together, and one plan: n + d + 1 calls (KAIJU, table 3). Patches, corrections and
judged contracts belong to the ladder and the contracts, and are additional.
"""

from __future__ import annotations

from iact.core.plan.answers import ReflectionAnswer
from iact.core.plan.model import WORK
from iact.core.plan.modes.base import DueThought, Mode, fresh_work, open_work, work_levels
from iact.core.plan.state import PlanState


class Orchestrator(Mode):
    """An observer per result; one reflection is always kept for the end."""

    name = "orchestrator"
    judges = True
    reports = True
    replans = False

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._used = 0
        self._depth = 1

    def after(self, state: PlanState, node: str) -> DueThought | None:
        # Where nothing is left to run, the reflection at the end sees the result and can add as much.
        can_add = bool(open_work(state)) or not self.follows_1_3
        return DueThought("observe", (node,)) if can_add else None

    def wants_reflection(self, state: PlanState, node: str) -> DueThought | None:
        self._depth = self._measured(state)
        if self._used + 2 > self._depth:
            return None
        return self._ask(state, final=False)

    def at_rest(self, state: PlanState) -> DueThought | None:
        self._depth = self._measured(state)
        if not fresh_work(state, self._seen) or self._used + 1 > self._depth:
            return None
        return self._ask(state, final=not open_work(state))

    def decided(self, ask: DueThought, verdict: ReflectionAnswer) -> ReflectionAnswer:
        if verdict.decision != "replan":
            return verdict
        if self._used + 2 > self._depth:
            return ReflectionAnswer(
                "conclude" if ask.final else "continue", verdict.reason, answer=verdict.answer
            )
        self._used += 1
        return verdict

    def _ask(self, state: PlanState, *, final: bool) -> DueThought:
        self._used += 1
        self._seen.update(fresh_work(state, self._seen))
        ended = tuple(
            one for one in state.in_state("executed", "failed") if state.nodes[one].node.kind in WORK
        )
        return DueThought("reflect", ended, final=final, reason="the evidence so far")

    def _measured(self, state: PlanState) -> int:
        ended = {"executed", "failed"}
        levels = work_levels(state)
        return 1 + max((level for one, level in levels.items() if state.nodes[one].state in ended), default=0)
