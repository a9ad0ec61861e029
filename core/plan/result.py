"""A plan's result, however it ended."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from iact.core.plan.model import WORK, PlanVersion
from iact.core.plan.state import NodeRecord, PlanEvent, PlanState
from iact.core.plan.verdict import verdict_json
from iact.core.ports import JSON
from iact.core.records.parts import Verdict

Status = Literal["concluded", "partial", "failed", "stopped"]
"""How a plan ended, in one word: its goal is reached; it is not, or not known to be, and there are results; there are
none; a person stopped it."""


def status_of(verdict: Verdict, *, any_done: bool) -> Status:
    """The word for a verdict. `any_done`: whether any step has a result."""
    if verdict.reached == "yes":
        return "concluded"
    if verdict.by == "person":
        return "stopped"
    return "partial" if any_done else "failed"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan's result, however it ended.

    `result`: the answer, or the outputs of its last steps. `trail`: every event in order. `bound`: the bound that ended
    it; "" if none. `flags`: caveats. `confidence`: of the judge, from 0 to 1.
    """

    verdict: Verdict
    status: Status
    result: JSON
    nodes: Mapping[str, NodeRecord]
    versions: tuple[PlanVersion, ...]
    trail: tuple[PlanEvent, ...]
    model_calls: int
    tokens: int
    seconds: float
    bound: str = ""
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    confidence: float | None = None

    @property
    def missing(self) -> Mapping[str, str]:
        """What is lacking, by step, and why."""
        return self.verdict.missing or {}

    def to_json(self) -> dict[str, JSON]:
        """The result as `iact plan run --json` prints it."""
        return {
            "status": self.status,
            "verdict": verdict_json(self.verdict),
            "achieved": self.verdict.reached == "yes",
            "confidence": self.confidence,
            "reason": shortfall(self.verdict),
            "result": self.result,
            "missing": dict(self.verdict.missing or {}),
            "versions": versions_json(self.versions),
            "nodes": {one: node_json(record) for one, record in self.nodes.items()},
            "usage": {"model_calls": self.model_calls, "tokens": self.tokens},
            "seconds": round(self.seconds, 6),
            "warnings": [*self.warnings, *self.flags],
        }


def shortfall(verdict: Verdict) -> str:
    """Why a goal does not count as reached; empty if it does."""
    return "" if verdict.reached == "yes" else verdict.because


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
    """The outputs of a plan's last steps, by id. `any_done`: whether any of its steps has one."""

    outputs: Mapping[str, JSON]
    any_done: bool

    @property
    def result(self) -> JSON:
        """The only output, or all of them by id; None if there are none."""
        return next(iter(self.outputs.values())) if len(self.outputs) == 1 else dict(self.outputs) or None


def gather(state: PlanState, superseded: Container[str]) -> PlanEnds:
    """Collect the results of the steps that no other step followed, except those that were `superseded`."""
    work = {one: state.nodes[one] for one, node in state.plan.nodes.items() if node.kind in WORK}
    outputs: dict[str, JSON] = {}
    for one, record in work.items():
        followers = (work.get(other) for other in record.serves)
        built_on = any(each and each.state != "cancelled" for each in followers)
        if record.state == "executed" and one not in superseded and not built_on:
            outputs[one] = record.output
    return PlanEnds(outputs, any(record.state == "executed" for record in work.values()))
