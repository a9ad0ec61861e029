"""The exit status of work on a goal: the same for `iact run` and `iact plan run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.records.parts import Verdict
from iact.core.views.ending import Outcome

EXIT: Final[Mapping[Outcome, int]] = {
    "reached": 0,
    "failed": 1,
    "partly": 3,
    "unknown": 3,
    "not_reached": 4,
    "stopped": 5,
}
"""2 is for a wrong command line."""

_SAID: Final[Mapping[Outcome, str]] = {
    "partly": "The goal is reached in part.",
    "unknown": "It is not known whether the goal is reached.",
    "not_reached": "The goal is not reached.",
    "stopped": "It was stopped.",
}


def note(verdict: Verdict) -> str:
    """What to say on stderr about work whose goal does not count as reached; empty if it does."""
    said = _SAID.get(verdict.outcome, "")
    return f"{said} {verdict.because}".strip() if said else ""
