"""`nreflect`: reflects after every n finished nodes; running branches are not held (KAIJU, section 5)."""

from __future__ import annotations

from typing import Self

from iact.core.plan.model import WORK
from iact.core.plan.modes.base import DueThought, Mode, ModeOrder, fresh_work, open_work
from iact.core.plan.state import PlanState
from iact.core.records.ways import OPTIONS


class NReflect(Mode):
    """At most one reflection for every `n` ended nodes, and a last one over what remains."""

    name = "nreflect"
    judges = True
    reports = True
    replans = False

    def __init__(self, n: int = OPTIONS["n"].default) -> None:
        self._n = n
        self._seen: set[str] = set()
        """Steps whose results a reflection was asked about."""

    @classmethod
    def make(cls, order: ModeOrder) -> Self:
        return cls(order.number("n"))

    def after(self, state: PlanState, node: str) -> DueThought | None:
        fresh = fresh_work(state, self._seen)
        if len(fresh) < self._n or not open_work(state):
            return None
        return self._ask(state, fresh, final=False)

    def at_rest(self, state: PlanState) -> DueThought | None:
        fresh = fresh_work(state, self._seen)
        return self._ask(state, fresh, final=not open_work(state)) if fresh else None

    def _ask(self, state: PlanState, fresh: tuple[str, ...], *, final: bool) -> DueThought:
        self._seen.update(fresh)
        ended = tuple(
            one for one in state.in_state("executed", "failed") if state.nodes[one].node.kind in WORK
        )
        return DueThought("reflect", ended, final=final, reason=f"what {', '.join(fresh[:6])} gave")
