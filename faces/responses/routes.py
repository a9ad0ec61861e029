"""The routes: creating, reading and cancelling responses, chat completions, the only model, and the description."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from functools import partial
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.faces.conversation import ClientAnswer, Exchange, answer
from iact.faces.failure import INVALID, failure_from
from iact.faces.http.access import Access, body_of
from iact.faces.http.server import error_response, failure_response
from iact.faces.http.stream import EventResponse
from iact.faces.message import question_of, say
from iact.faces.responses import work
from iact.faces.responses.begun import Begun
from iact.faces.responses.chat import Chats
from iact.faces.responses.description import description
from iact.faces.responses.events import EventStream
from iact.faces.responses.given import ClientFields, keep, kept
from iact.faces.responses.output import (
    ResponsePlace,
    asked_by,
    ending,
    failed_with,
    message_item,
    place_of,
    question_item,
    response_fields,
    response_with,
    texts,
)
from iact.faces.responses.wire import (
    CreateCompletion,
    CreateResponse,
    InputItem,
    InputMessage,
    OutputItem,
    QuestionAnswer,
)
from iact.faces.root_text import TextStream

MODEL: Final = "iact"

_Model = TypeVar("_Model", bound=BaseModel)


def routes(access: Access) -> Sequence[BaseRoute]:
    """See `faces.http.server.Face`."""
    made = _Responses(access)
    return (
        Route("/v1/models", made.models, methods=["GET"]),
        Route("/v1/responses", made.create, methods=["POST"]),
        Route("/v1/responses/{identity}", made.read, methods=["GET"]),
        Route("/v1/responses/{identity}/cancel", made.cancel, methods=["POST"]),
        Route("/v1/chat/completions", made.complete, methods=["POST"]),
        Route("/v1/openapi.json", made.describe, methods=["GET"]),
    )


class _Responses:
    def __init__(self, access: Access) -> None:
        self._access = access
        self._chats = Chats()

    async def models(self, request: Request) -> Response:
        await self._access.principal(request, "list")
        one = {"id": MODEL, "object": "model", "created": 0, "owned_by": "iact"}
        return JSONResponse({"object": "list", "data": [one]})

    async def describe(self, request: Request) -> Response:
        return JSONResponse(description())

    # --- responses ------------------------------------------------------------------------------

    async def create(self, request: Request) -> Response:
        await self._access.principal(
            request, "change"
        )  # before reading any part of an unknown sender's request
        given = await _read(request, CreateResponse)
        if isinstance(given, Response):
            return given
        try:
            begun = await self._begin(request, given, keeps=True)
        except UsageError as error:
            return _usage(error)
        created = int(time.time())
        keep = given.store is not False

        def fields(
            status: str, output: Sequence[dict[str, JSON]], ended: dict[str, JSON] | None = None
        ) -> dict[str, JSON]:
            usage = work.used(begun.records) if status not in ("in_progress", "queued") else None
            return response_fields(
                begun.place, created=created, model=given.model, status=status, output=output, usage=usage,
                previous=given.previous_response_id, ended=ended, instructions=given.instructions,
                metadata=given.metadata, background=given.background is True,
            )  # fmt: skip

        if given.stream:
            goes_on = given.background is True
            return EventResponse(_events(begun, fields), partial(begun.leave, keep=keep, goes_on=goes_on))
        if given.background:
            await begun.held.aclose()
            return JSONResponse(fields("in_progress", []))
        try:
            async for _ in begun.events():
                pass
            items, status, ended = begun.output()
        except BaseException:
            await begun.held.aclose()
            raise
        await begun.close(keep=keep)
        if begun.failure is not None:
            return failure_response(begun.failure)
        return JSONResponse(fields(status, items, ended))

    async def _begin(self, request: Request, given: CreateResponse, *, keeps: bool = False) -> Begun:
        """Start the work of a request. `keeps`: store the client's fields to return them later.

        Raises:
            UsageError: the request is invalid; the message says why.
            HTTPException: the user lacks the right, or the request names something that does not exist.
        """
        if given.tools:
            raise UsageError(
                "Tools of the client's own can't be called from here: iact's agents work with its modules, behind its "
                "gate. Leave out tools."
            )
        if given.conversation is not None or given.prompt is not None:
            raise UsageError(
                "There are no stored conversations and prompts here: leave out conversation and prompt, and name what "
                "goes on by previous_response_id."
            )
        messages = [one for one in _items(given) if isinstance(one, InputMessage)]
        new = _items(given) if given.previous_response_id is not None else _said_since(_items(given))
        answers = [one for one in new if isinstance(one, QuestionAnswer)]
        news = [one for one in new if isinstance(one, InputMessage) and one.role != "assistant"]
        who = await self._access.principal(request, "change")
        if answers:
            await self._access.principal(request, "clear")
        async with AsyncExitStack() as stack:
            runtime = await stack.enter_async_context(self._access.runtime(who))
            session = await _continued(runtime, given, answers)
            known = session is not None
            if session is None:
                if not news:
                    raise UsageError("There is no message: input needs one of the user's.")
                session = await runtime.open()
            start = (
                await answer(
                    session,
                    [ClientAnswer(*question_of(session.id, one.call_id), one.output) for one in answers],
                )
                if answers
                else None
            )
            if news:
                earlier, told = ([], news) if known else _earlier_and_new(messages)
                start = await say(
                    session,
                    [part for message in told for part in work.parts_of(message)],
                    before=given.instructions or "",
                    history=[part for message in earlier for part in work.parts_of(message)],
                )
            if start is None:
                raise UsageError("There is no message: input needs one of the user's.")
            place = ResponsePlace(session.id, start.n)
            if keeps:
                told_again = ClientFields(
                    given.instructions, given.metadata or {}, given.previous_response_id
                )
                await asyncio.to_thread(keep, session.journal.parent, start.n, told_again)
            return Begun(runtime, Exchange(session, start), place, stack.pop_all(), not known)

    async def read(self, request: Request) -> Response:
        who = await self._access.principal(request, "see")
        async with self._access.runtime(who) as runtime:
            try:
                place = place_of(request.path_params["identity"])
                found = await work.stored(runtime, place)
            except UsageError as error:
                raise HTTPException(404, str(error)) from error
            return JSONResponse(await _stored_fields(place, found))

    async def cancel(self, request: Request) -> Response:
        who = await self._access.principal(request, "change")
        async with self._access.runtime(who) as runtime:
            try:
                place = place_of(request.path_params["identity"])
                found = await work.stored(runtime, place)
            except UsageError as error:
                raise HTTPException(404, str(error)) from error
            if found.last and found.session.state.root.active:
                await found.session.cancel("/")
                await found.session.answer(found.start.n)
                found = await work.stored(runtime, place)
            return JSONResponse(await _stored_fields(place, found))

    # --- chat completions -----------------------------------------------------------------------

    async def complete(self, request: Request) -> Response:
        who = await self._access.principal(request, "change")
        given = await _read(request, CreateCompletion)
        if isinstance(given, Response):
            return given
        chat = self._chats.begun(who.user, given)
        try:
            begun = await self._begin(request, chat.request)
        except UsageError as error:
            return _usage(error)
        if given.stream:
            return EventResponse(chat.stream(begun), begun.leave)
        try:
            async for _ in begun.events():
                pass
            failure = chat.failure(begun)
            if failure is not None:
                return failure_response(failure)
            return JSONResponse(chat.completion(begun))
        finally:
            await begun.held.aclose()


async def _events(begun: Begun, fields: Callable[..., dict[str, JSON]]) -> AsyncGenerator[str, None]:
    """Yield the events of a response. `fields`: returns the response, given a status, its items and fields about its end."""
    wire, text = EventStream(begun.place), TextStream()
    yield wire.event("response.created", {"response": fields("in_progress", [])})
    yield wire.event("response.in_progress", {"response": fields("in_progress", [])})
    try:
        async with aclosing(begun.events()) as events, aclosing(wire.texts(events, text)) as lines:
            async for line in lines:
                yield line
        _, status, ended = begun.output()
    except IactError as error:
        status, ended = "failed", {"error": failed_with(failure_from(error))}
    items = [message_item(begun.place, n, one) for n, one in enumerate(text.items)]
    for question in begun.exchange.questions.waiting:
        item = question_item(begun.session.id, question)
        for line in wire.item(len(items), item):
            yield line
        items.append(item)
    begun.told = True
    kind = status if status in ("completed", "incomplete", "failed") else "failed"
    yield wire.event(f"response.{kind}", {"response": fields(status, items, ended)})


async def _continued(
    runtime: Runtime, given: CreateResponse, answers: Sequence[QuestionAnswer]
) -> Session | None:
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


async def _stored_fields(place: ResponsePlace, found: work.Stored) -> dict[str, JSON]:
    given = await asyncio.to_thread(kept, found.session.journal.parent, place.record)
    items = [message_item(place, n, text) for n, text in enumerate(texts(found.records))]
    status, ended = ending(found.reply)
    if found.waiting:
        status = "completed"
        items += [question_item(place.session, one) for one in found.waiting]
    created = int(time.mktime(time.strptime(found.start.at[:19], "%Y-%m-%dT%H:%M:%S"))) - time.timezone
    usage = work.used(found.records) if status != "in_progress" else None
    return response_fields(
        place, created=created, model=MODEL, status=status, output=items, ended=ended, usage=usage,
        previous=given.previous, instructions=given.instructions, metadata=given.metadata,
    )  # fmt: skip


async def _read(request: Request, model: type[_Model]) -> _Model | Response:
    try:
        return model.model_validate_json(await body_of(request))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(one) for one in first["loc"])
        return error_response(
            400, f"{where or 'The body'}: {first['msg']}.", code=INVALID.code, param=where or None
        )


def _usage(error: UsageError) -> Response:
    return failure_response(failure_from(error))
