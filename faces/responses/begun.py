"""The work that a request started in a session, until it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from iact.core.ports import JSON
from iact.core.records.calls import Result
from iact.core.records.record import Record
from iact.core.session.answer_form import AnswerForm
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.events import Event, RecordAppended
from iact.faces.conversation import Exchange
from iact.faces.failure import NOT_IN_FORM, WorkFailure, failure_of
from iact.faces.message import question_id, say
from iact.faces.responses.given import ClientFields, keep
from iact.faces.responses.items import OutputItems, items_of
from iact.faces.responses.output import (
    ResponsePlace,
    asked_in_words,
    call_items,
    clipped,
    ending,
    message_item,
    question_text,
    texts,
)
from iact.faces.responses.terms import AnswerTerms


@dataclass(slots=True)
class Begun:
    """The work of a request: the exchange, the place of its response, and what keeps the session open."""

    runtime: Runtime
    exchange: Exchange
    place: ResponsePlace
    held: AsyncExitStack
    new: bool
    terms: AnswerTerms
    kept: ClientFields | None = None
    """What is stored of the request, if anything is."""
    records: list[Record] = field(default_factory=list)
    told: bool = False
    """Whether the end was reported to the client."""
    answer: str = ""
    """The answer in the form that the client wants, if it wants one."""
    fault: str = ""
    """Why the answer is not of that form."""
    start: Record = field(init=False)
    """The record that the response began with."""

    def __post_init__(self) -> None:
        self.start = self.exchange.said

    @property
    def session(self) -> Session:
        """The session of the exchange."""
        return self.exchange.session

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events until the root has answered, or until it waits for a person and all is reported.

        An answer that is not of the form that the client wants is asked for once more.
        """
        async with aclosing(self._until_asked()) as events:
            async for event in events:
                yield event
        form = self.terms.form
        if form is not None and self._answered:
            async with aclosing(self._in_form(form)) as events:
                async for event in events:
                    yield event

        waiting = self.exchange.questions.waiting
        asked = None if self.terms.by_call else asked_in_words(self.session.id, waiting)
        if asked is not None and self.kept is not None:
            await self._keep(asked=question_id(self.session.id, asked))

    async def _in_form(self, form: AnswerForm) -> AsyncGenerator[Event, None]:
        """Read the answer. Yield the events of a second one, if it is not of the form."""
        self.answer, fault = form.read(self.exchange.reply.body)
        if fault:
            said = await say(self.session, [form.again(fault)], traceparent=self.session.state.traceparent)
            self.exchange = Exchange(self.session, said)
            await self._keep(again=said.n)
            async with aclosing(self._until_asked()) as events:
                async for event in events:
                    yield event

            # What was wrong with the first answer is not why there is no second one.
            if not self._answered:
                return
            self.answer, self.fault = form.read(self.exchange.reply.body)
        await self._keep(answer=self.answer, fault=self.fault)

    async def _until_asked(self) -> AsyncGenerator[Event, None]:
        if self.exchange.questions.waiting:
            return
        async with aclosing(self.exchange.until_asked()) as events:
            async for event in events:
                if isinstance(event, RecordAppended):
                    self.records.append(event.record)
                yield event

    @property
    def _answered(self) -> bool:
        """Whether the root has answered, instead of a question, a failure or a cancellation."""
        if self.exchange.questions.waiting or failure_of(self.exchange.reply) is not None:
            return False
        status, _ = ending(self.exchange.reply)
        return status != "cancelled"

    async def _keep(self, **became: Any) -> None:
        """Store what the response became, so that it can be read later. `became`: some of the fields."""
        self.kept = replace(self.kept or ClientFields(), **became)
        await asyncio.to_thread(keep, self.session.journal.parent, self.place.record, self.kept)

    @property
    def acted(self) -> bool:
        """Whether tools were called."""
        return any(isinstance(record.content, Result) for record in self.records)

    @property
    def failure(self) -> WorkFailure | None:
        """Why there is no answer, once the events have ended; None if there is one, or a person is asked."""
        if self.exchange.questions.waiting:
            return None
        if self.fault:
            return not_in_form(self.fault)
        return failure_of(self.exchange.reply)

    @property
    def texts(self) -> list[str]:
        """The root's messages, or the answer alone if the client wants it in a form; and the question in words."""
        asked = self.asked
        said, _ = self._said
        return [*said, asked] if asked else said

    @property
    def _said(self) -> tuple[list[str], bool]:
        """What the root said, as much of it as the client wants, and whether something was left out."""
        said = texts(self.records)
        if self.terms.form is not None:
            said = [self.answer] if self.answer else []
        return clipped(said, self.terms.longest)

    @property
    def asked(self) -> str:
        """The question that waits, in words; empty if none does, or the client is asked by calls."""
        if self.terms.by_call:
            return ""
        return question_text(self.session.id, self.start, self.exchange.questions.waiting)

    @property
    def calls(self) -> list[dict[str, JSON]]:
        """The calls that the client is to answer."""
        waiting = self.exchange.questions.waiting
        return call_items(self.session.id, waiting, by_call=self.terms.by_call)

    def output(self) -> tuple[list[dict[str, JSON]], str, dict[str, JSON]]:
        """Return the items, the status, and further fields about the end."""
        items = items_of(self.items(), self.records)
        for text in self.last_texts:
            items.append(message_item(self.place, len(items), text))
        items += self.calls
        return items, *self.ending()

    def items(self) -> OutputItems:
        """Begin the items of the response. What the root says is among them, unless the client wants a form of it."""
        return OutputItems.of(
            self.session, self.start, longest=self.terms.longest, messages=self.terms.form is None
        )

    @property
    def last_texts(self) -> list[str]:
        """What is said when all else is known: the answer in the form that the client wants, and the question in words."""
        said, _ = self._said
        in_form = said if self.terms.form is not None else []
        return [text for text in (*in_form, self.asked) if text]

    def ending(self) -> tuple[str, dict[str, JSON]]:
        """Return the status, and further fields about the end."""
        if self.exchange.questions.waiting:
            return "completed", {}
        status, fields = ending(self.exchange.reply)
        _, cut = self._said
        if status == "completed" and cut:
            return "incomplete", {**fields, "incomplete_details": {"reason": "max_output_tokens"}}
        return status, fields

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


def not_in_form(fault: str) -> WorkFailure:
    """The failure of an answer that is not of the form that the client wants. `fault`: why, as a sentence."""
    return WorkFailure(
        NOT_IN_FORM, f"The answer is not of the form that was asked for, also the second time. {fault}"
    )
