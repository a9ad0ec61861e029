"""Records as wire messages, made once for all clients of a session, and not before they are needed.

Rendering Markdown is the most expensive part of showing a session. Fifty clients of one session see the same records,
so the newest rendered ones are cached; and a client that shows a window of a long journal requests only what is in its
window, so the rest is not rendered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
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
    """What is cached of one session, by record number."""

    messages: OrderedDict[int, Fields] = field(default_factory=OrderedDict)
    """The newest rendered records."""
    under_way: dict[int, asyncio.Future[Fields | None]] = field(default_factory=dict)
    """Those that are being rendered; None: that was given up."""


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
        cached = self._of_session(session)

        # Another client may be waiting for the same record. If that client leaves, this one takes its place.
        while (waited := cached.under_way.get(record.n)) is not None:
            await asyncio.wait([waited])
            message = None if waited.cancelled() else waited.result()
            if message is not None:
                return message

        message = self.at_hand(session, record)
        if message is None:
            rendered = await self._long(session, record, cached, turn)
            message = _keep(cached, session, record, rendered)
        return message

    def at_hand(self, session: Session, record: Record) -> Fields | None:
        """The same, if it costs next to nothing: it is cached, or its text is short."""
        cached = self._of_session(session)
        message = cached.messages.get(record.n)
        if message is not None:
            cached.messages.move_to_end(record.n)
            return message
        if not is_short(record):
            return None

        rendered = record_message(record, None, *_eyes(session, record))
        return _keep(cached, session, record, rendered)

    def _of_session(self, session: Session) -> _OfSession:
        cached = self._of.get(session)
        if cached is None:
            cached = _OfSession()
            self._of[session] = cached
            self._pool.warm()  # so that the first text with code need not wait for a process
        return cached

    async def early(self, record: Record, folder: Path, turn: asyncio.Lock) -> Fields:
        """The wire message of a record whose session in `folder` has not been read yet: without the names of its
        variables, and with calls by aliases that only the session knows left as text."""
        if is_short(record):
            return record_message(record)

        async with turn:
            self._pool.warm()
            fields = await self._pool.render(question(record, folder, looks_like_action, NONE))
        return _whole(record, fields)

    async def draft(self, session: Session, agent: str, text: str, turn: asyncio.Lock) -> DraftHtml:
        """The HTML of what an agent is still writing (`web.draft`). Nothing of it is cached."""
        view = session.view
        task = draft_question(text, view.is_action(agent) or looks_like_action, view.names(agent))
        if task.is_short:
            return formatted(text, task.is_action, dict.fromkeys(task.names))

        async with turn:
            self._pool.warm()
            fields = await self._pool.render(task)
        return draft_html(fields)

    async def _long(self, session: Session, record: Record, cached: _OfSession, turn: asyncio.Lock) -> Fields:
        """Have a record rendered by another process; meanwhile, other clients wait for the same."""
        done: asyncio.Future[Fields | None] = asyncio.get_running_loop().create_future()
        cached.under_way[record.n] = done
        message: Fields | None = None
        try:
            async with turn:
                task = question(record, session.journal.parent, *_eyes(session, record))
                self._pool.warm()
                fields = await self._pool.render(task)
            message = _whole(record, fields)
            return message
        finally:
            del cached.under_way[record.n]
            done.set_result(message)

    async def several(self, session: Session, numbers: Sequence[int], turn: asyncio.Lock) -> list[Html]:
        """The HTML of records, each with `n`, `html`, and `messages` for a turn; numbers beyond the journal are
        skipped."""
        records = session.records()
        shown: list[Html] = []
        for n in numbers:
            if 1 <= n <= len(records):
                message = await self.message(session, records[n - 1], turn)
                shown.append(html_of(message))
                # Let others have their turn, however much one client wants to see.
                await asyncio.sleep(0)

        return shown


def html_of(message: Fields) -> Html:
    """The HTML of a record, from its whole wire message."""
    n = message["n"]
    html = message["html"]
    calls = message.get("messages")
    assert isinstance(n, int)
    assert isinstance(html, str)

    if not isinstance(calls, list):
        return {"n": n, "html": html}
    return {"n": n, "html": html, "messages": [_call_message(call) for call in calls]}


def _call_message(message: JSON) -> CallMessage:
    assert isinstance(message, dict)
    action = message["action"]
    to = message["to"]
    html = message.get("html")
    assert isinstance(action, int)
    assert isinstance(to, str)

    if not isinstance(html, str):
        return {"action": action, "to": to}
    return {"action": action, "to": to, "html": html}


def _whole(record: Record, fields: Mapping[str, JSON] | None) -> Fields:
    """The wire message of a record, from what a process answered; None: it did not answer in time."""
    message = {**header(record), **(raw_fields(record) if fields is None else fields)}
    message.pop("seconds", None)
    return message


def _keep(cached: _OfSession, session: Session, record: Record, message: Fields) -> Fields:
    """Cache a rendered record, with what the session alone knows of it. Returns the whole message."""
    refused = session.view.refused(record.n)
    if refused:
        message = {**message, "html": f"{refused_html(refused)}{message['html']}"}

    if len(str(message["html"])) <= _LARGEST:
        cached.messages[record.n] = message
        if len(cached.messages) > KEPT:
            cached.messages.popitem(last=False)

    return message


def bare(session: Session, record: Record) -> Fields:
    """The wire message of a record without HTML, for a client that requests that when the record is in view."""
    if not isinstance(record.content, Turn):
        return bare_message(record)
    return bare_message(record, _eyes(session, record)[0])


def _eyes(session: Session, record: Record) -> tuple[IsAction, Known]:
    """Which words begin an action for the record's agent, and which variables it has."""
    view = session.view
    return view.is_action(record.agent) or looks_like_action, view.names(record.agent)
