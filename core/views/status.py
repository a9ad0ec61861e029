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
        return "waits", next(iter(tree.hosts.open.values())).host
    if tree.forms:
        asked = next(iter(tree.forms.values()))
        return "waits", "a step of a plan" if asked.by_plan else asked.function
    for agent in tree.at_work.values():
        for one in agent.actions:
            if one.asked and one.answer is None and one.asked_of == "person":
                return "waits", one.spec.name
        run = agent.plan.running if agent.plan is not None else None
        if run is not None and run.awaited and run.still:
            return "waits", "a plan to be started"
    if tree.at_work:
        return ("paused" if tree.paused("/") else "working"), ""
    return ("failed" if tree.root.rest == "failed" else "idle"), ""


def left_at(newest: Sequence[Record]) -> SessionStatus:
    """The status of a session at rest, from its last records."""
    asked: dict[tuple[str, int, int], Record] = {}
    ended: Record | None = None
    work = False
    for record in newest:
        match record.content:
            case ClearanceAsk(to="person", turn=turn, action=action):
                asked[record.agent, turn, action] = record
            case ClearanceAnswer(turn=turn, action=action) | Result(turn=turn, action=action):
                asked.pop((record.agent, turn, action), None)
            case Reply() if record.agent == "/":
                ended, work = record, False
                asked.clear()
            case Reply():
                asked = {key: one for key, one in asked.items() if key[0] != record.agent}
            case Say() | Inject() | BeginPlan():
                work = True
            case Cancel() if record.agent == "/":
                work = False
            case _ if record.kind in ("turn", "call"):
                work = True
    if asked:
        first = next(iter(asked.values()))
        return SessionStatus("waits", first.at, first.text("function"))
    if work:
        return SessionStatus("unfinished", newest[-1].at)
    if ended is not None and isinstance(ended.content, Reply) and ended.content.status not in _WELL:
        return SessionStatus("failed", ended.at)
    return SessionStatus("idle", ended.at if ended is not None else "")
