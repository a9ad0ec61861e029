"""Levels of intent and impact: 0 observe, 1 operate, 2 override, and any levels that a policy puts between them.

A person who wants an agent to publish drafts but not to send mail gives publishing the impact 1.4 and the task the
intent 1.5. A policy can name such levels. Agents and models only ever see their own calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from iact.core.errors import UsageError

NAMED: Final[Mapping[str, float]] = {"observe": 0, "operate": 1, "override": 2}
HIGHEST: Final = 2


def level(value: float | str, named: Mapping[str, float]) -> float:
    """Return a level that a person gave as a number from 0 to 2 or as a name. `named`: the policy's levels.

    Raises:
        UsageError: the value is neither.
    """
    known = {**NAMED, **named}
    if isinstance(value, str) and value in known:
        return known[value]
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 0 <= number <= HIGHEST:
        names = ", ".join(sorted(known, key=lambda name: (known[name], name)))
        raise UsageError(f"An intent is a number from 0 to 2, or one of {names}; not {value!r}.")
    return int(number) if number.is_integer() else number
