"""The messages about sessions as a whole: listing, searching, naming, deleting, archiving; and finding text in one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from iact.accounts.people import AuditKind
from iact.core.errors import UsageError
from iact.core.stored.archive import archive_name
from iact.core.stored.deletion import DeletionOutcome
from iact.core.stored.index import SearchHit
from iact.core.stored.text_search import TextMatch, find
from iact.core.views.status import SessionStatus
from iact.web.downloads import Content
from iact.web.ports import Runtime, Session, SessionInfo
from iact.web.safe_text import visible
from iact.web.wire import answers, news, requests

_PIECE: Final = 1 << 20
"""Bytes of an archive that are in memory at a time."""
_PLACES: Final = 2_000
"""How many places a search in a session returns."""


class SessionsClient(Protocol):
    """The part of a connection that these act on."""

    @property
    def runtime(self) -> Runtime: ...

    async def send(self, message: news.News) -> None:
        """Send a message that is not an answer."""
        ...

    def watch_sessions(self) -> None:
        """Report each session that changes from now on."""
        ...

    async def audit(self, kind: AuditKind, **about: str) -> None: ...

    def offer(self, name: str, content: Content) -> str: ...

    def uploaded(self) -> AbstractContextManager[Path]:
        """The uploaded archive on disk, until the context exits."""
        ...


# --- lists ------------------------------------------------------------------------------------------------


async def list_sessions(client: SessionsClient, message: requests.ListSessions) -> answers.Nothing:
    # Changes are reported from before the list is read, so that none is missed.
    client.watch_sessions()
    stored = await asyncio.to_thread(client.runtime.sessions)
    deleted = await asyncio.to_thread(client.runtime.store.trash.all)

    rows = [info_fields(info) for info in _first(stored, message.limit)]
    await client.send({"type": "sessions", "total": len(stored), "deleted": len(deleted), "list": rows})
    return {}


def _first(stored: Sequence[SessionInfo], limit: int | None) -> Sequence[SessionInfo]:
    """The newest sessions, and those that a person must not have to look for."""
    if limit is None:
        return stored

    return [
        info
        for place, info in enumerate(stored)
        if place < limit or info.pinned or info.open or info.state == "waits"
    ]


async def search_sessions(client: SessionsClient, message: requests.SearchSessions) -> answers.FoundSessions:
    found = await client.runtime.search_sessions(message.query, message.limit)

    rows: list[answers.SessionRow] = []
    for info, hit in found.rows:
        row = info_fields(info)
        if hit is not None:
            row["hit"] = _place_fields(hit)
        rows.append(row)

    return {"list": rows, "behind": found.behind}


def info_fields(info: SessionInfo) -> answers.SessionRow:
    """One session of a list."""
    return {
        "id": info.id,
        "title": info.title,
        "created": info.created,
        "changed": info.changed,
        "records": info.records,
        "open": info.open,
        "foreign": info.foreign,
        "state": info.state,
        "since": info.since,
        "what": info.what,
        "pinned": info.pinned,
        "named": info.named,
        "source": info.source,
        "at": info.at,
    }


def standing_fields(session: str, now: SessionStatus | None) -> news.StandingNews:
    """A message that reports a change."""
    if now is None:
        return {"type": "standing", "session": session}
    return {"type": "standing", "session": session, "state": now.state, "since": now.since, "what": now.what}


def _place_fields(hit: SearchHit | TextMatch) -> answers.Place:
    return {
        "n": hit.n,
        "agent": hit.agent,
        "kind": hit.kind,
        "before": visible(hit.before),
        "match": visible(hit.match),
        "after": visible(hit.after),
        "count": hit.count,
    }


# --- one or several ---------------------------------------------------------------------------------------


async def rename(client: SessionsClient, message: requests.RenameSession) -> answers.Title:
    title = await client.runtime.rename(message.session, message.title)
    await client.audit("session.renamed", session=message.session)  # a title is content
    return {"title": title}


async def pin(client: SessionsClient, message: requests.PinSession) -> answers.Nothing:
    await client.runtime.pin(message.session, message.pinned)
    return {}


async def delete(client: SessionsClient, message: requests.OnSessions) -> answers.DoneSessions:
    outcome = await client.runtime.delete(message.sessions)
    return await _audited(client, "session.deleted", outcome)


async def restore(client: SessionsClient, message: requests.OnSessions) -> answers.DoneSessions:
    outcome = await client.runtime.restore_sessions(message.sessions)
    return await _audited(client, "session.restored", outcome)


async def purge(client: SessionsClient, message: requests.OnSessions) -> answers.DoneSessions:
    outcome = await client.runtime.purge(message.sessions)
    return await _audited(client, "session.purged", outcome)


async def _audited(client: SessionsClient, kind: AuditKind, outcome: DeletionOutcome) -> answers.DoneSessions:
    """The answer, after it was audited: a deleted session's journal, which would say who did it, is gone.

    Raises:
        UsageError: one session was asked for, and it was refused.
    """
    for session in outcome.sessions:
        await client.audit(kind, session=session)

    if not outcome.sessions and len(outcome.refused) == 1:
        raise UsageError(next(iter(outcome.refused.values())))
    return {"sessions": [*outcome.sessions], "refused": dict(outcome.refused), "note": outcome.note}


async def list_deleted(client: SessionsClient, message: requests.ListDeleted) -> answers.DeletedSessions:
    rows = await asyncio.to_thread(client.runtime.store.deleted)
    return {
        "list": [
            {"id": deleted.id, "title": info.title, "deleted": deleted.at, "records": info.records}
            for deleted, info in rows
        ]
    }


async def archive(client: SessionsClient, message: requests.ArchiveSession) -> answers.Download:
    store = client.runtime.store
    store.path_of(message.session)  # raises UsageError if there is none

    content = partial(_archived, store.folder, partial(store.export, message.session))
    return {"href": client.offer(archive_name(message.session), content)}


class _Export(Protocol):
    def __call__(self, out: BinaryIO) -> int: ...


def _archived(folder: Path, export: _Export) -> Iterator[bytes]:
    """The archive in pieces, written to disk while it is fetched, so that a large one takes little memory."""
    with tempfile.TemporaryFile(dir=folder) as out:
        export(out)
        out.seek(0)
        while piece := out.read(_PIECE):
            yield piece


async def import_archive(client: SessionsClient, message: requests.ImportSession) -> answers.ImportedSession:
    store = client.runtime.store
    with client.uploaded() as file:
        imported = await asyncio.to_thread(store.import_session, file, called="the file")

    left_out = sum(imported.left_out.values())
    return {"session": imported.session, "foreign": imported.foreign, "left_out": left_out}


# --- within one -------------------------------------------------------------------------------------------


async def find_text(session: Session, message: requests.Find) -> answers.Places:
    records = session.records(0)[: message.at]
    folder = session.journal.parent
    agent = message.agent or ""

    def search() -> list[TextMatch]:
        return [*find(records, message.text, agent=agent, whose=message.whose, directory=folder)]

    matches = await asyncio.to_thread(search)
    return {"count": len(matches), "list": [_place_fields(match) for match in matches[:_PLACES]]}
