"""Everything in a plan is bounded; here are the bounds, and what a plan comes back with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from core.plan.model import PlanVersion
from core.plan.schedule import Rate
from core.plan.state import NodeChange, NodeRecord
from core.ports import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one plan. Times in seconds; None: none.

    `nodes`: tool and agent nodes over all versions. `tokens`: what runner and asker report together.
    `rates`: by endpoint. `backoff`: before a first retry.
    """

    concurrency: int = 16
    nodes: int = 256
    model_calls: int = 60
    tokens: int | None = None
    wall_clock: float | None = 3600.0
    node_timeout: float | None = 120.0
    human_timeout: float = 600.0
    patches: int = 8
    replans: int = 2
    backoff: float = 0.5
    rates: Mapping[str, Rate] = field(default_factory=dict)


Status = Literal["concluded", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a plan comes back with, whatever happened.

    `result`: the answer, or what its last steps gave. `missing`: ids of last steps without a result, with
    why. `trail`: every event in order. `bound`: which bound ended it, "" if none. `flags`: caveats.
    """

    status: Status
    result: JSON
    missing: Mapping[str, str]
    nodes: Mapping[str, NodeRecord]
    versions: tuple[PlanVersion, ...]
    trail: tuple[NodeChange | PlanVersion, ...]
    model_calls: int
    tokens: int
    seconds: float
    bound: str = ""
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JSON]:
        """As `iact plan run --json` prints it."""
        return {
            "status": self.status,
            "result": self.result,
            "missing": dict(self.missing),
            "versions": versions_json(self.versions),
            "nodes": {one: node_json(record) for one, record in self.nodes.items()},
            "usage": {"model_calls": self.model_calls, "tokens": self.tokens},
            "seconds": round(self.seconds, 6),
            "warnings": [*self.warnings, *self.flags],
        }


def versions_json(versions: Iterable[PlanVersion]) -> list[JSON]:
    """Each version with the ids of all the nodes that it holds."""
    held: dict[str, None] = {}
    rows: list[JSON] = []
    for one in versions:
        held = {id: None for id in (*held, *(node.id for node in one.add)) if id not in one.drop}
        rows.append({"version": one.version, "parent": one.parent, "reason": one.reason, "nodes": list(held)})
    return rows


def node_json(record: NodeRecord) -> dict[str, JSON]:
    """What became of a node; times in seconds from the plan's start."""
    return {
        "kind": record.node.kind,
        "state": record.state,
        "version": record.version,
        "attempts": record.attempts,
        "started": record.started,
        "ended": record.ended,
        "output": record.output,
        "error": record.error or None,
        "validation": record.validation or None,
    }
