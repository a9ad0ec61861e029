"""The tool that talks to a session: `iact_ask`.

For a client that supports tasks, it returns a task immediately. Any other client waits for the answer, receives progress,
and is asked the session's questions: with a server request if it made a handshake, or in revision 2026-07-28 with a result
that names the required input. The client then calls again with the answers and the state from that result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio
from mcp.server.context import ServerRequestContext
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequestURLParams,
    InputRequiredResult,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from iact.accounts.rights import Words
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.records.ways import WAYS
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.events import RecordAppended
from iact.core.views.progress import progress_line
from iact.faces.conversation import Exchange, SpokenTurn, turn_of
from iact.faces.mcp import unasked
from iact.faces.mcp.elicitation import answer, answer_all, can_ask, key_of, request_of
from iact.faces.mcp.results import result_of, waits
from iact.faces.message import not_the_users
from iact.faces.trace import traceparent_of

NAME: Final = "iact_ask"
"""The name has no dot: the protocol allows dots, but several clients refuse them."""

_TEXT: Final[dict[str, JSON]] = {"type": "string"}
_CLOSING: Final = 10.0
"""Seconds for ending a session's work when no client waits for it any more."""

TOOL: Final = Tool(
    name=NAME,
    title="Ask iact",
    description=(
        "Give a task to a tree of agents with tools in a sandbox, and wait for its answer. Without a session it begins "
        "a new one; with the id of an earlier session the agents know what was said there. What needs approval is asked "
        "of the user, not of you."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "task": {**_TEXT, "description": "what to do, or the next message, in full sentences"},
            "session": {**_TEXT, "description": "the id of a session to go on with"},
            "mode": {
                **_TEXT,
                "enum": list(WAYS),
                "description": "how to work on it: dialogue (default), as the goal of a plan in a planning mode, or auto",
            },
        },
        "required": ["task"],
        "additionalProperties": False,
    },
    output_schema={
        "type": "object",
        "properties": {
            "session": _TEXT,
            "status": {**_TEXT, "enum": ["ok", "failed", "cancelled", "bound", "waiting"]},
            "reply": _TEXT,
        },
        "required": ["session", "status", "reply"],
    },
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
)


@dataclass(frozen=True, slots=True)
class NewSessions:
    """The terms of sessions that clients start. No argument of the tool can change them."""

    intent: str = "1"
    scope: str | None = None
    memory: bool = True
    """Whether they read and write the user's memory."""
    words: Words = "newest"
    """What of all that the client sends is its user's words."""


def modern(context: ServerRequestContext[None]) -> bool:
    """Whether a request uses a revision without a handshake."""
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def told(error: str) -> CallToolResult:
    """The result of a failed call: one sentence for the client's model."""
    return CallToolResult(content=[TextContent(text=error)], is_error=True)


def trace_of(context: ServerRequestContext[None], call: CallToolRequestParams) -> str:
    """The trace of the client: in a call's `_meta`, or in the headers of its request."""
    request = context.request
    headers = request.headers if isinstance(request, Request) else None
    return traceparent_of(call.meta) or traceparent_of(headers)


async def speak(
    runtime: Runtime, arguments: Mapping[str, object], new: NewSessions, traceparent: str = ""
) -> SpokenTurn:
    """Send a call's message, in a new session or in the session that it names. `traceparent`: the client's trace.

    Raises:
        IactError: the arguments are invalid, or the session can't be opened; the message says why.
    """
    task, identity, mode = arguments.get("task"), arguments.get("session"), arguments.get("mode", "dialogue")
    unknown = sorted(set(arguments) - {"task", "session", "mode"})
    if unknown:
        raise UsageError(f"{NAME} has no argument {unknown[0][:100]!r}; it has task, session and mode.")
    if not isinstance(task, str) or not task.strip():
        raise UsageError(f"{NAME} needs the argument task: a text that is not empty.")
    if identity is not None and not isinstance(identity, str):
        raise UsageError("The argument session must be the id of a session, as an earlier call gave it.")
    way = next((one for one in WAYS if one == mode), None)
    if way is None:
        raise UsageError(f"There is no mode {str(mode)[:100]!r}; there are {', '.join(WAYS)}.")
    session = await runtime.open(identity or None, intent=new.intent, scope=new.scope, memory=new.memory)
    client = not_the_users(task, 0, new.words)
    return SpokenTurn(session, await session.say(task, mode=way, client=client, traceparent=traceparent))


