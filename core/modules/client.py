"""Calls a module over gRPC, and treats it as a hostile party.

One channel, one module. Every call has a total deadline, every stream a budget of text, artifacts and events, and
messages arrive as bytes that are parsed here, so garbage is the module's fault and not an exception of the transport.
The text of a gRPC status comes from the module and is never shown unchanged.

If the function ran, the end of a call is a value (`Outcome`). If the module did not do its part, it is an exception:
`ModuleLost` (it is gone) or `ModuleFault` (it broke the contract).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Final, Protocol, Self, cast

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from iact.core.errors import ModuleFault, ModuleLost
from iact.core.modules.manifest import Manifest
from iact.core.modules.outcome import (
    ArtifactChunk,
    Attached,
    Completed,
    Invocation,
    ModuleAsk,
    ModuleReply,
    OnAsk,
    Outcome,
    Progress,
    Raised,
    SentArtifact,
    StateChange,
    TimedOut,
)
from iact.core.modules.outcome_reader import CallLimits, OutcomeReader, line, read_state
from iact.core.modules.stream_pool import Stream, StreamCall, StreamPool
from iact.core.modules.time_limit import time_limit
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

__all__ = [
    "ArtifactChunk",
    "Attached",
    "CallLimits",
    "Completed",
    "Invocation",
    "ModuleClient",
    "Outcome",
    "Progress",
    "Raised",
    "SentArtifact",
    "StateChange",
    "TimedOut",
]

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ExtModule"].full_name

LARGEST_REQUEST: Final = 64 << 20
"""The limit on one call's arguments and attached content together, in bytes."""

OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", LARGEST_REQUEST),
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.default_authority", "module"),
    ("grpc.initial_reconnect_backoff_ms", 50),
    # This also limits how long one attempt to connect may take.
    ("grpc.min_reconnect_backoff_ms", 5000),
    ("grpc.max_reconnect_backoff_ms", 200),
)

DESCRIBE_WITHIN: Final = 10.0
SERVES_WITHIN: Final = 4.0
"""How many seconds a module has to report that it serves; its own work may take all of its processor."""
FRESH: Final = 5.0
"""For how many seconds an answer proves that a connected module is well."""
_ANSWER_WITHIN: Final = 5.0
"""How many seconds a module has to accept the answer to its question."""
_EARLY: Final = 0.2
"""How many seconds before our own deadline gRPC's may pass; an earlier timeout is the module's doing."""
_LARGEST_INLINE: Final = 64 << 10
"""How many bytes of arguments are serialised on the event loop; more are serialised in a thread."""


_ACTIONS: Final = {
    "accept": pb.AnswerRequest.ACTION_ACCEPT,
    "decline": pb.AnswerRequest.ACTION_DECLINE,
    "cancel": pb.AnswerRequest.ACTION_CANCEL,
    "refused": pb.AnswerRequest.ACTION_REFUSED,
}
_ARGUMENTS: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

_HEALTH: Final = "/grpc.health.v1.Health/Check"
_GONE: Final = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
)
"""What gRPC says of a module that is not there, or does not answer."""

