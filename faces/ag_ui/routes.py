"""The route of AG-UI. Its package is loaded with the first request, so it costs nothing if AG-UI is not used."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from iact.core.errors import UsageError
from iact.faces.failure import INVALID, failure_from
from iact.faces.http.access import Access, body_of, remembers
from iact.faces.http.server import error_response, failure_response, not_installed
from iact.faces.http.stream import EventResponse
from iact.faces.trace import traceparent_of

if TYPE_CHECKING:
    from iact.faces.ag_ui.run import Run


def routes(access: Access) -> Sequence[BaseRoute]:
    """See `faces.http.server.Face`."""

    async def run(request: Request) -> Response:
        who = await access.principal(
            request, "change"
        )  # before reading any part of an unknown sender's request
        if find_spec("ag_ui") is None:
            return not_installed("AG-UI", "ag-ui")
        from ag_ui.core import RunAgentInput

        from iact.faces.ag_ui.run import Run, begin

        try:
            given = RunAgentInput.model_validate_json(await body_of(request))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(one) for one in first["loc"])
            return error_response(
                400, f"{where or 'The body'}: {first['msg']}.", code=INVALID.code, param=where or None
            )
        if given.resume:
            await access.principal(request, "clear")
        async with AsyncExitStack() as stack:
            runtime = await stack.enter_async_context(access.runtime(who))
            try:
                trace = traceparent_of(request.headers)
                exchange = await begin(
                    runtime, given, memory=remembers(who), words=who.words, traceparent=trace
                )
            except UsageError as error:
                return failure_response(failure_from(error))
            begun = Run(given, exchange, stack.pop_all())
            return EventResponse(_lines(begun), begun.leave)

    return (Route("/ag-ui", run, methods=["POST"]),)


async def _lines(run: Run) -> AsyncGenerator[str, None]:
    from ag_ui.encoder import EventEncoder

    encoder = EventEncoder()
    async with aclosing(run.events()) as events:
        async for event in events:
            yield encoder.encode(event)
