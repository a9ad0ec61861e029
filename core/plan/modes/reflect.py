"""`reflect`: after each dependency wave all evidence is reflected on; the next wave waits for the verdict.

KAIJU, section 5. There are at most as many reflections as waves that ran. A wave is all steps at one depth of the
graph, and steps that a replan adds are deeper than the steps that they depend on.
"""

from __future__ import annotations

from iact.core.plan.answers import ReflectionAnswer
from iact.core.plan.model import WORK
from iact.core.plan.modes.base import DueThought, Mode, fresh_work, open_work, work_levels
from iact.core.plan.state import PlanState


class Reflect(Mode):
    """A barrier after each wave."""

    name = "reflect"
    judges = True
    reports = True
    replans = False

    def __init__(self) -> None:
        self._wave = 0
        self._seen: set[str] = set()
        self._levels: dict[str, int] = {}
        self._known = (0, 0)

    def admits(self, state: PlanState, node: str) -> bool:
        return self._level(state, node) <= self._wave

    def at_rest(self, state: PlanState) -> DueThought | None:
        fresh = fresh_work(state, self._seen)
        rest = open_work(state)
        if not fresh:
            if rest:
                self._wave = max(self._wave, min(self._level(state, one) for one in rest))
            return None
        self._seen.update(fresh)
        ended = tuple(
            one for one in state.in_state("executed", "failed") if state.nodes[one].node.kind in WORK
        )
        if rest:
            self._wave = max(self._wave, min(self._level(state, one) for one in rest))
        return DueThought(
            "reflect", ended, holds=True, final=not rest, reason=f"what {', '.join(fresh[:6])} gave"
        )

    def decided(self, ask: DueThought, verdict: ReflectionAnswer) -> ReflectionAnswer:
        if verdict.decision == "replan":
            self._wave += 1
        return verdict

    def _level(self, state: PlanState, node: str) -> int:
        now = (state.plan.version, len(state.plan.nodes))
        if now != self._known:
            self._levels, self._known = work_levels(state), now
        return self._levels.get(node, 0)
