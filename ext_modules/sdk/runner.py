"""Runs one call of a function: arguments in, events out, exactly one end.

Independent of gRPC: the server and the test bench each pass in a function that receives the events.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import threading
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final, Literal, cast

from ext_modules.sdk.call import AgentState, Call, Event, Outbox, Output, StateChange, enter
from ext_modules.sdk.module import Function, Module, NotOffered, UnknownFunction
from ext_modules.sdk.parameters import BadArguments
from ext_modules.sdk.values import JSON, Result, Value

LARGEST_VALUE: Final = 1 << 20
"""The most UTF-8 bytes of a result that fit into one message."""

_NO_THREAD: Final = "can't start new thread"
"""Python's message when no thread can be started."""

_CALLERS: Final = ("_perform", "_stream", "_in_thread")
_THREADS: Final = ThreadPoolExecutor(max_workers=64, thread_name_prefix="function")
_UNDERWAY: Final[set[Future[object]]] = set()
"""Functions in threads that have not returned yet, whether or not their calls have ended."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A caller's request."""

    call_id: str
    session: str
    agent: str
    function: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    """Arguments passed as content."""
    timeout: float = 600.0
    """In seconds from now."""
    carried: bytes = b""
    """What the agent's earlier calls left for this one."""
    cached: Value | None = None
    """What an earlier call with the same key stored."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The call succeeded."""

    kind: Literal["text", "json", "artifact", "output"]
    """What `value` is: text, JSON, an artifact's id, or "" because what was streamed is the result."""
    value: str
    media_type: str
    data: str
    """Details that are not text for the agent, as JSON; empty: none."""
    state: StateChange | None
    """The state, if the call has changed it."""
    carried: bytes | None = None
    """What later calls will find; None: the earlier data stays."""
    cached: str = ""
    """The id of the artifact that later calls with the same key will find; empty: none."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed; describes what the function raised."""

    type: str
    """The name of the error's class."""
    message: str
    trace: str
    """Where it happened, from the module's own code on."""


Emit = Callable[[Event], Awaitable[None]]


async def run(module: Module, asked: Asked, emit: Emit) -> Ended | Failed:
    """Run `asked` and return its end. Earlier events go to `emit`. Cancelling this cancels the function."""
    try:
        function = module.find(asked.function)
        bound = function.parameters.bind(asked.arguments, asked.values)
    except (UnknownFunction, BadArguments) as error:
        return Failed(type(error).__name__, str(error), "")

    async with asyncio.TaskGroup() as group:
        # Most functions send nothing before their end, so the task that forwards events starts at the first one.
        outbox = Outbox(asyncio.get_running_loop(), lambda: group.create_task(_pass_on(outbox, emit)))
        call = Call(
            call_id=asked.call_id,
            agent_state=module.agent(asked.session, asked.agent),
            function=function.name,
            deadline=time.monotonic() + asked.timeout,
            outbox=outbox,
            carried=asked.carried,
            cached=asked.cached,
        )
        try:
            return await _in_turn(module, function, bound, call)
        finally:
            outbox.close()


async def _pass_on(outbox: Outbox, emit: Emit) -> None:
    while (event := await outbox.take()) is not None:
        await emit(event)
        if isinstance(event, Output):
            await outbox.gather()


async def _in_turn(
    module: Module, function: Function, bound: dict[str, object], call: Call
) -> Ended | Failed:
    if not function.exclusive:
        return await _offered(module, function, bound, call)
    async with call.agent_state.turn:
        return await _offered(module, function, bound, call)


async def _offered(
    module: Module, function: Function, bound: dict[str, object], call: Call
) -> Ended | Failed:
    """Run a function, if the agent's state offers it."""
    try:
        module.check_offered(function, call.agent_state)
    except NotOffered as error:
        return Failed("NotOffered", str(error), "")

    before = call.agent_state.now
    try:
        enter(call)
        value = await _perform(function, bound, call)
        ended = _ended(value, function, call, _changed(before, call.agent_state))
        return replace(ended, carried=call.carries, cached=call.caches)
    except (Exception, SystemExit) as error:
        return Failed(type(error).__qualname__, str(error), _trace(error))