async def follow(
    context: ServerRequestContext[None],
    runtime: Runtime,
    call: CallToolRequestParams,
    new: NewSessions,
    *,
    clears: bool,
) -> CallToolResult | InputRequiredResult:
    """Wait for a call's answer. If the client cancels the call, the work that it started ends.

    `clears`: whether the client's user may answer the session's questions.

    Raises:
        IactError: as `speak`, or the session stopped.
    """
    since = 0
    if call.request_state is None:
        turn = await _begun(runtime, call.arguments or {}, new, trace_of(context, call))
    else:
        identity, _, seen = call.request_state.rpartition(" ")
        turn = await turn_of(runtime, identity)
        since = int(seen) if seen.isdecimal() else 0
        if clears:
            client = context.session.client_capabilities
            await answer_all(turn.session, turn.waiting, call.input_responses, client)
    exchange = Exchange(turn.session, turn.said)
    try:
        return await _watched(context, exchange, turn.id, since, asks=clears)
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(_CLOSING, shield=True):
            await exchange.give_up()
        raise


async def _begun(
    runtime: Runtime, arguments: Mapping[str, object], new: NewSessions, traceparent: str
) -> SpokenTurn:
    """As `speak`. A model may be called before the message is stored; cancelling the call in between ends that as well."""
    speaking = asyncio.ensure_future(speak(runtime, arguments, new, traceparent))
    try:
        return await asyncio.shield(speaking)
    except asyncio.CancelledError:
        with anyio.move_on_after(_CLOSING, shield=True), suppress(IactError):
            turn = await asyncio.shield(speaking)
            await Exchange(turn.session, turn.said).give_up()
        raise


async def _watched(
    context: ServerRequestContext[None], exchange: Exchange, identity: str, since: int, *, asks: bool
) -> CallToolResult | InputRequiredResult:
    session, client = exchange.session, context.session.client_capabilities
    asked: set[int] = set()
    denied: list[Record] = []
    async for event in exchange:
        if not isinstance(event, RecordAppended):
            continue
        n = event.record.n
        if n > since and (text := progress_line(event.record)):
            await context.session.report_progress(n, message=text)
        if not asks or session.records(n):
            continue  # an answer may be among the next records
        new = [one for one in exchange.questions.waiting if one.n not in asked]
        more, held = await unasked.deny(session, new, client)
        denied += more
        asked |= {one.n for one in more}
        if held:
            return waits(session.id, [unasked.held_text(session.id, one) for one in held])
        waiting = [one for one in new if can_ask(client, one)]
        if waiting and modern(context):
            return InputRequiredResult(
                input_requests={key_of(one): request_of(session.id, one, client) for one in waiting},
                request_state=f"{identity} {n}",
            )
        for question in waiting:
            asked.add(question.n)
            await _ask(context, session, question)
    return result_of(session.id, exchange.reply, [unasked.denied_text(session.id, one) for one in denied])


async def _ask(context: ServerRequestContext[None], session: Session, question: Record) -> None:
    client, asks = context.session.client_capabilities, context.session
    params = request_of(session.id, question, client).params
    if isinstance(params, ElicitRequestURLParams):
        identity = params.elicitation_id or key_of(question)
        result = await asks.elicit_url(params.message, params.url, identity, context.request_id)
    else:
        result = await asks.elicit_form(params.message, params.requested_schema, context.request_id)
    await answer(session, question, result, client)
