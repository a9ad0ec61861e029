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

    def watched(self) -> Session: ...

    async def audit(self, kind: AuditKind, **about: str) -> None: ...

    def offer(self, name: str, content: Content) -> str: ...

    def uploaded(self) -> AbstractContextManager[Path]:
        """The uploaded archive on disk, until the context exits."""
        ...


# --- lists ------------------------------------------------------------------------------------------------


async def list_sessions(client: SessionsClient, message: requests.ListSessions) -> answers.Nothing:
    client.watch_sessions()
    stored = await asyncio.to_thread(client.runtime.sessions)
    deleted = await asyncio.to_thread(client.runtime.store.trash.all)
    shown = _first(stored, message.limit)
    await client.send(
        {
            "type": "sessions",
            "total": len(stored),
            "deleted": len(deleted),
            "list": [info_fields(one) for one in shown],
        }
    )
    return {}


def _first(stored: Sequence[SessionInfo], limit: int | None) -> Sequence[SessionInfo]:
    if limit is None:
        return stored
    return [
        one for at, one in enumerate(stored) if at < limit or one.pinned or one.open or one.state == "waits"
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
    return await _told(client, "session.deleted", await client.runtime.delete(message.sessions))


async def restore(client: SessionsClient, message: requests.OnSessions) -> answers.DoneSessions:
    return await _told(client, "session.restored", await client.runtime.restore_sessions(message.sessions))


async def purge(client: SessionsClient, message: requests.OnSessions) -> answers.DoneSessions:
    return await _told(client, "session.purged", await client.runtime.purge(message.sessions))


async def _told(client: SessionsClient, kind: AuditKind, done: DeletionOutcome) -> answers.DoneSessions:
    """The result, after it was audited: a deleted session's journal, which would say who did it, is gone."""
    for one in done.sessions:
        await client.audit(kind, session=one)
    return _done_fields(done)


def _done_fields(done: DeletionOutcome) -> answers.DoneSessions:
    if not done.sessions and len(done.refused) == 1:
        raise UsageError(next(iter(done.refused.values())))
    return {"sessions": [*done.sessions], "refused": dict(done.refused), "note": done.note}


async def list_deleted(client: SessionsClient, message: requests.ListDeleted) -> answers.DeletedSessions:
    rows = await asyncio.to_thread(client.runtime.store.deleted)
    return {
        "list": [
            {"id": one.id, "title": info.title, "deleted": one.at, "records": info.records}
            for one, info in rows
        ]
    }


async def archive(client: SessionsClient, message: requests.ArchiveSession) -> answers.Download:
    store = client.runtime.store
    store.path_of(message.session)
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
        made = await asyncio.to_thread(store.import_session, file, called="the file")
    return {"session": made.session, "foreign": made.foreign, "left_out": sum(made.left_out.values())}


# --- within one -------------------------------------------------------------------------------------------


async def find_text(client: SessionsClient, message: requests.Find) -> answers.Places:
    session = client.watched()
    records = session.records(0)
    until = len(records) if message.at is None else message.at

    def look() -> list[TextMatch]:
        directory, agent = session.journal.parent, message.agent or ""
        return [*find(records[:until], message.text, agent=agent, whose=message.whose, directory=directory)]

    places = await asyncio.to_thread(look)
    return {"count": len(places), "list": [_place_fields(one) for one in places[:_PLACES]]}
