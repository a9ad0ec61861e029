"""Messages about pending changes of a live directory: listing them, showing each, and applying or dropping them."""

from __future__ import annotations

from collections.abc import Sequence

from iact.core.errors import UsageError
from iact.core.ports import AppliedChange
from iact.core.session.effects import SeenChanges, SettledChanges
from iact.core.views.consent import together
from iact.core.views.review import PendingRow, counts
from iact.web.ports import Session
from iact.web.reasons import in_words
from iact.web.wire import answers, requests


async def list_pending(session: Session, message: requests.ListPending) -> answers.Pending:
    """Answer `pending`."""
    # Only the first page checks the directory again.
    is_first_page = message.start == 0 and message.count > 0
    rows = await session.effects.rows(fresh=is_first_page)
    digest = together(row["digest"] for row in rows)

    page = rows[message.start : message.start + message.count]
    shown = _in_words(rows, page)

    return {"total": len(rows), "at": session.view.record, "digest": digest, "list": shown}


async def show_patch(session: Session, message: requests.ShowPatch) -> answers.Patch:
    """Answer `patch`."""
    text = await session.effects.patch(message.path)
    return {"text": text, "digest": session.effects.digest(message.path), **_counted(text)}


async def count_lines(session: Session, message: requests.CountLines) -> answers.PathLinesList:
    """Answer `counts`; changes that are no longer pending are left out."""
    rows: list[answers.PathLines] = []
    for path in message.paths:
        try:
            text = await session.effects.patch(path)
        except UsageError:
            continue
        rows.append({"path": path, **_counted(text)})

    return {"list": rows}


async def apply(session: Session, message: requests.Apply) -> answers.Settled:
    """Carry out `apply`."""
    settled = await session.effects.apply(
        message.paths, force=message.force, since=message.at, seen=_seen(message)
    )
    return _settled(settled)


async def drop(session: Session, message: requests.Drop) -> answers.Settled:
    """Carry out `drop`."""
    settled = await session.effects.drop(message.paths, since=message.at, seen=_seen(message))
    return _settled(settled)


def _in_words(rows: Sequence[PendingRow], page: Sequence[PendingRow]) -> list[PendingRow]:
    """The rows of a page, with the reasons that people read. `rows`: those of all pages."""
    # Changes that one record reports are held together, by the worst of them.
    highest: dict[int, float] = {}
    for row in rows:
        highest[row["n"]] = max(row["impact"], highest.get(row["n"], 0))

    shown: list[PendingRow] = []
    for row in page:
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
    return {
        "n": settled.record.n,
        "done": len(settled.done),
        "left": _paths(settled.left),
        "notes": _paths(settled.notes),
    }


def _paths(changes: Sequence[AppliedChange]) -> list[answers.AppliedPath]:
    return [{"path": change.path, "outcome": change.outcome, "why": change.why} for change in changes]


def _counted(text: str) -> answers.Lines:
    added, removed = counts(text) or (None, None)
    return {"added": added, "removed": removed}
