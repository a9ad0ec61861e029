"""The messages about sessions as a whole: listing, searching, naming, deleting, taking along; and finding text in one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO, Final, Protocol

from pydantic import Field, StringConstraints

from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.session.archive import archive_name
from iact.core.session.deletion import Done
from iact.core.session.find import Place, Whose, find
from iact.core.session.index import Hit
from iact.core.session.standing import Standing
from iact.web.messages import AgentPath, Message
from iact.web.ports import Runtime, Session, SessionInfo
from iact.web.records import Fields
from iact.web.shelf import Content
from iact.web.visible import visible

_PIECE: Final = 1 << 20
"""Bytes of an archive that are in memory at a time."""
_PLACES: Final = 2_000
"""Places that are told of a search in a session."""

SessionId = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Sessions = Annotated[list[SessionId], Field(min_length=1, max_length=1000)]


class ListSessions(Message):
    """The stored sessions, the one that changed last first. They come in a message `sessions` before the `ok`.

    It has `list`, at most `limit` (null: all) and always those that are pinned, wait for a person or are open; `total`,
    how many there are; and `deleted`, how many are in the trash. Each has `id`, `title`, `created`, `changed`,
    `records`, `open`, `foreign`, `state` (`idle`, `working`, `waits`, `paused`, `failed`, `unfinished`), `since` when,
    `what` it waits for, `pinned`, `named`, and `source` and `at` where it is a fork.

    From then on, messages `standing` tell when one changes: `session`, and `state`, `since` and `what` while it is open.
    Without a `state`, the list is to be asked for again.
    """

    limit: int | None = Field(default=None, ge=1)


class SearchSessions(Message):
    """Sessions whose title, or a message or output in them, holds all words of `query`, the one that changed last first.

    The `ok` has `list`, each as in `sessions`, with `hit` where it was found in the text: the newest place with `n`,
    `agent`, `kind`, `before`, `match`, `after`, and the `count` of places. `behind`: how many sessions are still to be
    read, which happens by itself.
    """

    query: Annotated[str, StringConstraints(pattern=r"\S", max_length=1000)]
    limit: int = Field(default=50, ge=1, le=300)


class RenameSession(Message):
    """`session.rename`: give a session a name; empty takes it away. The `ok` has `title`."""

    session: SessionId
    title: Annotated[str, StringConstraints(max_length=1000)]


class PinSession(Message):
    """`session.pin`: keep a session at the top of lists, and from being deleted for its age; or don't."""

    session: SessionId
    pinned: bool


class OnSessions(Message):
    """`session.delete`: move sessions to the trash; those that are open are closed. `session.restore`: move them back.
    `session.purge`: remove what is in the trash for good.

    The `ok` has `sessions`, those of which it was done; `refused`, why it was not, by session; and `note`, what is still
    to be done.
    """

    sessions: Sessions


class ListDeleted(Message):
    """`session.deleted`: what is in the trash. The `ok` has `list`, each with `id`, `title`, `deleted` and `records`."""


class ArchiveSession(Message):
    """`session.archive`: a session with its files as one compressed tar archive. The `ok` has `href` as for `download`."""

    session: SessionId


class ImportSession(Message):
    """`session.import`: the file that was uploaded is such an archive, and no variable: take it in as a session.

    It stands in place of `upload.end`. The `ok` has `session`, `foreign`, why it is not this installation's (empty if it
    is), and `left_out`, how much did not come along.
    """


class Find(Message):
    """Where `text` is in the watched session up to record `at` (null: all), upper and lower case alike.

    `agent`: only in its dialogue. `whose`: `user`, `agents` or `tools`; empty: anybody's. The `ok` has `count`, how many
    records hold it, and `list`, of the first 2,000, each with `n`, `agent`, `kind`, `before`, `match`, `after`, `count`.
    """

    text: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    agent: AgentPath | None = None
    whose: Whose = ""
    at: int | None = Field(default=None, ge=1)


