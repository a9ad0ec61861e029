"""The ways of working, by name: the one list of them, for messages, plans, the command line and the page."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

PlanMode: TypeAlias = Literal["static", "reflect", "nreflect", "orchestrator", "analyze", "profile"]
"""After which events a plan is judged; see `core.plan.modes`."""

PlanWay: TypeAlias = Literal[PlanMode, "auto"]
"""How a plan is to be run; `auto` chooses a mode."""

Way: TypeAlias = Literal["dialogue", "auto", PlanMode]
"""How a message is worked on: in a dialogue, or as the goal of a plan; `auto` chooses."""

PLAN_MODES: Final[tuple[PlanMode, ...]] = get_args(PlanMode)
PLAN_WAYS: Final[tuple[PlanWay, ...]] = get_args(PlanWay)
WAYS: Final[tuple[Way, ...]] = get_args(Way)
