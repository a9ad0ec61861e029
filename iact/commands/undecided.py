"""What `iact run` and `iact plan run` report of questions that no person was available to answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk, rule_of
from iact.core.views.question_text import carried_by
from iact.core.views.questions import Undecided


def to_json(decided: Undecided) -> dict[str, JSON]:
    """One question for programs: what was asked, of which agent, why, and whether the policy allowed it."""
    question, asked = decided.question, decided.question.content
    fields: dict[str, JSON] = {"record": question.n, "agent": question.agent, "allowed": decided.allowed}
    if isinstance(asked, HostAsk):
        host = rule_of(asked.host, asked.port)
        why = carried_by(asked) if asked.private else "It has not been allowed so far."
        return {"kind": "host", "host": host, "module": asked.module, "why": why, **fields}
    if isinstance(asked, FormAsk):
        return {"kind": "form", "function": asked.function, "why": asked.message, **fields}

    assert isinstance(asked, ClearanceAsk)
    return {"kind": "clearance", "function": asked.function, "why": asked.reason or asked.why, **fields}


def tell(undecided: Sequence[Undecided]) -> None:
    """Print a sentence about each question on stderr, and what to do about them."""
    for decided in undecided:
        print(_sentence(decided), file=sys.stderr)
    if undecided:
        print(
            "note: to have it decided otherwise, say so in the policy beforehand (docs/how-to/policies.md), or run "
            "the command on a terminal.",
            file=sys.stderr,
        )


def _sentence(decided: Undecided) -> str:
    agent, asked = decided.question.agent, decided.question.content
    outcome = "it was allowed" if decided.allowed else "it was denied"
    if isinstance(asked, HostAsk):
        host = rule_of(asked.host, asked.port)
        return f"{agent}: no one could be asked whether {asked.module} may reach {host}; {outcome}."
    if isinstance(asked, FormAsk) and asked.by_plan:
        what = "whether a result is accepted" if asked.accepts else "to do a step of the plan"
        return f"{agent}: no one could be asked {what}."
    if isinstance(asked, FormAsk):
        return f"{agent}: {asked.function} asked something, and no one could be asked; it got no answer."

    assert isinstance(asked, ClearanceAsk)
    # A reason may quote what others wrote; it must not look like a line of ours.
    why = " ".join((asked.reason or asked.why).split()).rstrip(".")
    reason = f" ({why})" if why else ""
    return f"{agent}: no one could be asked whether {asked.function} may run{reason}; {outcome}."
