"""Messages about pending changes of a live directory: listing them, showing each, and applying or dropping them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from iact.core.errors import UsageError
from iact.core.ports import AppliedChange
from iact.core.session.effects import SeenChanges, SettledChanges
from iact.core.views.consent import together
from iact.core.views.review import PendingRow, counts
from iact.web.ports import Session
from iact.web.reasons import in_words
from iact.web.wire import answers, requests


class ReviewClient(Protocol):
    """The part of a connection that these messages act on."""

    def watched(self) -> Session: ...


async def list_pending(client: ReviewClient, message: requests.ListPending) -> answers.Pending:
    """Answer `pending`."""
    session = client.watched()
    # Only the first page checks the directory again.
    rows = await session.effects.rows(fresh=message.start == 0 and message.count > 0)
    some = rows[message.start : message.start + message.count]
    shown = _in_words(rows, some)
    whole = together(row["digest"] for row in rows)
    return {"total": len(rows), "at": session.view.record, "digest": whole, "list": shown}


async def show_patch(client: ReviewClient, message: requests.ShowPatch) -> answers.Patch:
    """Answer `patch`."""
    effects = client.watched().effects
    text = await effects.patch(message.path)
    return {"text": text, "digest": effects.digest(message.path), **_counted(text)}


async def count_lines(client: ReviewClient, message: requests.CountLines) -> answers.PathLinesList:
    """Answer `counts`; changes that are no longer pending are left out."""
    effects = client.watched().effects
    found: list[answers.PathLines] = []
    for path in message.paths:
        try:
            text = await effects.patch(path)
        except UsageError:
            continue
        found.append({"path": path, **_counted(text)})
    return {"list": found}


async def apply(client: ReviewClient, message: requests.Apply) -> answers.Settled:
    """Carry out `apply`."""
    session = client.watched()
    settled = await session.effects.apply(
        message.paths, force=message.force, since=message.at, seen=_seen(message)
    )
    return _settled(settled)


async def drop(client: ReviewClient, message: requests.Drop) -> answers.Settled:
    """Carry out `drop`."""
    session = client.watched()
    return _settled(await session.effects.drop(message.paths, since=message.at, seen=_seen(message)))


def _in_words(rows: Sequence[PendingRow], some: Sequence[PendingRow]) -> list[PendingRow]:
    """Some of the rows, with the reasons that people read."""
    # Changes that one record reports are held together, by the worst of them.
    highest: dict[int, float] = {}
    for row in rows:
        highest[row["n"]] = max(row["impact"], highest.get(row["n"], 0))

    shown: list[PendingRow] = []
    for row in some:
        reason = in_words(row["held"], highest[row["n"]], row["reason"])
        shown.append({**row, "reason": reason})
    return shown


def _seen(message: requests.Apply | requests.Drop) -> SeenChanges | None:
    if message.digest is not None and message.paths is None:
        return SeenChanges(whole=message.digest)
    if message.digests is not None:
        return SeenChanges(each=message.digests)
    return None


def _settled(settled: SettledChanges) -> answers.Settled:
    def told(changes: Sequence[AppliedChange]) -> list[answers.AppliedPath]:
        return [{"path": one.path, "outcome": one.outcome, "why": one.why} for one in changes]

    return {
        "n": settled.record.n,
        "done": len(settled.done),
        "left": told(settled.left),
        "notes": told(settled.notes),
    }


def _counted(text: str) -> answers.Lines:
    added, removed = counts(text) or (None, None)
    return {"added": added, "removed": removed}
