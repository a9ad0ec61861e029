"""The work that a request started in a session, until it is answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field

from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.session.events import Event, RecordAppended
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.faces.conversation import Exchange
from iact.faces.failure import Failure, failure_of
from iact.faces.responses.output import ResponsePlace, ending, message_item, question_item, texts


@dataclass(slots=True)
class Begun:
    """The work of a request: the exchange, the place of its response, and what keeps the session open."""

    runtime: Runtime
    exchange: Exchange
    place: ResponsePlace
    held: AsyncExitStack
    new: bool
    records: list[Record] = field(default_factory=list)
    told: bool = False
    """Whether the end was reported to the client."""

    @property
    def session(self) -> Session:
        """The session of the exchange."""
        return self.exchange.session

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events until the root has answered, or until it waits for a person and all is reported."""
        if self.exchange.questions.waiting:
            return
        async with aclosing(self.exchange.until_asked()) as events:
            async for event in events:
                if isinstance(event, RecordAppended):
                    self.records.append(event.record)
                yield event

    @property
    def failure(self) -> Failure | None:
        """Why there is no answer, once the events have ended; None if there is one, or a person is asked."""
        if self.exchange.questions.waiting:
            return None
        return failure_of(self.exchange.reply)

    def output(self) -> tuple[list[dict[str, JSON]], str, dict[str, JSON]]:
        """Return the items, the status, and further fields about the end."""
        items = [message_item(self.place, n, text) for n, text in enumerate(texts(self.records))]
        waiting = self.exchange.questions.waiting
        if waiting:
            items += [question_item(self.session.id, one) for one in waiting]
            return items, "completed", {}
        status, ended = ending(self.exchange.reply)
        return items, status, ended

    async def close(self, *, keep: bool) -> None:
        """Release the session. A session that should not be kept is moved to the trash."""
        if not keep and self.new and not self.exchange.questions.waiting:
            await self.runtime.delete([self.session.id])
        await self.held.aclose()

    async def leave(self, *, keep: bool = True, goes_on: bool = False) -> None:
        """Handle the end of the connection: stop unfinished work unless it `goes_on`. `keep`: as in `close`."""
        try:
            if not self.told and not goes_on:
                await self.exchange.give_up()
        finally:
            await self.close(keep=keep or not self.told)
