"""One exchange of a person in a session, as a face needs it: said, watched, asked about and answered.

    exchange = await say(session, text)
    async for event in exchange:     # until the root has answered; each record once, in order
        ...                      # `exchange.questions.waiting` is what a person is asked by now
    exchange.reply                   # the record of the answer

Questions are answered with `session.clear` and `session.clear_host`; `core.session.question_text` has them in words.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.events import Event, RecordAppended
from iact.core.session.questions import OpenQuestions
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

    async def __aiter__(self) -> AsyncIterator[Event]:
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


async def say(session: Session, text: str, *, mode: Way = "dialogue", plan_first: bool = False) -> Exchange:
    """Say something to the root of a session.

    Raises:
        UsageError: as `Session.say`.
    """
    return Exchange(session, await session.say(text, mode=mode, plan_first=plan_first))
