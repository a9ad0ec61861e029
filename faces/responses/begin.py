"""Begins the work of a request: in which session, what is said there, and which questions it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request

from iact.accounts.rights import Principal, Words
from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.consent import question_digest
from iact.core.views.questions import OpenQuestions
from iact.faces.asked_text import is_answer, shown_question
from iact.faces.client_tools import called_tool
from iact.faces.conversation import ClientAnswer, Exchange, answer, answer_to
from iact.faces.http.access import Access, remembers
from iact.faces.message import question_of, say, shown_by
from iact.faces.responses import work
from iact.faces.responses.begun import Begun
from iact.faces.responses.given import ClientFields, keep
from iact.faces.responses.output import ResponsePlace, asked_by, place_of, response_with
from iact.faces.responses.terms import AnswerTerms, terms_of
from iact.faces.responses.wire import CreateResponse, InputItem, InputMessage, OutputItem, QuestionAnswer
from iact.faces.trace import traceparent_of

_NO_MESSAGE = "There is no message: input needs one of the user's."
_FORM_IN_BACKGROUND = "The form of an answer is checked while its client waits for it: leave out background, or the format of the answer."
_WHICH = "Several questions wait: answer each one by its call_id, with a function_call_output."


@dataclass(frozen=True, slots=True)
class _Heard:
    """What a request says that the session does not know yet."""

    messages: Sequence[InputMessage]
    """The user's messages."""
    answers: Sequence[QuestionAnswer]
    """Answers to calls."""

    @property
    def text(self) -> str | None:
        """The user's text, if it is all that is said; None if there are several messages, or files in it."""
        if len(self.messages) != 1 or self.messages[0].role != "user":
            return None
        parts = work.parts_of(self.messages[0])
        return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else None


async def begin(
    access: Access,
    request: Request,
    who: Principal,
    given: CreateResponse,
    *,
    keeps: bool = False,
    shown: str | None = None,
) -> Begun:
    """Start the work of a request. `keeps`: store what is needed to read the response later.

    `shown`: the id of the question that the client was shown last, if its request says it.

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
    if terms.form is not None and given.background:
        raise UsageError(_FORM_IN_BACKGROUND)
    heard = _heard(given)
    if heard.answers:
        await access.principal(request, "clear")

    async with AsyncExitStack() as stack:
        runtime = await stack.enter_async_context(access.runtime(who))
        continued = await _continued(runtime, given, heard.answers)
        if continued is None and not heard.messages:
            raise UsageError(_NO_MESSAGE)

        session = await _session(runtime, who, given, continued)
        start: Record | None = None
        if heard.answers:
            start = await _answered(session, heard.answers)
        elif continued is not None:
            meant = _meant(continued, heard.text, shown or _shown(given), by_call=terms.by_call)
            if meant is not None:
                await access.principal(request, "clear")
                start = await _answered_in_words(session, meant)
        if heard.messages and (heard.answers or start is None):
            start = await _say(
                session,
                given,
                terms,
                heard.messages,
                known=continued is not None,
                words=who.words,
                traceparent=traceparent_of(request.headers),
            )
        if start is None:
            raise UsageError(_NO_MESSAGE)

        place = ResponsePlace(session.id, start.n)
        fields = ClientFields(
            given.instructions,
            given.metadata or {},
            given.previous_response_id,
            by_call=terms.by_call,
            in_form=terms.form is not None,
            longest=terms.longest,
        )
        if keeps:
            await asyncio.to_thread(keep, session.journal.parent, start.n, fields)
        return Begun(
            runtime, Exchange(session, start), place, stack.pop_all(), continued is None, terms,
            fields if keeps else None,
        )  # fmt: skip


async def _session(
    runtime: Runtime, who: Principal, given: CreateResponse, continued: work.Continued | None
) -> Session:
    """The session in which a request goes on, or a new one; without memory if what is said is not for the account's."""
    for_others = bool(given.user or given.safety_identifier) or who.words == "none"
    apart = for_others or given.store is False
    if continued is None:
        return await runtime.open(memory=remembers(who, apart=apart))

    session = continued.session
    if apart and not session.memory_off:
        await session.switch_memory(False)
    return session


async def _answered(session: Session, answers: Sequence[QuestionAnswer]) -> Record:
    """Answer questions that were asked by calls. Returns the record of the last answer.

    One that is answered already keeps that answer: a client that tries again reads what followed it.
    """
    before: list[Record] = []
    fresh: list[ClientAnswer] = []
    for one in answers:
        number, seen = question_of(session.id, one.call_id)
        settled = answer_to(session, number)
        if settled is not None:
            before.append(settled)
        else:
            fresh.append(ClientAnswer(number, seen, one.output))
    if fresh:
        return await answer(session, fresh)
    return max(before, key=lambda record: record.n)


async def _answered_in_words(session: Session, meant: ClientAnswer) -> Record | None:
    """Answer a question with a client's message. Returns the record of the answer; None if the question is over.

    A person may have answered it elsewhere by now. That answer stays, and the client reads what followed it. If its time
    was over, or its call has ended, nobody has read the message, and it is to be said.
    """
    if any(one.n == meant.question for one in OpenQuestions(session.records()).waiting):
        return await answer(session, [meant])

    settled = answer_to(session, meant.question)
    if settled is None or settled.text("by") != "user":
        return None
    return settled


def _meant(
    continued: work.Continued, text: str | None, shown: str | None, *, by_call: bool
) -> ClientAnswer | None:
    """The answer that a client's message is, if it is one. `shown`: the id of the question that the client was shown.

    Raises:
        UsageError: several questions were put to the client by calls, and the message names none.
    """
    if text is None:
        return None

    shown = continued.kept.asked or shown
    named = shown_by(shown) if shown else None
    questions = [one for one in continued.shown if called_tool(one) is None]
    if named is not None:
        questions = [one for one in questions if one.n == named.record]

    asked_by_calls = named is None and (by_call or continued.kept.by_call)
    if asked_by_calls and len(questions) > 1 and any(is_answer(one, text) for one in questions):
        raise UsageError(_WHICH)
    if not questions or not is_answer(questions[0], text):
        return None

    # Without an id the client was shown the oldest question of the response that it goes on from.
    seen = named.digest if named is not None else question_digest(questions[0])
    return ClientAnswer(questions[0].n, seen, text)


def _shown(given: CreateResponse) -> str | None:
    """The id of the question that the last message of ours asks, in a request that contains the whole conversation."""
    spoken = [one for one in _items(given) if isinstance(one, InputMessage) and one.role == "assistant"]
    if not spoken:
        return None
    texts = [part for part in work.parts_of(spoken[-1]) if isinstance(part, str)]
    return shown_question(texts[-1]) if texts else None


async def _say(
    session: Session,
    given: CreateResponse,
    terms: AnswerTerms,
    news: Sequence[InputMessage],
    *,
    known: bool,
    words: Words,
    traceparent: str,
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
        words=words,
        traceparent=traceparent,
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
