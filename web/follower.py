"""Follows one session for one client: its records in order, and what happens live.

All that is stored for a client is two record numbers: it has every record from one to the other. The follower enters
`watch` first and then reads the journal up to now, so there is no gap; records that the watch repeats are dropped by
number, so none comes twice. A client that shows the newest part of a session gets that first, then the earlier records
from there backwards, while news continues. A client that reads slowly delays only its own follower: the session's
bounded queue for it overflows, and the follower starts over from the journal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from iact.accounts.rights import Role
from iact.core.errors import IactError
from iact.core.records.control import SetIntent, SetModels
from iact.core.records.dialogue import Reply, Say, Turn
from iact.core.records.record import Record, timestamp
from iact.core.records.session import Open
from iact.core.session.models import model_prices, small_models
from iact.core.views.events import (
    Activity,
    Delta,
    Event,
    NoticeEvent,
    OutputEvent,
    RecordAppended,
    TreeChanged,
)
from iact.core.views.view import NodeView
from iact.web.outbox import Outbox
from iact.web.ports import Prices, Session
from iact.web.records import Fields, bare_message
from iact.web.render_cache import RenderCache, bare, html_of
from iact.web.render_tasks import is_short
from iact.web.stored_session import StoredSession
from iact.web.wire import news
from iact.web.wire.answers import Html

_log = logging.getLogger("iact.web")

NEWEST: Final = 150
"""How many records a lazy client gets with their HTML: the part that it shows first."""

ENOUGH: Final = 30
"""How many messages of the shown agent are among the first records that a client gets, …"""

_FARTHEST: Final = 2_000
"""… if they are within this many records."""

TOGETHER: Final = 1_000
"""How many records without HTML go in one message."""

_SLICE: Final = 40
"""How many records are prepared before others have their turn."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The records that a client has, all from `first` to `since`, and how it wants the others."""

    since: int = 0
    first: int = 1
    path: str = "/"
    """The agent that it shows."""
    lazy: bool = False
    """Whether it wants the newest first, and most HTML only on request."""
    early: dict[int, Fields] = field(default_factory=dict)
    """How records were shown before the session was read, by number."""
    digest: str = ""
    """The digest that the newest of them must then have; empty: any."""


