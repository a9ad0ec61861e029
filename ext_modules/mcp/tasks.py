"""The extension `io.modelcontextprotocol/tasks`: a server answers a call with a task, which is polled until it ends.

For the agent it is one call, like any other: the task's status messages are its progress, and cancelling the call
cancels the task. Questions of a task to a person are asked as for any call; a task that asks for anything else is
ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal, Protocol

import anyio
from mcp.client.context import ClientRequestContext
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    CallToolResult,
    ElicitRequest,
    ErrorData,
    InputResponses,
    Request,
    RequestParams,
    Result,
    TextContent,
)
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from ext_modules.sdk.values import JSON

_SHORTEST, _LONGEST = 0.1, 10.0
"""Bounds of the seconds between two polls of a task, whatever its server requests."""
_QUESTIONS: Final = 20
"""The most questions that a task may ask."""
_REQUESTS: Final = TypeAdapter(dict[str, ElicitRequest])
_GIVING_UP: Final = 5.0
"""Seconds for a server to acknowledge that a task is cancelled."""


class OnProgress(Protocol):
    """Called with the progress of a call."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None: ...


_TOLD: Final[ContextVar[OnProgress | None]] = ContextVar("told", default=None)


@contextmanager
def telling(progress: OnProgress) -> Iterator[None]:
    """Report a task's status messages inside this context to `progress`."""
    token = _TOLD.set(progress)
    try:
        yield
    finally:
        _TOLD.reset(token)


class TaskCreated(Result):
    """A task, as the result of a call."""

    result_type: Literal["task"] = "task"
    task_id: str
    poll_interval_ms: int | None = None


class _Params(RequestParams):
    task_id: str


class _Request(Request[_Params, str]):
    name_param = "taskId"


class _Answers(_Params):
    input_responses: InputResponses


class _Update(Request[_Answers, str]):
    name_param = "taskId"


class _Answer(BaseModel):
    model_config = ConfigDict(extra="allow")


class Tasks(ClientExtension):
    """Lets servers answer with tasks."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[TaskCreated]]:
        """How a task becomes the result of the call."""
        return [ResultClaim(result_type="task", model=TaskCreated, resolve=_result)]


async def _result(created: TaskCreated, context: ClaimContext) -> CallToolResult:
    """Follow a task to its end.

    Raises:
        MCPError: it failed, or its server does not know it.
    """
    interval = created.poll_interval_ms
    answered: set[str] = set()
    try:
        for looks in range(1, 1_000_000):
            await asyncio.sleep(min(max((interval or 0) / 1000, _SHORTEST), _LONGEST))
            task = await _asked(context, "tasks/get", created.task_id)
            result = await _end_of(created.task_id, task, context, answered)
            if result is not None:
                return result

            new_interval = task.get("pollIntervalMs")
            if isinstance(new_interval, int):
                interval = new_interval
            message = task.get("statusMessage")
            on_progress = _TOLD.get()
            if on_progress is not None and isinstance(message, str):
                await on_progress(looks, None, message)
    except asyncio.CancelledError:
        with anyio.move_on_after(_GIVING_UP, shield=True):
            await _asked(context, "tasks/cancel", created.task_id)
        raise
    raise MCPError(INTERNAL_ERROR, "The task did not come to an end.")


async def _end_of(
    name: str, task: Mapping[str, JSON], context: ClaimContext, answered: set[str]
) -> CallToolResult | None:
    """The result of a task that has ended, or is ended here; None: it goes on. `answered`: as in `_answer`."""
    match task.get("status"):
        case "completed":
            return CallToolResult.model_validate(task.get("result"))
        case "failed":
            raise _failure(task)
        case "cancelled":
            return _unfinished(str(task.get("statusMessage") or "The server cancelled the task."))
        case "input_required" if not await _answer(context, name, task, answered):
            await _asked(context, "tasks/cancel", name)
            return _unfinished("The server asks for input, which a call can't give; its task was cancelled.")
    return None


async def _asked(context: ClaimContext, method: str, task: str) -> Mapping[str, JSON]:
    """A server's answer to a request about a task."""
    request = _Request(method=method, params=_Params(task_id=task))
    answer = await context.session.send_request(request, _Answer)
    fields: Mapping[str, JSON] = answer.model_dump(mode="json")
    return fields


async def _answer(context: ClaimContext, name: str, task: Mapping[str, JSON], answered: set[str]) -> bool:
    """Send a task the answers it waits for. False if it wants anything else. `answered`: the answers it already has.

    Raises:
        MCPError: a question can't be asked.
    """
    try:
        requests = _REQUESTS.validate_python(task.get("inputRequests"))
    except ValidationError:
        return False
    new = {key: request for key, request in requests.items() if key not in answered}
    if not requests or len(answered) + len(new) > _QUESTIONS:
        return False

    for key, request in new.items():
        question = ClientRequestContext(session=context.session, request_id=key, meta=None)
        answer = await context.session.dispatch_input_request(question, request)
        if isinstance(answer, ErrorData):
            await _asked(context, "tasks/cancel", name)
            raise MCPError.from_error_data(answer)

        answered.add(key)
        params = _Answers(task_id=name, input_responses={key: answer})
        await context.session.send_request(_Update(method="tasks/update", params=params), _Answer)
    return True


def _failure(task: Mapping[str, JSON]) -> MCPError:
    error = task.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, str):
        message = "The task failed."
    return MCPError(INTERNAL_ERROR, message)


def _unfinished(why: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=why)], is_error=True)
