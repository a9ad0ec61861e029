"""One exchange between a person and a session, for faces: the message, its events, questions and the answer.

    exchange = await say(session, text)
    async for event in exchange:     # until the root has answered; each record once, in order
        ...                      # `exchange.questions.waiting` are the questions that wait for a person now
    exchange.reply                   # the record of the answer

Questions are answered with `session.clear` and `session.clear_host`; `core.views.question_text` puts them into words.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Final, Literal

from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer
from iact.core.records.dialogue import Reply, Say
from iact.core.records.forms import CHANGE, FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.forms import ANSWER, RESULT
from iact.core.session.hosts import Lasts
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.session.watch import Lagging
from iact.core.views.events import Event, RecordAppended
from iact.core.views.questions import OpenQuestions
from iact.faces.client_tools import called_tool
from iact.faces.live_text import LiveText

_TURN: Final = re.compile(r"(.{1,120})\.([1-9]\d{0,8})", re.ASCII)
_YES: Final = frozenset({"allow", "yes", "y", "true", "approve", "erlauben", "ja", "genehmigen"})
_NO: Final = frozenset({"deny", "no", "n", "false", "reject", "ablehnen", "nein"})
"""What people write for yes and no, in the languages of the page."""


class Exchange:
    """The events of a session from a message to the root's answer."""

    def __init__(self, session: Session, said: Record) -> None:
        self.session = session
        self.said = said
        """The record of the message."""
        self.questions = OpenQuestions(one for one in session.records() if one.n <= said.n)
        """The questions that wait for a person, as of the last record that was yielded."""
        self._reply: Record | None = None
        self._last = said.n

    @property
    def reply(self) -> Record:
        """The record of the answer, once the events have ended."""
        assert self._reply is not None
        return self._reply

    @property
    def asks(self) -> bool:
        """Whether a question waits for a person and all other records have been reported."""
        return bool(self.questions.waiting) and not self.session.records(self._last)

    async def give_up(self) -> None:
        """Stop the work, because no client is listening any more."""
        try:
            if self.session.state.root.active:
                await self.session.cancel("/")
        except IactError:
            return  # it has stopped already

    async def __aiter__(self) -> AsyncGenerator[Event, None]:
        """Yield the session's events. A slow reader may miss transient events, but never a record.

        Raises:
            IactError: the session stopped or was closed before its root answered.
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
        """Yield the session's events until the root has answered, or until it waits for a person and all is reported.

        The root's text is in order with the records (`LiveText`). Text of other agents is left out.

        Raises:
            IactError: as when iterating over the exchange.
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
        """Whether the root is at rest. Its state is ahead of the disk, so it may rest after a later reply than this one."""
        tree = self.session.state
        return self._reply is not None and not tree.root.active and self._last >= tree.records


@dataclass(frozen=True, slots=True)
class SpokenTurn:
    """A message in an open session and its progress, derived only from the session. `said`: the message's record.

    Clients refer to it by an id that contains the session and the record. Nothing is kept in the process, so a server that
    was killed and restarted gives the same answers.
    """

    session: Session
    said: Record

    @property
    def id(self) -> str:
        """The id for clients."""
        return f"{self.session.id}.{self.said.n}"

    @property
    def waiting(self) -> tuple[Record, ...]:
        """The questions of the whole session that wait for a person now."""
        return OpenQuestions(self.session.records()).waiting

    @property
    def reply(self) -> Record | None:
        """The answer, once it is final for this work; None before."""
        tree = self.session.state
        rests = not tree.root.active and len(self.session.records()) >= tree.records
        return reply_among(self.session.records(self.said.n), rests=rests)


async def turn_of(runtime: Runtime, identity: str) -> SpokenTurn:
    """Return the turn with an id. Its session continues if it was interrupted at work.

    Raises:
        UsageError: there is no such turn.
        JournalError: as `Runtime.open`.
    """
    named = _TURN.fullmatch(identity)
    if named is not None and runtime.store.holds(named[1]):
        session = await runtime.open(named[1])
        found = session.records(int(named[2]) - 1)[:1]
        if found and isinstance(found[0].content, Say):
            return SpokenTurn(session, found[0])
    raise UsageError(f"There is no task {identity[:100]!r}.")


def reply_among(records: Sequence[Record], *, rests: bool) -> Record | None:
    """The answer to a message among the records after it. `rests`: whether the root is at rest."""
    # A message to a root at rest means that the work before it had ended.
    later = next((n for n, one in enumerate(records) if _begins(one)), None)
    replies = [one for one in records[:later] if isinstance(one.content, Reply) and one.agent == "/"]
    return replies[-1] if replies and (later is not None or rests) else None


def _begins(record: Record) -> bool:
    return isinstance(record.content, Say) and not record.content.waits


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """A client's answer to a question."""

    question: int
    """The question's record."""
    seen: str
    """The digest of the question as the client was shown it."""
    said: str | None
    """A word or JSON; None is a no, also where any words are an answer."""