class Client(Protocol):
    """The side of a connection that these act on."""

    @property
    def runtime(self) -> Runtime: ...

    async def send(self, message: Fields) -> None:
        """Send a message that answers nothing."""
        ...

    def watch_sessions(self) -> None:
        """From now on, tell of each session that changes."""
        ...

    def watched(self) -> Session: ...

    def offer(self, name: str, content: Content) -> str: ...

    def uploaded(self) -> AbstractContextManager[Path]:
        """The archive that was uploaded, on disk; it is gone behind this."""
        ...


# --- lists ------------------------------------------------------------------------------------------------


async def list_sessions(client: Client, message: ListSessions) -> Fields:
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


async def search_sessions(client: Client, message: SearchSessions) -> Fields:
    found = await asyncio.to_thread(client.runtime.search_sessions, message.query, message.limit)
    rows: list[JSON] = []
    for info, hit in found.rows:
        fields = info_fields(info)
        rows.append({**fields, "hit": _hit_fields(hit)} if hit is not None else fields)
    return {"list": rows, "behind": found.behind}


def info_fields(info: SessionInfo) -> dict[str, JSON]:
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


def standing_fields(session: str, now: Standing | None) -> Fields:
    """A message that tells of a change."""
    if now is None:
        return {"type": "standing", "session": session}
    return {"type": "standing", "session": session, "state": now.state, "since": now.since, "what": now.what}


def _hit_fields(hit: Hit) -> JSON:
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


async def rename(client: Client, message: RenameSession) -> Fields:
    return {"title": await client.runtime.rename(message.session, message.title)}


async def pin(client: Client, message: PinSession) -> Fields:
    await client.runtime.pin(message.session, message.pinned)
    return {}


async def delete(client: Client, message: OnSessions) -> Fields:
    return _done_fields(await client.runtime.delete(message.sessions))


async def restore(client: Client, message: OnSessions) -> Fields:
    return _done_fields(await client.runtime.restore_sessions(message.sessions))


async def purge(client: Client, message: OnSessions) -> Fields:
    return _done_fields(await client.runtime.purge(message.sessions))


def _done_fields(done: Done) -> Fields:
    refused: Mapping[str, JSON] = done.refused
    if refused and not done.sessions and len(refused) == 1:
        raise UsageError(next(iter(done.refused.values())))
    return {"sessions": [*done.sessions], "refused": dict(refused), "note": done.note}


async def list_deleted(client: Client, message: ListDeleted) -> Fields:
    rows = await asyncio.to_thread(client.runtime.store.deleted)
    return {
        "list": [
            {"id": one.id, "title": info.title, "deleted": one.at, "records": info.records}
            for one, info in rows
        ]
    }


async def archive(client: Client, message: ArchiveSession) -> Fields:
    store = client.runtime.store
    store.path_of(message.session)
    content = partial(_archived, store.folder, partial(store.export, message.session))
    return {"href": client.offer(archive_name(message.session), content)}


class _Export(Protocol):
    def __call__(self, out: BinaryIO) -> int: ...


def _archived(folder: Path, export: _Export) -> Iterator[bytes]:
    """The archive in pieces, made on disk while it is fetched: however large it is, it takes little memory."""
    with tempfile.TemporaryFile(dir=folder) as out:
        export(out)
        out.seek(0)
        while piece := out.read(_PIECE):
            yield piece


async def import_archive(client: Client, message: ImportSession) -> Fields:
    store = client.runtime.store
    with client.uploaded() as file:
        made = await asyncio.to_thread(store.import_session, file, called="the file")
    return {"session": made.session, "foreign": made.foreign, "left_out": sum(made.left_out.values())}


# --- within one -------------------------------------------------------------------------------------------


async def find_text(client: Client, message: Find) -> Fields:
    session = client.watched()
    records = session.records(0)
    until = len(records) if message.at is None else message.at

    def look() -> list[Place]:
        directory, agent = session.journal.parent, message.agent or ""
        return [*find(records[:until], message.text, agent=agent, whose=message.whose, directory=directory)]

    places = await asyncio.to_thread(look)
    return {"count": len(places), "list": [_shown(one) for one in places[:_PLACES]]}


def _shown(place: Place) -> JSON:
    fields: dict[str, JSON] = asdict(place)
    return {name: visible(value) if isinstance(value, str) else value for name, value in fields.items()}
