"""The ways of working, by name: the one list for messages, plans, the command line and the page."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

PlanMode: TypeAlias = Literal["static", "reflect", "nreflect", "orchestrator", "analyze", "profile"]
"""The events after which a plan is judged; see `core.plan.modes`."""

PlanWay: TypeAlias = Literal[PlanMode, "auto"]
"""How to run a plan; `auto` chooses a mode."""

Way: TypeAlias = Literal["dialogue", "auto", PlanMode]
"""How to work on a message: in a dialogue, or as the goal of a plan; `auto` chooses."""

PLAN_MODES: Final[tuple[PlanMode, ...]] = get_args(PlanMode)
PLAN_WAYS: Final[tuple[PlanWay, ...]] = get_args(PlanWay)
WAYS: Final[tuple[Way, ...]] = get_args(Way)
