"""The MCP server without a transport: the handlers of requests, and errors as one sentence."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Final, TypeVar

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)
from pydantic import BaseModel

from iact.accounts.rights import refusal
from iact.core.errors import IactError, UsageError
from iact.faces.mcp import ask, resources, tasks
from iact.faces.mcp.caller import Callers

_LOG: Final = logging.getLogger(__name__)

_Params = TypeVar("_Params", bound=BaseModel)
_Handler = Callable[[ServerRequestContext[None], _Params], Awaitable[HandlerResult]]

_INSTRUCTIONS: Final = (
    "iact runs a tree of agents with tools in a sandbox. Give it a task with iact_ask; go on in the same session by its "
    "id. Journals, variables and files of sessions are resources under iact://session/."
)


def mcp_server(callers: Callers, new: ask.NewSessions) -> Server[None]:
    """A server for the sessions of its callers. `new`: the intent and scope of sessions that clients start."""
    server: Server[None] = Server("iact", version=version("iact"), title="iact", instructions=_INSTRUCTIONS)
    server.extensions = {tasks.EXTENSION: {}}

    async def list_tools(
        context: ServerRequestContext[None], params: PaginatedRequestParams
    ) -> HandlerResult:
        return ListToolsResult(tools=[ask.TOOL])

    async def call_tool(context: ServerRequestContext[None], params: CallToolRequestParams) -> HandlerResult:
        if params.name != ask.NAME:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:100]!r}; there is {ask.NAME}.")
        clears = callers.may(context, "clear")
        terms = replace(new, memory=callers.remembers(context), words=callers.words(context))
        if params.input_responses and not clears:
            raise MCPError(INVALID_REQUEST, refusal("clear"))
        try:
            async with callers.runtime(context, "change") as runtime:
                if ask.modern(context) and tasks.knows_tasks(context.session.client_capabilities):
                    trace = ask.trace_of(context, params)
                    return tasks.created(await ask.speak(runtime, params.arguments or {}, terms, trace))
                return await ask.follow(context, runtime, params, terms, clears=clears)
        except IactError as error:
            return ask.told(str(error))

    async def list_resources(
        context: ServerRequestContext[None], params: PaginatedRequestParams
    ) -> HandlerResult:
        async with callers.runtime(context, "list") as runtime:
            return await resources.listed(runtime, params.cursor)

    async def list_templates(
        context: ServerRequestContext[None], params: PaginatedRequestParams
    ) -> HandlerResult:
        return resources.TEMPLATES

    async def read_resource(
        context: ServerRequestContext[None], params: ReadResourceRequestParams
    ) -> HandlerResult:
        async with callers.runtime(context, "inspect") as runtime:
            return await resources.read(runtime, params.uri)

    async def get_task(context: ServerRequestContext[None], params: tasks.TaskParams) -> HandlerResult:
        async with callers.runtime(context, "see") as runtime:
            return await tasks.get(context, runtime, params, clears=callers.may(context, "clear"))

    async def update_task(
        context: ServerRequestContext[None], params: tasks.TaskUpdateParams
    ) -> HandlerResult:
        async with callers.runtime(context, "clear") as runtime:
            return await tasks.update(context, runtime, params)

    async def cancel_task(context: ServerRequestContext[None], params: tasks.TaskParams) -> HandlerResult:
        async with callers.runtime(context, "change") as runtime:
            return await tasks.cancel(context, runtime, params)

    server.add_request_handler("tools/list", PaginatedRequestParams, _spoken(list_tools))
    server.add_request_handler("tools/call", CallToolRequestParams, _spoken(call_tool))
    server.add_request_handler("resources/list", PaginatedRequestParams, _spoken(list_resources))
    server.add_request_handler("resources/templates/list", PaginatedRequestParams, _spoken(list_templates))
    server.add_request_handler("resources/read", ReadResourceRequestParams, _spoken(read_resource))
    server.add_request_handler("tasks/get", tasks.TaskParams, _spoken(get_task))
    server.add_request_handler("tasks/update", tasks.TaskUpdateParams, _spoken(update_task))
    server.add_request_handler("tasks/cancel", tasks.TaskParams, _spoken(cancel_task))
    return server


def _spoken(handler: _Handler[_Params]) -> _Handler[_Params]:
    """Wrap a handler so that its errors become protocol errors with the same message."""

    async def handle(context: ServerRequestContext[None], params: _Params) -> HandlerResult:
        try:
            return await handler(context, params)
        except IactError as error:
            code = INVALID_PARAMS if isinstance(error, UsageError) else INTERNAL_ERROR
            raise MCPError(code, str(error)) from error
        except MCPError:
            raise
        except Exception as error:
            _LOG.exception("a request by MCP met a bug")
            raise MCPError(INTERNAL_ERROR, "The server met a bug of its own; its log says more.") from error

    return handle