class Follower:
    """Follows one session for one client. `turn`: the client's place in the queue for rendering.

    `prices`: what tokens cost by the settings, if known. `role`: the client's role in the session; `owner`: the owner's
    name, if that is another user.
    """

    def __init__(
        self,
        outbox: Outbox,
        session: Session,
        cursor: Cursor,
        rendered: RenderCache,
        *,
        turn: asyncio.Lock,
        prices: Prices | None = None,
        role: Role = "owner",
        owner: str = "",
    ) -> None:
        self._outbox = outbox
        self._session = session
        self._rendered = rendered
        self._turn = turn
        self._prices = prices
        self._role = role
        self._owner = owner
        self._cursor = cursor

        # What the client has of another session, or of one that was cut off since, is of no use.
        last = _last(session)
        is_of_this_session = cursor.since <= last
        if is_of_this_session and cursor.digest:
            is_of_this_session = session.records(cursor.since - 1)[0].digest == cursor.digest

        self._since = cursor.since if is_of_this_session else 0
        """The last record that the client has, and below the first one: it has all in between."""
        self._first = min(cursor.first, self._since) if cursor.lazy else 1
        self._bare_until = last - NEWEST if cursor.lazy else 0
        """The last record that is sent without HTML."""
        self._corrected = False
        """Whether what was shown before the session was read has been completed."""
        self._unformatted: list[Record] = []
        """Records among the first ones sent whose HTML was not made yet."""

    async def run(self) -> None:
        """Pass on everything until the session is closed, the client leaves, or this is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            await self._run(tasks)

    async def _run(self, tasks: asyncio.TaskGroup) -> None:
        earlier: asyncio.Task[None] | None = None
        while True:
            try:
                async with self._session.watch() as events:
                    # Later records come in their places between the events: a text that was written before a record
                    # must not arrive after it, because nothing would end it.
                    before = self._session.records()
                    await self._send_session()
                    await self._send_newest(before)
                    await self._send_apart()
                    await self._send_tree(self._session.tree())
                    await self._send_failure()
                    await self._catch_up(len(before))
                    earlier = earlier or tasks.create_task(self._send_earlier())
                    async for event in events:
                        await self._pass_on(event)
            except IactError as error:
                _log.info("A client fell behind and starts over at record %d (%s).", self._since, error)
                continue

            await earlier
            if not isinstance(self._session, StoredSession):
                await self._outbox.send({"type": "notice", "text": "This session was closed on the server."})
            return

    async def _pass_on(self, event: Event) -> None:
        match event:
            case RecordAppended(record):
                await self._new_record(record)
            case Delta(agent, text, restart, thought):
                delta: news.DeltaNews = {"type": "delta", "agent": agent, "text": text}
                if restart:
                    delta["restart"] = True
                if thought:
                    delta["thought"] = True
                await self._outbox.send(delta)
            case Activity():
                await self._outbox.send(_activity(event))
            case OutputEvent(agent, call, text):
                await self._outbox.send({"type": "output", "agent": agent, "call": call, "text": text})
            case TreeChanged(nodes):
                await self._send_tree(nodes)
            case NoticeEvent(text):
                await self._notice(text)

    async def _notice(self, text: str) -> None:
        failure = self._session.failure
        if failure is not None and str(failure) == text:
            await self._send_failure()
        else:
            await self._outbox.send({"type": "notice", "text": text})

    async def _send_failure(self) -> None:
        """Report why the session has stopped, also to a client that connects later."""
        failure = self._session.failure
        if failure is not None:
            await self._outbox.send({"type": "notice", "level": "error", "text": str(failure)})

    async def _new_record(self, record: Record) -> None:
        if record.n <= self._since:
            return
        await self._catch_up(record.n)
        # A session may be followed before its first record is durable, which says which models are small.
        if isinstance(record.content, Open | SetIntent | SetModels):
            await self._send_session()

    async def _send_newest(self, records: Sequence[Record]) -> None:
        """Send what a new lazy client shows first, without waiting for texts that take long to render."""
        if not self._cursor.lazy or self._since or not records:
            return

        begin = _beginning(records, self._cursor.path)
        messages: list[Fields] = []
        for record in records[begin:]:
            is_new = record.n > len(records) - NEWEST
            message: Fields | None = None
            if is_new or _speaks(record, self._cursor.path):
                message = self._rendered.at_hand(self._session, record)
                if message is None:
                    self._unformatted.append(record)

            messages.append(message or bare(self._session, record))
            await _make_way(len(messages))

        await self._outbox.send(self._with_apart(messages, records, begin))
        self._first = begin + 1
        self._since = len(records)

    def _with_apart(self, messages: list[Fields], records: Sequence[Record], begin: int) -> news.RecordsNews:
        """A message of records, with those of the first `begin` that something still depends on."""
        if not begin:
            return {"type": "records", "list": messages}

        # The first record says what the session is; each number once.
        open_ends = (n for n in self._session.view.open_ends if n <= begin)
        numbers = dict.fromkeys((1, *open_ends))
        apart = [bare(self._session, records[n - 1]) for n in numbers]

        return {"type": "records", "list": messages, "apart": apart}

    async def _send_apart(self) -> None:
        """Send what only the session knows to a client that saw its end before it was read."""
        if not self._cursor.digest or not self._since or self._corrected:
            return

        self._corrected = True
        records = self._session.records()
        await self._outbox.send(self._with_apart([], records, self._first - 1))

    async def _correct(self) -> None:
        """Send records again whose HTML is different now that the session has been read."""
        if not self._since:
            return

        changed: list[Html] = []
        for n, early in list(self._cursor.early.items()):
            record = self._session.records(n - 1)[0]
            message = await self._rendered.message(self._session, record, self._turn)
            if (message["html"], message.get("messages")) != (early["html"], early.get("messages")):
                changed.append(html_of(message))
            await asyncio.sleep(0)

        if changed:
            await self._outbox.send({"type": "rendered", "list": changed})

    async def _send_earlier(self) -> None:
        """Send the earlier records, from there backwards, after the newest are rendered in full."""
        await self._correct()
        for record in self._unformatted:
            await self._rendered.message(self._session, record, self._turn)

        records = self._session.records()
        while self._first > 1:
            begin = max(0, self._first - 1 - TOGETHER)
            messages: list[Fields] = []
            for record in records[begin : self._first - 1]:
                messages.append(bare(self._session, record))
                await _make_way(len(messages))

            await self._outbox.send({"type": "records", "list": messages})
            self._first = begin + 1

    async def _catch_up(self, last: int) -> None:
        """Send the records that are missing, up to number `last`."""
        missing = max(0, last - self._since)
        records = self._session.records(self._since)[:missing]

        old = [record for record in records if record.n <= self._bare_until]
        for start in range(0, len(old), TOGETHER):
            await self._send_together(old[start : start + TOGETHER])

        for record in records[len(old) :]:
            await self._send_record(record)
            await asyncio.sleep(0)

    async def _send_record(self, record: Record) -> None:
        await self._outbox.send_record(await self._rendered.message(self._session, record, self._turn))
        self._since = record.n

    async def _send_together(self, records: Sequence[Record]) -> None:
        await self._outbox.send(
            {"type": "records", "list": [bare(self._session, record) for record in records]}
        )
        self._since = records[-1].n
        await asyncio.sleep(0)

    async def _send_session(self) -> None:
        session = self._session
        is_stored = isinstance(session, StoredSession)
        message: news.SessionNews = {
            "type": "session",
            "id": session.id,
            "since": self._since,
            "now": timestamp(datetime.now(UTC)),
            "intent": session.intent,
            "levels": dict(session.levels),
            "model": session.model_label,
            # Only the owner may know where it is on the server.
            "journal": str(session.journal) if self._role == "owner" else "",
            "last": _last(session),
            "readonly": self._role == "reader" or is_stored,
            "small": sorted(small_models(session.records())),
        }
        if self._role != "owner":
            message["role"] = self._role
            message["owner"] = self._owner

        prices = self._priced()
        if prices is not None:
            message["prices"] = _price_fields(prices)

        if isinstance(session, StoredSession) and session.example:
            message["example"] = True
        if isinstance(session, StoredSession) and session.foreign:
            message["foreign"] = session.foreign

        await self._outbox.send(message)

    def _priced(self) -> Prices | None:
        """What tokens cost here: the prices that the session recorded, before those of the settings."""
        recorded = {
            name: Prices(price.prompt, price.cached, price.completion)
            for name, price in model_prices(self._session.records()).items()
        }
        if not recorded:
            return self._prices

        general = self._prices or Prices(0.0, 0.0, 0.0)
        return replace(general, models={**general.models, **recorded})

    async def _send_tree(self, nodes: tuple[NodeView, ...]) -> None:
        message: news.TreeNews = {
            "type": "tree",
            "nodes": [node_fields(node) for node in nodes],
            "modules": self._session.modules_running,
            "lockdown": self._session.view.lockdown,
        }
        budget = self._session.view.budget
        if budget is not None:
            message["budget"] = {
                "tokens": budget.tokens,
                "used": budget.used,
                "exhausted": budget.exhausted,
            }
            if budget.money is not None:
                message["budget"] |= {"cost": budget.cost, "money": budget.money}

        await self._outbox.send(message)


async def show_end(
    outbox: Outbox,
    name: str,
    records: Sequence[Record],
    cursor: Cursor,
    rendered: RenderCache,
    folder: Path,
    turn: asyncio.Lock,
    *,
    readonly: bool,
) -> Cursor:
    """Show the newest records of a session that has not been read yet. Returns what the client then has.

    Nothing else is known about it yet: neither what its agents are doing, nor what is allowed.
    """
    shown = records[_beginning(records, cursor.path) :]
    last = shown[-1]

    early: dict[int, Fields] = {}
    messages: list[Fields] = []
    for record in shown:
        is_new = record.n > last.n - NEWEST
        is_wanted = is_new or _speaks(record, cursor.path)
        if is_wanted and is_short(record):
            early[record.n] = await rendered.early(record, folder, turn)
        messages.append(early.get(record.n) or bare_message(record))
        await _make_way(len(messages))

    await outbox.send(
        {
            "type": "session",
            "id": name,
            "since": 0,
            "now": timestamp(datetime.now(UTC)),
            "last": last.n,
            "readonly": readonly,
            "opening": True,
        }
    )
    await outbox.send({"type": "records", "list": messages})

    return replace(cursor, since=last.n, first=shown[0].n, early=early, digest=last.digest)


async def _make_way(prepared: int) -> None:
    """Let others have their turn after every `_SLICE` records that were prepared."""
    if prepared % _SLICE == 0:
        await asyncio.sleep(0)


def _beginning(records: Sequence[Record], path: str) -> int:
    """The index where the newest records begin, with enough of the messages of an agent's dialogue."""
    begin = max(0, len(records) - NEWEST)
    farthest = max(0, len(records) - _FARTHEST)
    messages = sum(_speaks(record, path) for record in records[begin:])

    for place in range(begin - 1, farthest - 1, -1):
        if messages >= ENOUGH:
            break
        if _speaks(records[place], path):
            begin = place
            messages += 1

    return begin


