"""The modes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from iact.core.errors import UsageError
from iact.core.plan.modes.analyze import Analyze
from iact.core.plan.modes.base import Mode
from iact.core.plan.modes.nreflect import NReflect
from iact.core.plan.modes.orchestrator import Orchestrator
from iact.core.plan.modes.profile import Profile
from iact.core.plan.modes.profile_rules import DomainRule
from iact.core.plan.modes.reflect import Reflect
from iact.core.plan.modes.static import Static
from iact.core.records.parts import PlanBounds
from iact.core.records.ways import PLAN_WAYS


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
    given, bounds = options or {}, bounds or PlanBounds()
    if name == "nreflect":
        return NReflect(_number(given, "n", 4))
    if name == "analyze":
        return Analyze(_number(given, "rounds", bounds.rounds), confident=bounds.confidence)
    if name == "profile":
        return Profile(history, climb=given.get("climb") == 1, bounds=bounds, domain=domain)
    plain = {"static": Static, "reflect": Reflect, "orchestrator": Orchestrator}
    if name not in plain:
        raise UsageError(f"There is no mode {name!r}; use one of {', '.join(PLAN_WAYS)}.")
    return plain[name]()


def _number(options: Mapping[str, str | int], name: str, default: int) -> int:
    value = str(options.get(name, default))
    if not value.isdecimal() or not 1 <= int(value) <= 100:
        raise UsageError(
            f"The option {name}={value!r} is not a number from 1 to 100; leave it out for {default}."
        )
    return int(value)
