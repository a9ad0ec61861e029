"""Begins the work of a request: in which session, what is said there, and which questions it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from iact.accounts.rights import Principal
from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.consent import question_digest
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.faces.asked_text import is_answer
from iact.faces.client_tools import called_tool
from iact.faces.conversation import ClientAnswer, Exchange, answer, answer_to
from iact.faces.http.access import Access, remembers
from iact.faces.message import question_of, say
from iact.faces.responses import work
from iact.faces.responses.begun import Begun
from iact.faces.responses.given import ClientFields, keep
from iact.faces.responses.output import ResponsePlace, asked_by, place_of, response_with
from iact.faces.responses.terms import AnswerTerms, terms_of
from iact.faces.responses.wire import CreateResponse, InputItem, InputMessage, OutputItem, QuestionAnswer

_NO_MESSAGE = "There is no message: input needs one of the user's."


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a request says that the session does not know yet."""

    messages: Sequence[InputMessage]
    """The user's messages."""
    answers: Sequence[QuestionAnswer]
    """Answers to calls."""

    @property
    def text(self) -> str | None:
        """The text of the only message; None if there are several, or it holds files."""
        if len(self.messages) != 1:
            return None
        parts = work.parts_of(self.messages[0])
        return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else None


async def begin(
    access: Access, request: Request, who: Principal, given: CreateResponse, *, keeps: bool = False
) -> Begun:
    """Start the work of a request. `keeps`: store what is needed to read the response later.

    Raises:
        UsageError: the request is invalid; the message says why.
        HTTPException: the user lacks the right, or the request names something that does not exist.
    """
    if given.conversation is not None or given.prompt is not None:
        raise UsageError(
            "There are no stored conversations and prompts here: leave out conversation and prompt, and name what "
            "goes on by previous_response_id."
        )
    form = (given.text or {}).get("format")
    terms = terms_of(given.model, given.tools, given.tool_choice, form, given.max_output_tokens)
    heard = _heard(given)
    if heard.answers:
        await access.principal(request, "clear")

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(access.runtime(who))
        continued = await _continued(runtime, given, heard.answers)
        if continued is None and not heard.messages:
            raise UsageError(_NO_MESSAGE)

        apart = bool(given.user or given.safety_identifier) or given.store is False
        session = (
            continued.session
            if continued is not None
            else await runtime.open(memory=remembers(who, apart=apart))
        )
        text = heard.text if continued is not None and not heard.answers else None
        asked = _asked_in_words(continued, text) if continued is not None else None
        start: Record | None = None
        if heard.answers:
            answers = [
                ClientAnswer(*question_of(session.id, one.call_id), one.output) for one in heard.answers
            ]
            start = await answer(session, answers)
        elif asked is not None:
            await access.principal(request, "clear")
            # It may have been answered elsewhere by now. That answer stays, and the client reads what followed it.
            start = answer_to(session, asked.n)
            if start is None:
                start = await answer(session, [ClientAnswer(asked.n, question_digest(asked), text or "")])
        if heard.messages and asked is None:
            start = await _say(session, given, terms, heard.messages, known=continued is not None)
        if start is None:
            raise UsageError(_NO_MESSAGE)

        place = ResponsePlace(session.id, start.n)
        fields = ClientFields(
            given.instructions,
            given.metadata or {},
            given.previous_response_id,
            by_call=terms.by_call,
            longest=terms.longest,
        )
        if keeps:
            await asyncio.to_thread(keep, session.journal.parent, start.n, fields)
        return Begun(
            runtime, Exchange(session, start), place, stack.pop_all(), continued is None, terms,
            fields if keeps else None,
        )  # fmt: skip


def _asked_in_words(continued: work.Continued, text: str | None) -> Record | None:
    """The question that a client's message answers, if it does. The client was shown the oldest one of the response that
    it goes on from."""
    shown = [one for one in continued.shown if called_tool(one) is None]
    if text is None or not shown or not is_answer(shown[0], text):
        return None
    return shown[0]


async def _say(
    session: Session, given: CreateResponse, terms: AnswerTerms, news: Sequence[InputMessage], *, known: bool
) -> Record:
    """Send the new messages, with what the client told before where the session does not know it."""
    messages = [one for one in _items(given) if isinstance(one, InputMessage)]
    earlier, told = ([], news) if known else _earlier_and_new(messages)
    names = [tool.name for tool in terms.tools]
    offers = terms.told_tools if tuple(names) != session.state.tools else ""
    before = [given.instructions or "", offers, terms.words]
    return await say(
        session,
        [part for message in told for part in work.parts_of(message)],
        before="\n\n".join(text.strip() for text in before if text.strip()),
        tools=names,
        history=[part for message in earlier for part in work.parts_of(message)],
    )


async def _continued(
    runtime: Runtime, given: CreateResponse, answers: Sequence[QuestionAnswer]
) -> work.Continued | None:
    """The session that a request continues, or None if it starts a new one.

    Raises:
        HTTPException: the request names a response that does not exist.
    """
    previous = given.previous_response_id
    if previous is None and answers:
        previous = asked_by(answers[0].call_id)
    if previous is not None:
        try:
            return await work.continued(runtime, place_of(previous))
        except UsageError as error:
            raise HTTPException(404, str(error)) from error
    named = _last_of_ours(_items(given))
    if named is not None:
        with suppress(UsageError):  # deleted, or another user's: the request contains the whole conversation
            return await work.continued(runtime, place_of(named))
    return None


def _heard(given: CreateResponse) -> _Heard:
    items = _items(given)
    new = items if given.previous_response_id is not None else _said_since(items)
    messages = [one for one in new if isinstance(one, InputMessage) and one.role != "assistant"]
    return _Heard(messages, [one for one in new if isinstance(one, QuestionAnswer)])


def _said_since(items: Sequence[InputItem]) -> Sequence[InputItem]:
    """The new items of a client that sends the whole conversation: those after the last item from this server."""
    ours = (n for n, one in enumerate(items) if _is_ours(one))
    return items[max(ours, default=-1) + 1 :]


def _last_of_ours(items: Sequence[InputItem]) -> str | None:
    """The last response in the items of a client that sends the whole conversation."""
    ours = [one.id for one in items if isinstance(one, OutputItem | InputMessage) and _is_ours(one)]
    return next((found for one in reversed(ours) if (found := response_with(one)) is not None), None)


def _is_ours(item: InputItem) -> bool:
    return isinstance(item, OutputItem) or (isinstance(item, InputMessage) and item.role == "assistant")


def _items(given: CreateResponse) -> Sequence[InputItem]:
    return [InputMessage(role="user", content=given.input)] if isinstance(given.input, str) else given.input


def _earlier_and_new(
    messages: Sequence[InputMessage],
) -> tuple[Sequence[InputMessage], Sequence[InputMessage]]:
    """The messages of a client that sends the whole conversation without known ids: who said what, and the new message.

    Without a message of a model there is no conversation: all of them are the user's, and new.
    """
    if not any(message.role == "assistant" for message in messages):
        return [], messages

    earlier: list[InputMessage] = []
    for message in messages[:-1]:
        earlier += [InputMessage(role="user", content=f"{message.role.capitalize()}:"), message]
    return earlier, messages[-1:]
