"""A plan's result, however it ended."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from iact.core.plan.model import WORK, PlanVersion
from iact.core.plan.state import NodeRecord, PlanEvent, PlanState
from iact.core.ports import JSON

Status = Literal["concluded", "partial", "failed"]


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan's result, however it ended.

    `result`: the answer, or the outputs of its last steps. `missing`: ids of last steps without a result, with the
    reason. `trail`: every event in order. `bound`: the bound that ended it; "" if none. `flags`: caveats. `shortfall`:
    why its goal counts as not reached. `confidence`: of that judgement, from 0 to 1.
    """

    status: Status
    result: JSON
    missing: Mapping[str, str]
    nodes: Mapping[str, NodeRecord]
    versions: tuple[PlanVersion, ...]
    trail: tuple[PlanEvent, ...]
    model_calls: int
    tokens: int
    seconds: float
    bound: str = ""
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    shortfall: str = ""
    confidence: float | None = None

    def to_json(self) -> dict[str, JSON]:
        """The result as `iact plan run --json` prints it."""
        return {
            "status": self.status,
            "achieved": self.status == "concluded",
            "confidence": self.confidence,
            "reason": self.shortfall,
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
    """A node's state and result. Times are in seconds from the plan's start."""
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


@dataclass(frozen=True, slots=True)
class PlanEnds:
    """The results of a plan's last steps: outputs, and reasons for missing ones, by id. `any_done`: of all steps."""

    outputs: Mapping[str, JSON]
    missing: Mapping[str, str]
    any_done: bool

    @property
    def result(self) -> JSON:
        """The only output, or all of them by id; None if there are none."""
        return next(iter(self.outputs.values())) if len(self.outputs) == 1 else dict(self.outputs) or None


def gather(state: PlanState, superseded: Container[str]) -> PlanEnds:
    """Collect the results of the steps that no other step followed, except those that were `superseded`."""
    work = {one: state.nodes[one] for one, node in state.plan.nodes.items() if node.kind in WORK}
    outputs: dict[str, JSON] = {}
    missing: dict[str, str] = {}
    for one, record in work.items():
        followers = (work.get(other) for other in record.serves)
        if one in superseded or any(each and each.state != "cancelled" for each in followers):
            continue
        if record.state == "executed":
            outputs[one] = record.output
        elif record.cause != "concluded":
            missing[one] = record.error or record.state
    return PlanEnds(outputs, missing, any(record.state == "executed" for record in work.values()))
