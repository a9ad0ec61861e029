"""Outcomes of actions, as they are recorded: what a call gave, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping

from core.ports import JSON
from core.records.record import Record
from core.session.live import Live, stored
from core.tree.agent import Agent, Pending
from core.tree.decision import place_fields


def record_result(
    live: Live, agent: Agent, pending: Pending, fields: Mapping[str, JSON], text: str = ""
) -> Record:
    """Record the outcome of an action; a long text becomes a blob."""
    body, blob, blobs = stored(text)
    call = {"call": pending.call} if pending.call else {}
    return live.record(
        "result", agent.path, {**place_fields(agent, pending), **call, **fields, **blob}, body, blobs
    )


def settle(live: Live, agent: Agent, pending: Pending, status: str) -> None:
    """Give an action that gave nothing its outcome: `status`."""
    record_result(live, agent, pending, {"status": status})


def drop(live: Live, agent: Agent, status: str) -> None:
    """Give every pending action of an agent its outcome, `status`; skipping leaves those that wait for a reply."""
    for pending in [one for one in agent.actions if not (one.call and status == "skipped")]:
        settle(live, agent, pending, status)
