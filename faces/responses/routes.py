"""The routes: creating, reading and cancelling responses, chat completions, the only model, and the description."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
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
from iact.faces.conversation import Exchange
from iact.faces.failure import INVALID, failure_from
from iact.faces.http.access import Access, body_of
from iact.faces.http.server import error_response, failure_response
from iact.faces.http.stream import EventResponse
from iact.faces.responses import work
from iact.faces.responses.begin import begin
from iact.faces.responses.begun import Begun, not_in_form
from iact.faces.responses.chat import Chats
from iact.faces.responses.description import description
from iact.faces.responses.events import EventStream
from iact.faces.responses.items import OutputItems, items_of
from iact.faces.responses.output import (
    ResponsePlace,
    call_items,
    clipped,
    ending,
    failed_with,
    message_item,
    place_of,
    question_text,
    response_fields,
    texts,
)
from iact.faces.responses.terms import MODELS, UnknownModel
from iact.faces.responses.wire import CreateCompletion, CreateResponse
from iact.faces.usage import used

_Model = TypeVar("_Model", bound=BaseModel)

_FROM_ITS_BEGINNING: Final = (
    "A response is told from its beginning: leave out starting_after. What is finished comes in whole items, so the numbers "
    "of its events are others than before."
)
_FORM_AT_WORK: Final = "The form of this answer is checked while the client that asked for it waits. Ask without stream, or once it has ended."


def routes(access: Access) -> Sequence[BaseRoute]:
    """See `faces.http.server.Face`."""
    made = _Responses(access)
    return (
        Route("/v1/models", made.models, methods=["GET"]),
        Route("/v1/models/{name}", made.model, methods=["GET"]),
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
        return JSONResponse({"object": "list", "data": [_model(one) for one in MODELS]})

    async def model(self, request: Request) -> Response:
        await self._access.principal(request, "list")
        name = request.path_params["name"]
        if name not in MODELS:
            return _usage(UnknownModel(name))
        return JSONResponse(_model(name))

    async def describe(self, request: Request) -> Response:
        return JSONResponse(description())

    # --- responses ------------------------------------------------------------------------------

    async def create(self, request: Request) -> Response:
        # Before any part of an unknown sender's request is read.
        who = await self._access.principal(request, "change")
        given = await _read(request, CreateResponse)
        if isinstance(given, Response):
            return given
        try:
            begun = await begin(self._access, request, who, given, keeps=True)
        except UsageError as error:
            return _usage(error)
        created = int(time.time())
        keep = given.store is not False

        def fields(
            status: str, output: Sequence[dict[str, JSON]], ended: dict[str, JSON] | None = None
        ) -> dict[str, JSON]:
            usage = used(begun.records) if status not in ("in_progress", "queued") else None
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
            return failure_response(begun.failure, acted=begun.acted)
        return JSONResponse(fields(status, items, ended))

    async def read(self, request: Request) -> Response:
        who = await self._access.principal(request, "see")
        wanted = request.query_params.get("stream", "false")
        if wanted not in ("true", "false"):
            return _usage(UsageError("stream is true or false."))
        streams = wanted == "true"
        if streams and "starting_after" in request.query_params:
            return _usage(UsageError(_FROM_ITS_BEGINNING))

        async with AsyncExitStack() as held:
            runtime = await held.enter_async_context(self._access.runtime(who))
            try:
                place = place_of(request.path_params["identity"])
                found = await work.stored(runtime, place)
            except UsageError as error:
                raise HTTPException(404, str(error)) from error
            if not streams:
                return JSONResponse(_stored_fields(place, found))
            if found.at_work and found.kept.in_form:
                return _usage(UsageError(_FORM_AT_WORK))
            return EventResponse(_told_again(runtime, place, found), held.pop_all().aclose)

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
            return JSONResponse(_stored_fields(place, found))

    # --- chat completions -----------------------------------------------------------------------

    async def complete(self, request: Request) -> Response:
        who = await self._access.principal(request, "change")
        given = await _read(request, CreateCompletion)
        if isinstance(given, Response):
            return given
        try:
            chat = self._chats.begun(who.user, given)
            begun = await begin(self._access, request, who, chat.request, shown=chat.shown)
        except ValidationError as error:
            return _invalid(error)
        except UsageError as error:
            return _usage(error)
        if given.stream:
            return EventResponse(chat.stream(begun), begun.leave)
        try:
            async for _ in begun.events():
                pass
            failure = chat.failure(begun)
            if failure is not None:
                return failure_response(failure, acted=begun.acted)
            return JSONResponse(chat.completion(begun))
        finally:
            await begun.held.aclose()


async def _events(begun: Begun, fields: Callable[..., dict[str, JSON]]) -> AsyncGenerator[str, None]:
    """Yield the events of a response. `fields`: returns the response, given a status, its items and fields about its end."""
    wire = EventStream(begun.place)
    output = begun.items()
    yield wire.event("response.created", {"response": fields("in_progress", [])})
    yield wire.event("response.in_progress", {"response": fields("in_progress", [])})
    try:
        async with aclosing(begun.events()) as events:
            async for event in events:
                for line in wire.changed(output, event):
                    yield line
        failure = begun.failure
        status, ended = begun.ending()
        last_texts = begun.last_texts
    except IactError as error:
        failure, status, ended, last_texts = failure_from(error), "failed", {}, []
    if failure is not None:
        status, ended, last_texts = "failed", {**ended, "error": failed_with(failure)}, []

    output.close()
    items = output.items
    for text in last_texts:
        for line in wire.message(len(items), text):
            yield line
        items.append(message_item(begun.place, len(items), text))
    for item in begun.calls if failure is None else []:
        for line in wire.item(len(items), item):
            yield line
        items.append(item)
    begun.told = True
    yield wire.ended(status, fields(status, items, ended))


async def _told_again(
    runtime: Runtime, place: ResponsePlace, found: work.Stored
) -> AsyncGenerator[str, None]:
    """Yield the events of an earlier response, from its beginning to its end; what goes on, as it happens.

    What is finished comes in whole items: the pieces in which it was written are not kept.
    """
    wire = EventStream(place)
    begun = _fields(place, found, status="in_progress", output=[])
    yield wire.event("response.created", {"response": begun})
    yield wire.event("response.in_progress", {"response": begun})

    told = 0
    if found.at_work:
        output = OutputItems.of(found.session, found.start, longest=found.kept.longest)
        try:
            exchange = Exchange(found.session, found.start)
            async with aclosing(exchange.until_asked()) as events:
                async for event in events:
                    for line in wire.changed(output, event):
                        yield line
            told = len(output.items)
            found = await work.stored(runtime, place)
        except IactError as error:
            failure = failure_from(error)
            what: list[JSON] = [*output.items]
            yield wire.ended(
                "failed", {**begun, "status": "failed", "output": what, "error": failed_with(failure)}
            )
            return

    fields = _stored_fields(place, found)
    items, status = fields["output"], fields["status"]
    assert isinstance(items, list)
    for n, item in enumerate(items[told:], told):
        assert isinstance(item, dict)
        for line in wire.item(n, item):
            yield line
    yield wire.ended(str(status), fields)


def _stored_fields(place: ResponsePlace, found: work.Stored) -> dict[str, JSON]:
    given = found.kept
    status, ended = ending(found.reply)
    in_form = bool(given.answer or given.again)
    output = OutputItems.of(found.session, found.start, longest=given.longest, messages=not in_form)
    items = items_of(output, found.records)
    # The first answer was not of the wanted form if there is none here.
    said = [given.answer] if in_form and given.answer else []
    _, cut = clipped(said if in_form else texts(found.records), given.longest)
    said, _ = clipped(said, given.longest)

    if cut and status == "completed":
        status, ended = "incomplete", {**ended, "incomplete_details": {"reason": "max_output_tokens"}}
    if given.fault:
        failure = not_in_form(given.fault)
        said, status, ended = [], "failed", {**ended, "error": failed_with(failure)}

    asked = ""
    if found.waiting:
        status = "completed"
        if not given.by_call:
            asked = question_text(place.session, found.start, found.waiting, given.asked)
    for text in filter(None, [*said, asked]):
        items.append(message_item(place, len(items), text))
    items += call_items(place.session, found.waiting, by_call=given.by_call)

    return _fields(place, found, status=status, output=items, ended=ended)


def _fields(
    place: ResponsePlace,
    found: work.Stored,
    *,
    status: str,
    output: Sequence[dict[str, JSON]],
    ended: dict[str, JSON] | None = None,
) -> dict[str, JSON]:
    """A stored response with this status and these items. `ended`: further fields about its end."""
    given = found.kept
    created = int(time.mktime(time.strptime(found.start.at[:19], "%Y-%m-%dT%H:%M:%S"))) - time.timezone
    usage = used(found.records) if status != "in_progress" else None
    return response_fields(
        place, created=created, model=MODELS[0], status=status, output=output, ended=ended, usage=usage,
        previous=given.previous, instructions=given.instructions, metadata=given.metadata,
    )  # fmt: skip


async def _read(request: Request, model: type[_Model]) -> _Model | Response:
    try:
        return model.model_validate_json(await body_of(request))
    except ValidationError as error:
        return _invalid(error)


def _invalid(error: ValidationError) -> Response:
    first = error.errors()[0]
    where = ".".join(str(one) for one in first["loc"])
    return error_response(
        400, f"{where or 'The body'}: {first['msg']}.", code=INVALID.code, param=where or None
    )


def _model(name: str) -> dict[str, JSON]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "iact"}


def _usage(error: UsageError) -> Response:
    if isinstance(error, UnknownModel):
        return error_response(404, str(error), code="model_not_found", param="model")
    return failure_response(failure_from(error))
