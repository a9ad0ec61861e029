"""Figures of a plan that has run, as the experiments of the papers count them.

How wide it was (Graph Harness, section 9.1: the position between a loop and a graph), how often it was tried again or
changed (section 8.1), and how many contracts held (section 8.4). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

from iact.core.plan.model import NO_ERROR, WORK
from iact.core.plan.state import NodeRecord, PlanState
from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The figures of one plan."""

    width: int = 0
    """The most steps that were at work at the same time."""
    retries: int = 0
    """How often a step was tried again."""
    versions: int = 0
    """How many versions it had; each after the first replaced steps, or planned again."""
    contracts: int = 0
    """How many steps ran that had a contract of their own."""
    held: int = 0
    """How many of these contracts held."""

    def to_json(self) -> dict[str, JSON]:
        """The figures as `--json` has them."""
        return {
            "width": self.width,
            "retries": self.retries,
            "versions": self.versions,
            "contracts": self.contracts,
            "contracts_held": self.held,
        }


def figures_of(state: PlanState) -> PlanFigures:
    """Return the figures of a plan, as far as it has run."""
    ran = [record for record in state.nodes.values() if record.node.kind in WORK and record.attempts]
    bound = [record for record in ran if record.node.contract is not NO_ERROR and record.ended is not None]
    return PlanFigures(
        width=_width(ran),
        retries=sum(record.attempts - 1 for record in ran),
        versions=len(state.versions),
        contracts=len(bound),
        held=sum(record.state == "executed" for record in bound),
    )


def _width(ran: list[NodeRecord]) -> int:
    """The most steps at work at the same time. One that ends as another begins is not at work with it."""
    changes: list[tuple[float, int]] = []
    for record in ran:
        if record.started is not None:
            changes.append((record.started, 1))
            if record.ended is not None:
                changes.append((record.ended, -1))

    working = most = 0
    for _, change in sorted(changes):
        working += change
        most = max(most, working)
    return most