def _speaks(record: Record, path: str) -> bool:
    return record.agent == path and isinstance(record.content, Say | Turn | Reply)


def _activity(event: Activity) -> news.ActivityNews:
    """Fields without information are left out, except that an empty `state` means that nothing is done any more."""
    fields: news.ActivityNews = {
        "type": "activity",
        "agent": event.agent,
        "state": event.state,
        "since": event.since,
    }

    if event.until:
        fields["until"] = event.until
    if event.attempt:
        fields["attempt"] = event.attempt
    if event.of:
        fields["of"] = event.of
    if event.why:
        fields["why"] = event.why

    return fields


def _price_fields(prices: Prices) -> news.Prices:
    return {
        "prompt": prices.prompt,
        "cached": prices.cached,
        "completion": prices.completion,
        "models": {name: _price_fields(model) for name, model in prices.models.items()},
    }


def _last(session: Session) -> int:
    records = session.records(0)
    return records[-1].n if records else 0


def node_fields(view: NodeView) -> news.Node:
    """One node of a `tree` message. An agent that waits for children names them, and for how many it waits in total.

    An agent that works on a budget has `allowance` and `left`, in tokens. `calls`: records of the function calls that
    run for it; `queued`: records of messages from a person that it has not begun to answer.
    """
    fields: news.Node = {
        "path": view.path,
        "name": view.name,
        "caller": view.caller,
        "kind": view.kind,
        "state": view.state,
        "paused": view.paused,
        "doing": view.doing,
        "turns": view.turns,
        "model": view.model,
        "prompt_tokens": view.prompt_tokens,
        "cached_tokens": view.cached_tokens,
        "completion_tokens": view.completion_tokens,
        "record": view.record,
    }

    if view.ended:
        fields["ended"] = view.ended
    if view.awaited:
        fields["awaited"] = list(view.awaited)
        fields["awaited_of"] = view.awaited_of
    if view.allowance:
        fields["allowance"] = view.allowance
        fields["left"] = view.left
        fields["lent"] = view.lent
    if view.calls:
        fields["calls"] = list(view.calls)
    if view.queued:
        fields["queued"] = list(view.queued)

    return fields