OnText = Callable[[str], None]
OnProgress = Callable[[Progress], None]
OnArtifact = Callable[[ArtifactChunk], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Watchers:
    """Who is told what arrives during a call; None: nobody."""

    on_output: OnText | None
    on_progress: OnProgress | None
    on_artifact: OnArtifact | None
    on_ask: Callable[[ModuleAsk], Awaitable[None]]

    async def tell(self, event: str | Progress | ArtifactChunk | StateChange | ModuleAsk | None) -> None:
        """Tell of an event, as `OutcomeReader.take` returns it."""
        match event:
            case str() if self.on_output and event:
                self.on_output(event)
            case Progress() if self.on_progress:
                self.on_progress(event)
            case ArtifactChunk() if self.on_artifact:
                await self.on_artifact(event)
            case ModuleAsk():
                await self.on_ask(event)
            case _:
                pass


class ModuleClient:
    """A connection to one module at `target` ("unix:/path"); close it when done."""

    def __init__(self, target: str, *, limits: CallLimits | None = None) -> None:
        self._channel = grpc.aio.insecure_channel(target, options=list(OPTIONS))
        self._limits = limits or CallLimits()
        self._heard = -FRESH
        """When it last answered."""
        self._streams = StreamPool(self._open_stream)

    def _open_stream(self) -> StreamCall:
        call = self._channel.stream_stream(f"/{SERVICE}/Converse", None, None)
        return cast(StreamCall, call(None))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all calls and the connection."""
        await self._channel.close(None)

    async def wait_serving(self, timeout: float) -> None:  # noqa: ASYNC109
        """Wait until the module's health service reports that it serves.

        Raises:
            ModuleLost: it does not serve within `timeout` seconds.
        """
        request = health_pb2.HealthCheckRequest(service=SERVICE).SerializeToString()
        try:
            async with asyncio.timeout(timeout):
                while True:
                    with contextlib.suppress(grpc.aio.AioRpcError, DecodeError):
                        data = await self._unary(_HEALTH, request, timeout, wait_for_ready=True)
                        if _is_serving(data):
                            return
                    await asyncio.sleep(0.02)
        except TimeoutError as error:
            raise ModuleLost(f"The module did not begin to serve within {timeout:g} s.") from error

    @property
    def fresh(self) -> bool:
        """Whether it is connected, and has answered within the last few seconds."""
        is_connected = self._channel.get_state() is grpc.ChannelConnectivity.READY
        return is_connected and time.monotonic() - self._heard < FRESH

    async def serves(self) -> bool:
        """Whether it reports in time, on the existing connection, that it serves."""
        try:
            is_serving = _is_serving(await self._unary(_HEALTH, b"", SERVES_WITHIN))
        except (grpc.aio.AioRpcError, DecodeError):
            return False
        self._heard = time.monotonic()
        return is_serving

    async def describe(self) -> Manifest:
        """The module's manifest, checked.

        Raises:
            ModuleLost: it does not answer.
            ModuleFault: it answers with something else.
        """
        try:
            async with asyncio.timeout(DESCRIBE_WITHIN):
                data = await self._unary(f"/{SERVICE}/Describe", b"", DESCRIBE_WITHIN)
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        except TimeoutError as error:
            raise ModuleLost(f"The module did not describe itself within {DESCRIBE_WITHIN:g} s.") from error

        # Checking its schemas takes milliseconds, which a hostile module would multiply.
        return await asyncio.to_thread(Manifest.from_proto, data)

    async def invoke(
        self,
        invocation: Invocation,
        *,
        timeout: float,  # noqa: ASYNC109
        told: float | None = None,
        waited: Callable[[], float] = lambda: 0.0,
        on_output: OnText | None = None,
        on_progress: OnProgress | None = None,
        on_artifact: OnArtifact | None = None,
        on_ask: OnAsk | None = None,
    ) -> Outcome:
        """Run one function and wait for its end, for at most `timeout` seconds. `told`: the time limit that is passed
        to the module, if it differs. `waited`: for how many seconds the call has waited for a person so far, which
        don't count.

        Cancelling this cancels the call in the module. `on_output` and `on_progress` must return at once; without
        `on_artifact` the content of artifacts is dropped, and without `on_ask` no person can be asked.

        Raises:
            ModuleLost: the module died or can't be reached.
            ModuleFault: it broke the contract.
        """
        request = await _serialized(invocation, timeout if told is None else told)
        if len(request) > LARGEST_REQUEST:
            return Raised("BadArguments", _too_large(len(request)), "", "")

        ask = partial(self._ask, invocation.call_id, on_ask)
        watchers = _Watchers(on_output, on_progress, on_artifact, ask)
        reader = OutcomeReader(self._limits)
        begun = time.monotonic()
        try:
            async with time_limit(timeout, waited) as scope:
                stream = await self._streams.take()
                if stream is None:
                    await self._invoke(request, reader, watchers, timeout)
                else:
                    reader = OutcomeReader(self._limits, call=invocation.call_id, before=stream.last)
                    await self._converse(stream, request, reader, watchers, invocation.call_id)
                return reader.end()
        except TimeoutError:
            if not scope.expired():
                raise
            return TimedOut(reader.output)
        except grpc.aio.AioRpcError as error:
            # gRPC's own deadline may pass a little before ours.
            is_over = time.monotonic() - begun > timeout - _EARLY
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and is_over:
                return TimedOut(reader.output)
            raise _failure(error) from error

    async def _converse(
        self, stream: Stream, request: bytes, reader: OutcomeReader, watchers: _Watchers, call: str
    ) -> None:
        """Make a call on an open stream."""
        begun = time.monotonic()
        try:
            await stream.ask(request)
            while not reader.ended:
                data = await stream.call.read()
                if not isinstance(data, bytes):
                    break
                await watchers.tell(reader.take(data, time.monotonic() - begun))
            self._heard = time.monotonic()
        finally:
            if reader.ended:
                self._streams.give_back(stream, call)
            else:
                stream.call.cancel()

    async def _invoke(
        self,
        request: bytes,
        reader: OutcomeReader,
        watchers: _Watchers,
        timeout: float,  # noqa: ASYNC109
    ) -> None:
        """Make a call on a stream of its own."""
        call = self._stream(f"/{SERVICE}/Invoke", request, timeout)
        begun = time.monotonic()
        try:
            while True:
                data = await call.read()
                if not isinstance(data, bytes):
                    break
                await watchers.tell(reader.take(data, time.monotonic() - begun))
            self._heard = time.monotonic()
        finally:
            call.cancel()

    async def _ask(self, call: str, on_ask: OnAsk | None, question: ModuleAsk) -> None:
        reply = partial(self._answer, call, question.id)
        if on_ask is None:
            await reply(ModuleReply("cancel", reason="There is nobody to ask."))
        else:
            await on_ask(question, reply)

    async def _answer(self, call: str, ask: str, reply: ModuleReply) -> None:
        """Send an answer to the module. If the module does not accept it, the call continues until its time limit."""
        values = _ARGUMENTS.encode(dict(reply.values)) if reply.action == "accept" else ""
        request = pb.AnswerRequest(
            call_id=call,
            ask_id=ask,
            action=_ACTIONS[reply.action],
            values_json=values,
            reason=reply.reason,
        ).SerializeToString()

        with contextlib.suppress(grpc.aio.AioRpcError):
            await self._unary(f"/{SERVICE}/Answer", request, _ANSWER_WITHIN)

    async def watch(self, session: str, agent: str) -> AsyncIterator[StateChange]:
        """The module's state for an agent: the current one, and each change outside of calls, until the module is gone.

        Raises:
            ModuleLost: the module is gone.
            ModuleFault: it broke the contract, or can't be watched.
        """
        request = pb.WatchRequest(session=session, agent=agent).SerializeToString()
        call = self._stream(f"/{SERVICE}/Watch", request, None)
        try:
            async for data in call:
                yield read_state(pb.StateChange.FromString(data))

        except DecodeError as error:
            raise ModuleFault("The module sent something that is not a message of the protocol.") from error
        except grpc.aio.AioRpcError as error:
            raise _failure(error) from error
        finally:
            call.cancel()

    async def end_background(self, session: str, agent: str, within: float) -> bool:
        """End what the module still runs for an agent after its calls. Returns whether it confirmed in time."""
        request = pb.EndBackgroundRequest(session=session, agent=agent).SerializeToString()
        try:
            async with asyncio.timeout(within):
                await self._unary(f"/{SERVICE}/EndBackground", request, within)
        except (grpc.aio.AioRpcError, TimeoutError):
            return False
        return True

    async def _unary(
        self, method: str, request: bytes, within: float, *, wait_for_ready: bool = False
    ) -> bytes:
        call = self._channel.unary_unary(method, None, None)
        return cast(bytes, await call(request, timeout=within, wait_for_ready=wait_for_ready))

    def _stream(self, method: str, request: bytes, timeout: float | None) -> _Stream:
        call = self._channel.unary_stream(method, None, None)
        return cast(_Stream, call(request, timeout=timeout))


class _Stream(Protocol):
    """A running server stream of raw messages."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def cancel(self) -> bool: ...

    async def read(self) -> bytes | object:
        """The next message; at the end, an object that is not a message."""
        ...


def _is_serving(data: bytes) -> bool:
    """Whether a health service's answer says so. Raises DecodeError."""
    return bool(health_pb2.HealthCheckResponse.FromString(data).status == 1)


async def _serialized(invocation: Invocation, within: float) -> bytes:
    """The request for a call; made in a thread if that takes long."""
    size = sum(len(value.data) for value in invocation.values)
    if invocation.cached is not None:
        size += len(invocation.cached.data)
    for value in invocation.arguments.values():
        if isinstance(value, str):
            size += len(value)

    if size <= _LARGEST_INLINE:
        return _request(invocation, within)
    return await asyncio.to_thread(_request, invocation, within)


def _too_large(size: int) -> str:
    most = LARGEST_REQUEST >> 20
    return (
        f"The arguments have {size >> 20} MiB, and a call takes at most {most} MiB; pass less, or in parts."
    )


def _request(invocation: Invocation, timeout: float) -> bytes:
    cached = None if invocation.cached is None else _value(invocation.cached)
    return pb.InvokeRequest(
        call_id=invocation.call_id,
        session=invocation.session,
        agent=invocation.agent,
        function=invocation.function,
        arguments_json=_ARGUMENTS.encode(dict(invocation.arguments)),
        values={value.parameter: _value(value) for value in invocation.values},
        timeout_ms=max(1, round(timeout * 1000)),
        carried=invocation.carried,
        cached=cached,
    ).SerializeToString()


def _value(value: Attached) -> pb.Value:
    return pb.Value(data=value.data, media_type=value.media, name=value.name)


def _failure(error: grpc.aio.AioRpcError) -> ModuleLost | ModuleFault:
    """The exception for a gRPC status. Its text comes from the module, and is only quoted in part."""
    code = error.code()
    if code in _GONE:
        return ModuleLost(f"The module has ended or does not answer ({code.name}).")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return ModuleFault("The module sent a message that is too large, or accepts no more work.")

    details = line(error.details() or "", 120)
    quoted = f" ({details})" if details else ""
    return ModuleFault(f"The module broke the protocol: it ended the call with {code.name}{quoted}.")
