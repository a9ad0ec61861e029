"""The extension `io.modelcontextprotocol/tasks` (SEP-2663): answers that are polled, and outlive the server.

A task is a message in a session. Its state is read from the session each time, so nothing can expire: a task exists as
long as its session is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    InputResponses,
    RequestParams,
)

from iact.core.ports import JSON
from iact.core.records.dialogue import Reply
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.views.progress import newest_line
from iact.faces.conversation import SpokenTurn, turn_of
from iact.faces.mcp import unasked
from iact.faces.mcp.elicitation import answer_all, can_ask, key_of, request_of
from iact.faces.mcp.results import result_of

EXTENSION: Final = "io.modelcontextprotocol/tasks"
_POLL: Final = 1000
"""Milliseconds between two polls of a task."""


class TaskParams(RequestParams):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """Parameters of `tasks/update`."""

    input_responses: InputResponses


def knows_tasks(client: ClientCapabilities | None) -> bool:
    """Whether a client declares that it accepts a task as an answer."""
    return client is not None and EXTENSION in (client.extensions or {})


def created(turn: SpokenTurn) -> dict[str, JSON]:
    """The task that a call started, as its result."""
    return {"resultType": "task", **_head(turn), "status": "working"}


async def get(
    context: ServerRequestContext[None], runtime: Runtime, params: TaskParams, *, clears: bool
) -> HandlerResult:
    """Return the state of a task. `clears`: whether the client's user may answer questions, so that those that it can't
    ask are denied."""
    turn = await _turn(context, runtime, params)
    client = context.session.client_capabilities
    waiting: Sequence[Record] = turn.waiting if turn.reply is None else ()
    if waiting and clears:
        denied, _ = await unasked.deny(turn.session, waiting, client)
        waiting = [one for one in waiting if one not in denied]
    return {"resultType": "complete", **_head(turn), **_standing(turn, waiting, client)}


async def update(
    context: ServerRequestContext[None], runtime: Runtime, params: TaskUpdateParams
) -> HandlerResult:
    """Pass answers on to the session's questions. Other answers are dropped."""
    turn = await _turn(context, runtime, params)
    client = context.session.client_capabilities
    await answer_all(turn.session, turn.waiting, params.input_responses, client)
    return {"resultType": "complete"}


async def cancel(context: ServerRequestContext[None], runtime: Runtime, params: TaskParams) -> HandlerResult:
    """Cancel the work on a task, if it is still running."""
    turn = await _turn(context, runtime, params)
    if turn.reply is None:
        await turn.session.cancel("/")
    return {"resultType": "complete"}


async def _turn(context: ServerRequestContext[None], runtime: Runtime, params: TaskParams) -> SpokenTurn:
    if not knows_tasks(context.session.client_capabilities):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"This request needs a client that declares the extension {EXTENSION}.",
            {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
        )
    return await turn_of(runtime, params.task_id)


def _head(turn: SpokenTurn) -> dict[str, JSON]:
    last: Sequence[str] = [one.at for one in turn.session.records(turn.said.n)[-1:]]
    return {
        "taskId": turn.id,
        "createdAt": turn.said.at,
        "lastUpdatedAt": last[0] if last else turn.said.at,
        "ttlMs": None,
        "pollIntervalMs": _POLL,
    }


def _standing(
    turn: SpokenTurn, open_ones: Sequence[Record], client: ClientCapabilities | None
) -> dict[str, JSON]:
    """The state of a task. `open_ones`: the questions that wait, which are a fold over all of the session's records."""
    session, reply = turn.session, turn.reply
    if reply is not None:
        assert isinstance(reply.content, Reply)
        if reply.content.status == "cancelled":
            return {"status": "cancelled", "statusMessage": reply.body}
        result = result_of(session.id, reply).model_dump(by_alias=True, mode="json", exclude_none=True)
        return {"status": "completed", "result": result}
    if session.failure is not None:
        why = str(session.failure)
        return {"status": "failed", "statusMessage": why, "error": {"code": INTERNAL_ERROR, "message": why}}
    waiting = [one for one in open_ones if can_ask(client, one)]
    if waiting:
        asked: dict[str, JSON] = {
            key_of(one): request_of(session.id, one, client).model_dump(
                by_alias=True, mode="json", exclude_none=True
            )
            for one in waiting
        }
        return {"status": "input_required", "inputRequests": asked}
    held = [unasked.held_text(session.id, one) for one in open_ones]
    doing = "\n".join(held) or newest_line(session.records(turn.said.n))
    return {"status": "working", **({"statusMessage": doing} if doing else {})}
