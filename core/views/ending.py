"""How the work on a message ended: the same words for the command line, the page and every face.

A dialogue's answer counts as reached, because the person who asked judges it by reading. A plan's answer counts as what its verdict says.
"""

from __future__ import annotations

from typing import Final, Literal, assert_never

from iact.core.plan.verdict import verdict_json
from iact.core.records.dialogue import Reply
from iact.core.records.parts import Outcome as VerdictOutcome
from iact.core.records.parts import Verdict
from iact.core.tree.plan_report import ending_from, results_in

STOPPED_BY_USER: Final = "The user cancelled this work."
"""The whole reply of an agent that a person stopped."""

__all__ = ["Outcome", "outcome_of", "results_in", "verdict_json", "verdict_on"]

Outcome = VerdictOutcome | Literal["failed"]
"""`failed`: there is no answer, because of an error."""

_ANSWERED: Final = "It was answered."
_STOPPED: Final = "The user stopped it."
_BOUND: Final = "A bound ended it: {what}."
_FAILED: Final = "An error ended it."


def verdict_on(reply: Reply) -> Verdict:
    """Return the verdict on what a message led to, given its answer."""
    if reply.verdict is not None:
        return reply.verdict
    ending = ending_from(reply)
    if ending is not None:
        return ending.verdict

    # A reply of an agent has no verdict of its own: its status says how it ended.
    match reply.status:
        case "ok":
            return Verdict(reached="yes", because=_ANSWERED)
        case "bound":
            return Verdict(reached="unknown", because=_BOUND.format(what=reply.bound), by="bound")
        case "cancelled":
            return Verdict(reached="unknown", because=_STOPPED, by="person")
        case "failed":
            return Verdict(reached="no", because=_FAILED)
        case other:
            assert_never(other)


def outcome_of(reply: Reply) -> Outcome:
    """Return in one word what a message led to, given its answer."""
    return "failed" if reply.status == "failed" else verdict_on(reply).outcome
