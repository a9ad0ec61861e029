"""The status of a whole session, for lists: whether it works, waits for a person, or failed.

The status of an open session follows from its tree. In a session at rest nothing runs, whatever its last state was; its
status follows from its last records, without reading the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Result
from iact.core.records.control import BeginPlan, Cancel, Inject
from iact.core.records.dialogue import Reply, Say
from iact.core.records.record import Record
from iact.core.tree.tree import Tree

SessionState = Literal["idle", "working", "waits", "paused", "failed", "unfinished", "unreadable"]
"""`waits`: for a person. `failed`: the last task ended without an answer. `unfinished`: not open, and cut off at work;
it continues when it is opened. `unreadable`: its journal is damaged, or this process may not read it."""

_WELL: Final = ("ok", "cancelled")


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """`since`: when the state began, ISO 8601, UTC; empty if unknown. `what`: what the session waits for, in a few
    words."""

    state: SessionState
    since: str = ""
    what: str = ""


def standing(tree: Tree, *, failure: bool) -> tuple[SessionState, str]:
    """The state of an open session, and what it waits for. `failure`: the session has stopped."""
    if failure:
        return "failed", ""

    if tree.hosts.open:
        first_ask = next(iter(tree.hosts.open.values()))
        return "waits", first_ask.host
    if tree.forms:
        first_form = next(iter(tree.forms.values()))
        return "waits", "a step of a plan" if first_form.by_plan else first_form.function

    for agent in tree.at_work.values():
        for action in agent.actions:
            if action.asked and action.answer is None and action.asked_of == "person":
                return "waits", action.spec.name
        run = agent.plan.running if agent.plan is not None else None
        if run is not None and run.awaited and run.still:
            return "waits", "a plan to be started"

    if tree.at_work:
        return ("paused" if tree.paused("/") else "working"), ""
    return ("failed" if tree.root.rest == "failed" else "idle"), ""


def left_at(newest: Sequence[Record]) -> SessionStatus:
    """The status of a session at rest, from its last records."""
    asked: dict[tuple[str, int, int], Record] = {}
    answer: Record | None = None
    is_unfinished = False
    for record in newest:
        match record.content:
            case ClearanceAsk(to="person", turn=turn, action=action):
                asked[record.agent, turn, action] = record
            case ClearanceAnswer(turn=turn, action=action) | Result(turn=turn, action=action):
                asked.pop((record.agent, turn, action), None)
            case Reply() if record.agent == "/":
                answer = record
                is_unfinished = False
                asked.clear()
            case Reply():
                # What an agent had asked before it replied is asked no more.
                asked = {key: ask for key, ask in asked.items() if key[0] != record.agent}
            case Say() | Inject() | BeginPlan():
                is_unfinished = True
            case Cancel() if record.agent == "/":
                is_unfinished = False
            case _ if record.kind in ("turn", "call"):
                is_unfinished = True

    if asked:
        first = next(iter(asked.values()))
        return SessionStatus("waits", first.at, first.text("function"))
    if is_unfinished:
        return SessionStatus("unfinished", newest[-1].at)
    if answer is None:
        return SessionStatus("idle", "")
    if isinstance(answer.content, Reply) and answer.content.status not in _WELL:
        return SessionStatus("failed", answer.at)
    return SessionStatus("idle", answer.at)
