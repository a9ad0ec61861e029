"""A2A's requests, implemented with sessions: a context is a session, and a task is one message in it.

No task state is kept here: everything is read from the session, which outlives the server. If a client disconnects, the
task continues; it can be read, watched or cancelled by its id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.request_handlers.request_handler import RequestHandler, validate_request_params
from a2a.types import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from starlette.exceptions import HTTPException
from starlette.requests import Request

from iact.accounts.rights import Principal, Right
from iact.core.errors import IactError, UsageError
from iact.core.records.calls import Result
from iact.core.records.dialogue import Turn
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.events import RecordAppended
from iact.core.views.questions import OpenQuestions
from iact.faces.a2a import said
from iact.faces.a2a.files import file_artifacts
from iact.faces.a2a.listing import history, page_of
from iact.faces.a2a.tasks import ENDED, TaskWords
from iact.faces.conversation import Exchange, SpokenTurn, turn_of
from iact.faces.http.access import Access, remembers
from iact.faces.message import not_the_users
from iact.faces.trace import traceparent_of

REQUEST: Final = "iact.request"
"""The key of the request in a call's context."""

_PAGE: Final = 50
_MOST: Final = 100
"""The maximum number of tasks on a page of the list."""
_LOG: Final = logging.getLogger(__name__)


