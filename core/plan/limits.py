"""The bounds of a plan. Everything in a plan is bounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from iact.core.plan.protocol import QuestionKind
from iact.core.rates import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanLimits:
    """Bounds of one plan. Times in seconds; None means no bound.

    `nodes`: tool and agent nodes over all versions. `tokens`: the total that runner and asker report. `node_timeout`:
    for a step without its own (a tool step's is enforced by the code that fires it). `rates`: by endpoint. `backoff`:
    before a first retry. `roles`: which model answers which question, if it differs from `core.plan.protocol.ROLES`.
    `report`: whether a mode that judges ends with a report in words.
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
    roles: Mapping[QuestionKind, str] = field(default_factory=dict)
    report: bool = True
