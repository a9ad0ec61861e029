"""Records as wire messages, made once for all clients of a session, and not before they are needed.

Rendering Markdown is the most expensive part of showing a session. Fifty clients of one session see the same records,
so the newest rendered ones are cached; and a client that shows a window of a long journal requests only what is in its
window, so the rest is not rendered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from iact.core.ports import JSON
from iact.core.records.dialogue import Turn
from iact.core.records.record import Record
from iact.core.views.text import IsAction, looks_like_action
from iact.web.draft import DraftHtml, formatted
from iact.web.ports import Session
from iact.web.records import Fields, bare_message, header, raw_fields, record_message, refused_html
from iact.web.render import NONE, Known
from iact.web.render_pool import RenderPool
from iact.web.render_tasks import draft_html, draft_question, is_short, question
from iact.web.wire.answers import CallMessage, Html

KEPT: Final = 1024
"""How many rendered records of a session are cached."""

_LARGEST: Final = 64 * 1024
"""Characters of HTML beyond which a record is not cached but rendered again each time: these are few, and would fill
the memory."""


@dataclass(slots=True)
class _OfSession:
    """The newest rendered records, and those being rendered, by record number."""

    kept: OrderedDict[int, Fields] = field(default_factory=OrderedDict)
    under_way: dict[int, asyncio.Future[Fields | None]] = field(default_factory=dict)


class RenderCache:
    """Rendered records of every watched session; discarded with the session.

    Short texts are rendered immediately in this process, all others by `pool`. A client's `turn` is its place in the
    queue: it has at most one text being rendered, however many it wants, so that other clients' texts need not wait for
    them.
    """

    def __init__(self, pool: RenderPool | None = None) -> None:
        self._pool = pool or RenderPool()
        self._of: WeakKeyDictionary[Session, _OfSession] = WeakKeyDictionary()

    def close(self) -> None:
        """End the processes; records requested after that are shown as they were written."""
        self._pool.close()

    async def message(self, session: Session, record: Record, turn: asyncio.Lock) -> Fields:
        """The wire message of a record, with its HTML. The caller must not change it."""
        of = self._of_session(session)
        # Another client may be waiting for the same record. If that client leaves, this one takes its place.
        while (waited := of.under_way.get(record.n)) is not None:
            await asyncio.wait([waited])
            made = None if waited.cancelled() else waited.result()
            if made is not None:
                return made
        found = self.at_hand(session, record)
        if found is not None:
            return found
        return _keep(of, session, record, await self._long(session, record, of, turn))

    def at_hand(self, session: Session, record: Record) -> Fields | None:
        """The same, if it costs next to nothing: it is cached, or its text is short."""
        of = self._of_session(session)
        found = of.kept.get(record.n)
        if found is not None:
            of.kept.move_to_end(record.n)
            return found
        if not is_short(record):
            return None
        return _keep(of, session, record, record_message(record, None, *_eyes(session, record)))

    def _of_session(self, session: Session) -> _OfSession:
        of = self._of.get(session)
        if of is None:
            of = self._of[session] = _OfSession()
            self._pool.warm()  # so that the first text with code need not wait for a process
        return of

    async def early(self, record: Record, folder: Path, turn: asyncio.Lock) -> Fields:
        """The wire message of a record whose session in `folder` has not been read yet: without the names of its
        variables, and with calls by aliases that only the session knows left as text."""
        if is_short(record):
            return record_message(record)
        async with turn:
            self._pool.warm()
            answered = await self._pool.render(question(record, folder, looks_like_action, NONE))
        made = {**header(record), **(raw_fields(record) if answered is None else answered)}
        made.pop("seconds", None)
        return made

    async def draft(self, session: Session, agent: str, text: str, turn: asyncio.Lock) -> DraftHtml:
        """The HTML of what an agent is still writing (`web.draft`). Nothing of it is cached."""
        view = session.view
        asked = draft_question(text, view.is_action(agent) or looks_like_action, view.names(agent))
        if asked.is_short:
            return formatted(text, asked.is_action, dict.fromkeys(asked.names))
        async with turn:
            self._pool.warm()
            answered = await self._pool.render(asked)
        return draft_html(answered)

    async def _long(self, session: Session, record: Record, of: _OfSession, turn: asyncio.Lock) -> Fields:
        done = of.under_way[record.n] = asyncio.get_running_loop().create_future()
        made: Fields | None = None
        try:
            async with turn:
                asked = question(record, session.journal.parent, *_eyes(session, record))
                self._pool.warm()
                answered = await self._pool.render(asked)
            made = {**header(record), **(raw_fields(record) if answered is None else answered)}
            made.pop("seconds", None)
            return made
        finally:
            del of.under_way[record.n]
            done.set_result(made)

    async def several(self, session: Session, numbers: Sequence[int], turn: asyncio.Lock) -> list[Html]:
        """The HTML of records, each with `n`, `html`, and `messages` for a turn; numbers beyond the journal are
        skipped."""
        records = session.records()
        found: list[Html] = []
        for n in numbers:
            if 1 <= n <= len(records):
                message = await self.message(session, records[n - 1], turn)
                found.append(html_of(message))
                # Let others have their turn, however much one client wants to see.
                await asyncio.sleep(0)
        return found


def html_of(message: Fields) -> Html:
    """The HTML of a record, from its whole wire message."""
    n, html, called = message["n"], message["html"], message.get("messages")
    assert isinstance(n, int)
    assert isinstance(html, str)
    if not isinstance(called, list):
        return {"n": n, "html": html}
    return {"n": n, "html": html, "messages": [_called(one) for one in called]}


def _called(message: JSON) -> CallMessage:
    assert isinstance(message, dict)
    action, to, html = message["action"], message["to"], message.get("html")
    assert isinstance(action, int)
    assert isinstance(to, str)
    return (
        {"action": action, "to": to, "html": html} if isinstance(html, str) else {"action": action, "to": to}
    )


def _keep(of: _OfSession, session: Session, record: Record, made: Fields) -> Fields:
    refused = session.view.refused(record.n)
    if refused:
        made = {**made, "html": f"{refused_html(refused)}{made['html']}"}
    if len(str(made["html"])) <= _LARGEST:
        of.kept[record.n] = made
        if len(of.kept) > KEPT:
            of.kept.popitem(last=False)
    return made


def bare(session: Session, record: Record) -> Fields:
    """The wire message of a record without HTML, for a client that requests that when the record is in view."""
    if not isinstance(record.content, Turn):
        return bare_message(record)
    return bare_message(record, _eyes(session, record)[0])


def _eyes(session: Session, record: Record) -> tuple[IsAction, Known]:
    """Which words begin an action for the record's agent, and which variables it has."""
    view = session.view
    return view.is_action(record.agent) or looks_like_action, view.names(record.agent)
