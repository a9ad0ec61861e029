"""One exchange of a person in a session, as a face needs it: said, watched, asked about and answered.

    exchange = await say(session, text)
    async for event in exchange:     # until the root has answered; each record once, in order
        ...                      # `exchange.questions.waiting` is what a person is asked by now
    exchange.reply                   # the record of the answer

Questions are answered with `session.clear` and `session.clear_host`; `core.session.question_text` has them in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.dialogue import Reply, Say
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.events import Event, RecordAppended
from iact.core.session.questions import OpenQuestions
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.session.watch import Lagging
from iact.faces.live_text import LiveText

_TURN: Final = re.compile(r"(.{1,120})\.([1-9]\d{0,8})", re.ASCII)
_YES: Final = frozenset({"allow", "yes", "y", "true", "approve"})
_NO: Final = frozenset({"deny", "no", "n", "false", "reject"})


class Exchange:
    """What happens in a session from a message until the root's answer to it."""

    def __init__(self, session: Session, said: Record) -> None:
        self.session = session
        self.said = said
        """The record of the message."""
        self.questions = OpenQuestions(one for one in session.records() if one.n <= said.n)
        """What waits for a person, as of the record that was given last."""
        self._reply: Record | None = None
        self._last = said.n

    @property
    def reply(self) -> Record:
        """The record of the answer, once the events have ended."""
        assert self._reply is not None
        return self._reply

    @property
    def asks(self) -> bool:
        """Whether a person is asked something and nothing else is to be told by now."""
        return bool(self.questions.waiting) and not self.session.records(self._last)

    async def give_up(self) -> None:
        """Nobody listens any more: what was begun is ended."""
        try:
            if self.session.state.root.active:
                await self.session.cancel("/")
        except IactError:
            return  # it has stopped already

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        """The session's events. Whoever is too slow misses passing ones, and no record.

        Raises:
            IactError: the session stopped, or was closed, before its root had answered.
        """
        while True:
            async with self.session.watch() as events:
                for record in self.session.records(self._last):
                    yield self._taken(record)
                if self._ended:
                    return
                try:
                    async for event in events:
                        if not isinstance(event, RecordAppended):
                            yield event
                        elif event.record.n > self._last:
                            yield self._taken(event.record)
                            if self._ended:
                                return
                except Lagging:
                    continue
            await self.session.answer(self.said.n)

    async def until_asked(self) -> AsyncGenerator[Event, None]:
        """The session's events until the root has answered, or waits for a person and nothing else is to be told; text of
        the root's in its place among the records (`LiveText`), and of no other agent.

        Raises:
            IactError: as of all events.
        """
        live = LiveText(self.session, self.said.n)
        if self.asks:
            return
        async with aclosing(aiter(self)) as events:
            async for event in events:
                for one in live.take(event):
                    yield one
                if isinstance(event, RecordAppended) and self.asks:
                    return

    def _taken(self, record: Record) -> RecordAppended:
        self._last = record.n
        self.questions.add(record)
        if isinstance(record.content, Reply) and record.agent == "/":
            self._reply = record
        return RecordAppended(record)

    @property
    def _ended(self) -> bool:
        """Whether the root rests. Its state is ahead of what is on disk: it may rest after a later reply than this one."""
        tree = self.session.state
        return self._reply is not None and not tree.root.active and self._last >= tree.records


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A message in an open session and what became of it, told from the session alone. `said`: its record.

    A client names it by an id that holds the session and the record, so nothing of it is kept in the process: a server
    that was killed and started again tells the same.
    """

    session: Session
    said: Record

    @property
    def id(self) -> str:
        """What a client knows it by."""
        return f"{self.session.id}.{self.said.n}"

    @property
    def waiting(self) -> tuple[Record, ...]:
        """The questions that wait for a person now, of the whole session."""
        return OpenQuestions(self.session.records()).waiting

    @property
    def reply(self) -> Record | None:
        """The answer, once there is one that nothing of the same work can replace."""
        tree = self.session.state
        rests = not tree.root.active and len(self.session.records()) >= tree.records
        return reply_among(self.session.records(self.said.n), rests=rests)


async def turn_of(runtime: Runtime, identity: str) -> SpokenTurn:
    """The turn with an id; its session goes on if it was cut off at work.

    Raises:
        UsageError: there is none.
        JournalError: as of `Runtime.open`.
    """
    named = _TURN.fullmatch(identity)
    if named is not None and runtime.store.holds(named[1]):
        session = await runtime.open(named[1])
        found = session.records(int(named[2]) - 1)[:1]
        if found and isinstance(found[0].content, Say):
            return SpokenTurn(session, found[0])
    raise UsageError(f"There is no task {identity[:100]!r}.")


def reply_among(records: Sequence[Record], *, rests: bool) -> Record | None:
    """The answer to a message among the records behind it. `rests`: whether the root is at work on nothing any more."""
    # What was said to a root at rest ended the work before.
    later = next((n for n, one in enumerate(records) if _begins(one)), None)
    replies = [one for one in records[:later] if isinstance(one.content, Reply) and one.agent == "/"]
    return replies[-1] if replies and (later is not None or rests) else None


def _begins(record: Record) -> bool:
    return isinstance(record.content, Say) and not record.content.waits


async def answer(session: Session, given: Sequence[tuple[int, str]]) -> Record:
    """Answer questions, each by the number of its record and in a word, or as JSON; gives the record of the last answer.

    Raises:
        UsageError: one is no answer, or its question does not wait any more.
    """
    record: Record | None = None
    for number, said, (allow, remember) in [(number, said, _verdict(said)) for number, said in given]:
        question = next(iter(session.records(number - 1)), None)
        if question is not None and isinstance(question.content, FormAsk):
            record = await session.answer_form(number, "accept" if allow else "decline", _values(said))
        elif question is not None and isinstance(question.content, HostAsk):
            record = await session.clear_host(number, allow, "session" if remember else "once")
        else:
            record = await session.clear(number, allow, "call" if allow and remember else None)
    assert record is not None
    return record


def _verdict(said: str) -> tuple[bool, bool]:
    """Whether it is allowed, and whether that is to be remembered."""
    word = said.strip().lower()
    if word in _YES | _NO:
        return word in _YES, False
    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        told = None
    if isinstance(told, dict) and isinstance(told.get("allow"), bool):
        return told["allow"], told.get("remember") is True
    raise UsageError(
        'The answer to a question is "allow" or "deny", or {"allow": true, "remember": true} as JSON; with "values" for a '
        "form."
    )


def _values(said: str) -> Mapping[str, JSON]:
    """What was filled in; a bare yes leaves every field as it is."""
    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        return {}
    values = told.get("values") if isinstance(told, dict) else None
    return values if isinstance(values, dict) else {}


async def unattended(exchange: Exchange) -> int:
    """Wait for the answer where nobody is there: what a person is asked is answered with no. Gives how often.

    Raises:
        IactError: as of the exchange's events.
    """
    denied: set[int] = set()
    async for _ in exchange:
        for question in exchange.questions.waiting:
            if question.n not in denied:
                denied.add(question.n)
                with suppress(IactError):  # it was settled meanwhile
                    await answer(exchange.session, [(question.n, "deny")])
    return len(denied)


async def say(session: Session, text: str, *, mode: Way = "dialogue", plan_first: bool = False) -> Exchange:
    """Say something to the root of a session.

    Raises:
        UsageError: as `Session.say`.
    """
    return Exchange(session, await session.say(text, mode=mode, plan_first=plan_first))
