"""Outcomes of actions, as they are recorded: what a call returned, or why it has no result."""

from __future__ import annotations

from dataclasses import replace

from iact.core.records.calls import Result, ResultStatus
from iact.core.records.record import Record
from iact.core.session.live import Live, StoredText, stored
from iact.core.tree.agent import Agent, Pending


def result_of(
    agent: Agent,
    pending: Pending,
    status: ResultStatus,
    *,
    ms: int | None = None,
    version: str = "",
    beside: tuple[int, ...] = (),
    unkept: bool = False,
    unchanged: int = 0,
    fresh: bool = False,
    aside: tuple[str, ...] = (),
    changed: tuple[str, ...] = (),
) -> Result:
    """The outcome of an action: its status, and what a call left in the files (`Result`)."""
    return Result(
        turn=agent.turn,
        action=pending.index,
        function=pending.spec.name,
        call=pending.call,
        ms=ms,
        version=version,
        beside=beside,
        copied=bool(pending.base),
        unkept=unkept,
        unchanged=unchanged,
        fresh=fresh,
        aside=aside,
        changed=changed,
        status=status,
    )


def record_result(live: Live, agent: Agent, result: Result, text: str | StoredText = "") -> Record:
    """Record the outcome of an action; a long text becomes a blob. `text`: it may be prepared, as `stored` does it."""
    live.printed.pop(result.call, None)
    kept = text if isinstance(text, StoredText) else stored(text)
    if kept.blob is not None:
        result = replace(result, blob=kept.blob)

    record = live.record(result, agent.path, body=kept.body, blobs=kept.blobs)
    live.journal.hasten()
    return record


def settle(live: Live, agent: Agent, pending: Pending, status: ResultStatus) -> None:
    """Record `status` as the outcome of an action that did not finish, with what it had printed by then."""
    printed = live.printed.get(pending.call)
    record_result(live, agent, result_of(agent, pending, status), printed.text() if printed else "")


def drop(live: Live, agent: Agent, status: ResultStatus) -> None:
    """Give every pending action of an agent the outcome `status`. "skipped" excludes actions that wait for a reply.

    Actions that were under way where the session was forked get a different outcome: they are not carried out.
    """
    for pending in [one for one in agent.actions if not (one.call and status == "skipped")]:
        settle(live, agent, pending, "forked" if pending.forked else status)
