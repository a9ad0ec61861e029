"""The modes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.errors import UsageError
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import Mode, ModeOrder
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.profile import Profile
from iact.core.plan.modes.profile_rules import DomainRule
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.records.parts import PlanBounds
from iact.core.records.ways import PLAN_WAYS

MODES: Final[Mapping[str, type[Mode]]] = {
    mode.name: mode for mode in (Static, Reflect, NReflect, Orchestrator, Analyze, Profile)
}


def make_mode(
    name: str,
    options: Mapping[str, str | int] | None = None,
    bounds: PlanBounds | None = None,
    history: Mapping[str, float] | None = None,
    domain: Sequence[DomainRule] = (),
) -> Mode:
    """Return a new mode for one plan; `auto` must be resolved beforehand, with `auto.choose`.

    `history`: how often calls failed. `domain`: the policy's rules for profiled plans.

    Raises:
        UsageError: there is no such mode, or an option is not a positive number.
    """
    mode = MODES.get(name)
    if mode is None:
        raise UsageError(f"There is no mode {name!r}; use one of {', '.join(PLAN_WAYS)}.")
    return mode.make(ModeOrder(options or {}, bounds or PlanBounds(), history or {}, domain))
