"""One exchange of a person in a session, as a face needs it: said, watched, asked about and answered.

    exchange = await say(session, text)
    async for event in exchange:     # until the root has answered; each record once, in order
        ...                      # `exchange.questions.waiting` is what a person is asked by now
    exchange.reply                   # the record of the answer

Questions are answered with `session.clear` and `session.clear_host`; `core.session.question_text` has them in words.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from iact.core.errors import UsageError
from iact.core.records.dialogue import Reply, Say
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.events import Event, RecordAppended
from iact.core.session.questions import OpenQuestions
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.session.watch import Lagging


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
    name, _, number = identity.rpartition(".")
    if name and number.isdecimal() and runtime.store.holds(name):
        session = await runtime.open(name)
        found = session.records(int(number) - 1)[:1]
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


async def say(session: Session, text: str, *, mode: Way = "dialogue", plan_first: bool = False) -> Exchange:
    """Say something to the root of a session.

    Raises:
        UsageError: as `Session.say`.
    """
    return Exchange(session, await session.say(text, mode=mode, plan_first=plan_first))