async def answer(session: Session, given: Sequence[ClientAnswer]) -> Record:
    """Answer questions. Returns the record of the last answer.

    Raises:
        UsageError: an answer is invalid, or its question no longer waits.
        Changed: a question is not the one that the client was shown.
    """
    # All are read before the first is passed on: one that is invalid stops none of the others halfway.
    questions = [next(iter(session.records(one.question - 1)), None) for one in given]
    decisions = [_decision(question, one.said) for one, question in zip(given, questions, strict=True)]

    record: Record | None = None
    for one, question, decided in zip(given, questions, decisions, strict=True):
        n, seen = one.question, one.seen
        if question is not None and isinstance(question.content, FormAsk):
            action: Literal["accept", "decline"] = "accept" if decided.allow else "decline"
            record = await session.answer_form(n, action, decided.values, seen=seen)
        elif question is not None and isinstance(question.content, HostAsk):
            lasts: Lasts = "session" if decided.remember else "once"
            record = await session.clear_host(n, decided.allow, lasts, seen=seen)
        else:
            kept = "call" if decided.allow and decided.remember else None
            record = await session.clear(n, decided.allow, kept, seen=[seen])
    assert record is not None
    return record


def answer_to(session: Session, question: int) -> Record | None:
    """The answer to the question at a record, if it has one."""
    for record in session.records(question):
        content = record.content
        if isinstance(content, ClearanceAnswer | HostAnswer | FormAnswer) and content.ask == question:
            return record
    return None


@dataclass(frozen=True, slots=True)
class _Decision:
    """What an answer means."""

    allow: bool
    remember: bool = False
    """Whether the same is to be allowed without a question from now on."""
    values: Mapping[str, JSON] = field(default_factory=dict)
    """What was filled into a form. A plain yes leaves every field as it is."""


def is_in_words(question: Record | None) -> bool:
    """Whether an agent asks a person something, so that any text is the answer, also "no"."""
    return question is not None and isinstance(question.content, FormAsk) and question.content.by_agent


def field_for_words(question: Record | None) -> str:
    """The field of a plan's question that a message fills which is neither a yes nor a no; "" if it has none.

    A message can let nothing through in this way: it is what came of the person's step, or what they want changed.
    """
    asked = question.content if question is not None else None
    if not isinstance(asked, FormAsk) or not asked.by_plan:
        return ""
    return CHANGE if asked.accepts else ANSWER.name


def is_verdict(said: str) -> bool:
    """Whether a text says yes or no, and nothing else."""
    try:
        _verdict(said)
    except UsageError:
        return False
    return True


def _decision(question: Record | None, said: str | None) -> _Decision:
    """What a client's answer to a question means.

    Raises:
        UsageError: it is neither a yes nor a no.
    """
    if said is None:
        return _Decision(False)

    if question is not None and called_tool(question) is not None:
        return _Decision(True, values={RESULT.name: said})
    if is_in_words(question) and _as_json(said) is None:
        return _Decision(True, values={ANSWER.name: said})
    field_name = field_for_words(question)
    if field_name and not is_verdict(said):
        return _Decision(True, values={field_name: said})
    return _verdict(said)


def _verdict(said: str) -> _Decision:
    """The yes or no in a word, or in JSON.

    Raises:
        UsageError: it is neither.
    """
    word = said.strip().rstrip(".!").lower()
    if word in _YES | _NO:
        return _Decision(word in _YES)

    found = _as_json(said)
    if found is not None:
        return found
    raise UsageError(
        'The answer to a question is "allow" or "deny", or {"allow": true, "remember": true} as JSON; with "values" for a '
        "form."
    )


def _as_json(said: str) -> _Decision | None:
    """The yes or no in JSON; None if a text is not JSON that says it."""
    try:
        told = json.loads(said)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("allow"), bool):
        return None

    values = told.get("values")
    filled = values if isinstance(values, dict) else {}
    return _Decision(told["allow"], told.get("remember") is True, filled)


async def unattended(exchange: Exchange) -> int:
    """Wait for the answer without a person: every question is answered with no. Returns the number of such questions.

    Raises:
        IactError: as when iterating over the exchange.
    """
    denied: set[int] = set()
    async for _ in exchange:
        for question in exchange.questions.waiting:
            if question.n in denied:
                continue
            with suppress(IactError):  # it was settled in the meantime
                await answer(exchange.session, [ClientAnswer(question.n, "", None)])
                denied.add(question.n)
    return len(denied)


async def say(session: Session, text: str, *, mode: Way = "dialogue", plan_first: bool = False) -> Exchange:
    """Send a message to the root of a session.

    Raises:
        UsageError: as `Session.say`.
    """
    return Exchange(session, await session.say(text, mode=mode, plan_first=plan_first))