class SessionTasks(RequestHandler):
    """Handles requests of all users. Each user reaches only their own sessions."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._saying = asyncio.Lock()
        """Held from the check that a context is at rest until the message is sent, so that no other message comes between."""

    # --- messages -------------------------------------------------------------------------------

    @validate_request_params
    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Task | Message:
        """Send a message, and wait until the task has ended or asks something, unless the client doesn't want to wait."""
        async with self._runtime(context, "change") as runtime:
            turn = await self._begun(runtime, params, context)
            if not params.configuration.return_immediately:
                async with aclosing(_following(turn, turn.session.records()[-1].n)) as events:
                    async for _ in events:
                        pass
            return await _task(turn, history(params.configuration))

    @validate_request_params
    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Send a message, and stream events until the task has ended or asks something."""
        async with self._runtime(context, "change") as runtime:
            turn = await self._begun(runtime, params, context)
            async with aclosing(_watching(turn, history(params.configuration))) as events:
                async for event in events:
                    yield event

    async def _begun(
        self, runtime: Runtime, params: SendMessageRequest, context: ServerCallContext
    ) -> SpokenTurn:
        message = params.message
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError(
                "This server calls nobody; read the task, or subscribe to it."
            )
        if message.task_id:
            await self._principal(context, "clear")
            return await _answered(runtime, message)
        text = said.words_of(message)
        who = await self._principal(context, "change")
        client = not_the_users(text, 0, who.words)
        trace = traceparent_of(_request(context).headers)
        if not message.context_id:
            session = await runtime.open(memory=remembers(who))
            await said.hand_over(session, message)
            return SpokenTurn(session, await session.say(text, client=client, traceparent=trace))
        if not runtime.store.holds(message.context_id):
            raise InvalidParamsError(
                "There is no such context: leave out contextId to begin one, and use the one that you are given."
            )
        session = await runtime.open(message.context_id)
        _must_rest(session)
        await said.hand_over(session, message)
        async with self._saying:
            _must_rest(session)
            return SpokenTurn(session, await session.say(text, client=client, traceparent=trace))

    # --- tasks ----------------------------------------------------------------------------------

    @validate_request_params
    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Return a task. Its session continues if it was interrupted at work."""
        async with self._runtime(context, "see") as runtime:
            return await _task(await _found(runtime, params.id), history(params))

    @validate_request_params
    async def on_list_tasks(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the tasks of all sessions or of one, the most recently changed first."""
        size = params.page_size if params.HasField("page_size") else _PAGE
        if not 1 <= size <= _MOST:
            raise InvalidParamsError(f"A page has between 1 and {_MOST} tasks.")
        async with self._runtime(context, "list") as runtime:
            page = await asyncio.to_thread(page_of, runtime.store, runtime.opened, params, size)
        return ListTasksResponse(
            tasks=page.tasks, page_size=size, total_size=page.total, next_page_token=page.next
        )

    @validate_request_params
    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """Cancel a task and all work on it."""
        async with self._runtime(context, "change") as runtime:
            turn = await _found(runtime, params.id)
            if turn.reply is not None:
                raise TaskNotCancelableError("The task has ended already.")
            await turn.session.cancel("/")
            await turn.session.answer(turn.said.n)
            return await _task(turn, None)

    @validate_request_params
    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Stream a running task and its events from now on."""
        async with self._runtime(context, "see") as runtime:
            turn = await _found(runtime, params.id)
            if turn.reply is not None:
                raise UnsupportedOperationError("The task has ended: nothing more happens. Get it instead.")
            async with aclosing(_watching(turn, None)) as events:
                async for event in events:
                    yield event

    # --- not offered: a server that calls addresses chosen by its clients can be made to call anything ---

    async def on_create_task_push_notification_config(
        self, params: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_get_task_push_notification_config(
        self, params: GetTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_list_task_push_notification_configs(
        self, params: ListTaskPushNotificationConfigsRequest, context: ServerCallContext
    ) -> ListTaskPushNotificationConfigsResponse:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_delete_task_push_notification_config(
        self, params: DeleteTaskPushNotificationConfigRequest, context: ServerCallContext
    ) -> None:
        """Refused."""
        raise PushNotificationNotSupportedError

    async def on_get_extended_agent_card(
        self, params: GetExtendedAgentCardRequest, context: ServerCallContext
    ) -> AgentCard:
        """Refused: the public card has everything."""
        raise UnsupportedOperationError("There is no other card than the public one.")

    # --- access ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def _runtime(self, context: ServerCallContext, right: Right) -> AsyncIterator[Runtime]:
        """Open the sessions of the request's user. Errors inside the context become A2A errors."""
        who = await self._principal(context, right)
        try:
            async with self._access.runtime(who) as runtime:
                yield runtime
        except UsageError as error:
            raise InvalidParamsError(str(error)) from error
        except IactError as error:
            raise InternalError(str(error)) from error
        except (A2AError, HTTPException):
            raise
        except Exception as error:
            _LOG.exception("a request by A2A met a bug")
            raise InternalError("The server met a bug of its own; its log says more.") from error

    async def _principal(self, context: ServerCallContext, right: Right) -> Principal:
        return await self._access.principal(_request(context), right)


def _request(context: ServerCallContext) -> Request:
    """The request in HTTP by which a call came."""
    request = context.state[REQUEST]
    assert isinstance(request, Request)
    return request


def _must_rest(session: Session) -> None:
    if session.state.root.active:
        raise UnsupportedOperationError(
            "This context is at work on another task: wait for its end, or cancel it."
        )


async def _found(runtime: Runtime, identity: str) -> SpokenTurn:
    try:
        return await turn_of(runtime, identity)
    except UsageError as error:
        raise TaskNotFoundError(str(error)) from error


async def _answered(runtime: Runtime, message: Message) -> SpokenTurn:
    """Answer the question of a waiting task, and return the task."""
    turn = await _found(runtime, message.task_id)
    if message.context_id and message.context_id != turn.session.id:
        raise InvalidParamsError("The task is not of this context.")
    if turn.reply is not None:
        raise UnsupportedOperationError(
            "The task has ended. To go on, send a message with its contextId and without taskId."
        )
    if not turn.waiting:
        raise UnsupportedOperationError("The task is at work and asks nothing: wait for it, or cancel it.")
    await said.answer(turn.session, message, turn.waiting)
    return turn


async def _watching(turn: SpokenTurn, messages: int | None) -> AsyncGenerator[Event, None]:
    """Yield the task as it is, and its events until it has ended or asks something."""
    since = turn.session.records()[-1].n
    task = await _task(turn, messages)
    yield task
    if task.status.state in ENDED:
        return
    async with aclosing(_following(turn, since)) as events:
        async for event in events:
            yield event


async def _following(turn: SpokenTurn, since: int) -> AsyncGenerator[Event, None]:
    """Yield the events of a task after record `since`, until it has ended or asks something."""
    words = TaskWords(turn.session.id, turn.said)
    folder = turn.session.journal.parent
    exchange = Exchange(turn.session, turn.said)
    waiting = OpenQuestions(one for one in turn.session.records() if one.n <= since)
    if waiting.waiting and turn.waiting:
        return
    async with aclosing(aiter(exchange)) as events:
        async for event in events:
            if not isinstance(event, RecordAppended) or event.record.n <= since:
                continue
            record = event.record
            waiting.add(record)
            if isinstance(record.content, Result) and record.content.artifacts:
                for file in await asyncio.to_thread(_files, words.id, folder, [record]):
                    yield words.artifact_update(file)
            if waiting.waiting and not turn.session.records(record.n):
                yield words.status_update(record, None, waiting.waiting)
                return
            if isinstance(record.content, Turn) and words.message(record) is not None:
                yield words.status_update(record, None, ())
    reply = turn.reply or exchange.reply
    if reply.text("status") == "ok":
        yield words.artifact_update(words.artifact(reply))
    own = words.own(turn.session.records(turn.said.n), reply)
    yield words.status_update(reply, reply, (), own)


async def _task(turn: SpokenTurn, messages: int | None) -> Task:
    """A task as it is now, with the files that its calls produced so far."""
    words = TaskWords(turn.session.id, turn.said)
    reply = turn.reply
    waiting = turn.waiting if reply is None else ()
    records = turn.session.records(turn.said.n)
    folder = turn.session.journal.parent
    files = await asyncio.to_thread(_files, words.id, folder, words.own(records, reply))
    return words.task(records, reply, waiting, messages, files)


def _files(task: str, folder: Path, records: Sequence[Record]) -> list[Artifact]:
    return [*file_artifacts(task, folder, records)]