def _changed(before: StateChange, state: AgentState) -> StateChange | None:
    return state.now if state.now != before else None


async def _perform(function: Function, bound: dict[str, object], call: Call) -> object:
    """What a function returns, wherever it has to run."""
    if function.parameters.call:
        bound = {function.parameters.call: call, **bound}

    if not _in_a_thread(function.handler):
        value = function.handler(**bound)
        if isinstance(value, AsyncIterator):
            return await _stream(value, call)
        assert isinstance(value, Awaitable)
        result: object = await value
        return result

    context = contextvars.copy_context()
    future = _THREADS.submit(lambda: context.run(_in_thread, function.handler, bound, call))
    _UNDERWAY.add(future)
    future.add_done_callback(_UNDERWAY.discard)
    return await asyncio.wrap_future(future)


def goes_on() -> bool:
    """Whether a function runs in a thread. Such a function ends only when it returns."""
    return any(future.running() for future in list(_UNDERWAY))


@functools.cache
def _in_a_thread(handler: Callable[..., object]) -> bool:
    """Whether a handler must run in a thread, being neither a coroutine nor an asynchronous generator."""
    return not (inspect.isasyncgenfunction(handler) or inspect.iscoroutinefunction(handler))


async def _stream(items: AsyncIterator[object], call: Call) -> Result:
    async for item in items:
        _deliver(item, call)
        await call.drain()
    return Result()


def _in_thread(handler: Callable[..., object], bound: dict[str, object], call: Call) -> object:
    value = handler(**bound)
    if not isinstance(value, Iterator):
        return value
    for item in value:
        if call.cancelled:
            break
        _deliver(item, call)
    return Result()


def _deliver(item: object, call: Call) -> None:
    match item:
        case str():
            call.output(item)
        case bytes() | Value():
            call.artifact(item)
        case _:
            call.output(json.dumps(item, ensure_ascii=False) + "\n")


def _ended(returned: object, function: Function, call: Call, state: StateChange | None) -> Ended:
    """The end that fits what the function returned. A result too large for one message is streamed."""
    result = returned if isinstance(returned, Result) else Result(cast(JSON, returned))
    value = result.value
    media_type = result.media_type or function.media_type
    data = json.dumps(dict(result.data), ensure_ascii=False) if result.data else ""
    if value is None:
        return Ended("output", "", media_type, data, state)

    if isinstance(value, bytes):
        value = Value(value, media_type or "application/octet-stream")
    if isinstance(value, Value):
        return Ended("artifact", call.artifact(value), value.media_type, data, state)

    kind: Literal["text", "json"]
    if isinstance(value, str):
        kind = "text"
        text = value
        media_type = media_type or "text/plain"
    else:
        kind = "json"
        text = json.dumps(value, ensure_ascii=False)
        media_type = media_type or "application/json"
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= LARGEST_VALUE:
        return Ended(kind, encoded.decode(), media_type, data, state)

    # What was streamed before would be taken for a part of it.
    if call.streamed:
        artifact = call.artifact(encoded, name=function.name, media_type=media_type)
        return Ended("artifact", artifact, media_type, data, state)
    call.output(text)
    return Ended("output", "", media_type, data, state)


def _trace(error: BaseException) -> str:
    """The stack trace, starting at the module's own code."""
    own = error.__traceback__
    frame = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        is_ours = code.co_filename == __file__ and code.co_name in _CALLERS
        if is_ours and frame.tb_next is not None:
            own = frame.tb_next
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, own))


def is_spent(end: Ended | Failed) -> bool:
    """Whether a call failed because nothing can be started here any more: no thread, and so no process."""
    if not isinstance(end, Failed):
        return False
    looks_like_it = end.type == "BlockingIOError" or _NO_THREAD in end.message
    if not looks_like_it:
        return False

    try:
        threading.Thread(target=int).start()
    except RuntimeError:
        return True
    return False
