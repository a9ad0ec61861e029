"""Serves a module over gRPC on a unix socket, together with the health and reflection services."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

# gRPC's fork handlers would run, to no purpose, in every child that the module starts.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import grpc
import grpc.aio
from google.protobuf import json_format
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from ext_modules.sdk import egress, strays, traces, wire
from ext_modules.sdk.call import Event, StateChange
from ext_modules.sdk.module import Module
from ext_modules.sdk.parameters import BadArguments
from ext_modules.sdk.process import Process
from ext_modules.sdk.questions import OPEN
from ext_modules.sdk.runner import Ended, Failed, goes_on, is_spent, run
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

SERVICE = pb.DESCRIPTOR.services_by_name["ExtModule"].full_name

OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 4 << 20)]

CONVERSES = "iact-converse"
"""The initial metadata that announces that Converse is served."""

DEFAULT_TIMEOUT = 3600.0
"""Seconds for a call that arrived without a deadline."""

_GRACE = 0.5
"""Seconds in which a function in a thread must return after its call was cut off."""


class Health(Protocol):
    """The standard health service for grpc.aio."""

    async def set(self, service: str, status: int) -> None: ...
    async def enter_graceful_shutdown(self) -> None: ...


class Servicer:
    """The methods of the contract."""

    def __init__(self, module: Module, spent: Callable[[], None] = lambda: None) -> None:
        """`spent`: called when no further call can be served: nothing can be started, or something can't be ended."""
        self._module = module
        self._spent = spent
        self._manifest = wire.manifest(module)
        self._traces = traces.Traces() if module.needs.forgets else None
        self._calls = 0
        """How many calls are under way."""
        self._cut_off = False
        """Whether a call was cut off, so that its function may still run in a thread."""

    async def Describe(
        self, request: pb.DescribeRequest, context: grpc.aio.ServicerContext[pb.DescribeRequest, pb.Manifest]
    ) -> pb.Manifest:
        return self._manifest

    async def Invoke(
        self, request: pb.InvokeRequest, context: grpc.aio.ServicerContext[pb.InvokeRequest, bytes]
    ) -> bytes:
        """Write the events before the end. The end is returned, so that it is sent together with the status.

        Both are bytes: `write` serialises nothing for a method that is registered as unary.
        """

        async def emit(event: Event) -> None:
            await context.write(wire.event(event).SerializeToString())

        end = await self._run(request, context.time_remaining(), emit)
        return wire.event(end).SerializeToString()

    async def Converse(
        self,
        requests: AsyncIterator[pb.InvokeRequest],
        context: grpc.aio.ServicerContext[pb.InvokeRequest, pb.InvokeEvent],
    ) -> None:
        """Serve one call after another."""
        await context.send_initial_metadata(((CONVERSES, "1"),))
        while isinstance(request := await context.read(), pb.InvokeRequest):
            call_id = request.call_id

            async def emit(event: Event | Ended | Failed, call_id: str = call_id) -> None:
                message = wire.event(event)
                message.call_id = call_id
                await context.write(message)

            await emit(await self._run(request, None, emit))

    async def _run(
        self, request: pb.InvokeRequest, remaining: float | None, emit: Callable[[Event], Awaitable[None]]
    ) -> Ended | Failed:
        """Serve a call. `remaining`: seconds until its gRPC deadline; None: it has none."""
        try:
            asked = wire.asked(request, remaining=DEFAULT_TIMEOUT if remaining is None else remaining)
        except BadArguments as error:
            return Failed("BadArguments", str(error), "")

        self._calls += 1
        began = strays.now()
        try:
            end = await run(self._module, asked, emit)
        except asyncio.CancelledError:
            if self._calls == 1:
                # Whatever it started ends with it. While other calls run, it is unknown which call started a process.
                strays.end_strays(Process.running, since=began)
            self._cut_off = True
            asyncio.get_running_loop().call_later(_GRACE, self._look)
            raise
        finally:
            self._calls -= 1
            if self._traces is not None and not self._calls:
                self._traces.remove()

        if is_spent(end):
            self._spent()
        self._look()
        return end

    def _look(self) -> None:
        """Report the module as spent if a function still runs in a thread after its call was cut off.

        Only ending the module can end that function.
        """
        if self._cut_off and not self._calls:
            self._cut_off = goes_on()
            if self._cut_off:
                self._spent()

    async def Answer(
        self,
        request: pb.AnswerRequest,
        context: grpc.aio.ServicerContext[pb.AnswerRequest, pb.AnswerResponse],
    ) -> pb.AnswerResponse:
        OPEN.answered(request.call_id, request.ask_id, wire.answer(request))
        return pb.AnswerResponse()

    async def Watch(
        self, request: pb.WatchRequest, context: grpc.aio.ServicerContext[pb.WatchRequest, pb.StateChange]
    ) -> None:
        if not self._module.states:
            await context.abort(
                grpc.StatusCode.UNIMPLEMENTED, f"The module {self._module.name} has no states."
            )

        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        state = self._module.agent(request.session, request.agent)
        stop = state.watch(lambda _: _set_from_any_thread(loop, changed))

        sent: StateChange | None = None
        try:
            while True:
                # Cleared before the state is read: a change meanwhile sets it again.
                changed.clear()
                if state.now != sent:
                    sent = state.now
                    await context.write(wire.state(sent))
                await changed.wait()
        finally:
            stop()

    async def EndBackground(
        self,
        request: pb.EndBackgroundRequest,
        context: grpc.aio.ServicerContext[pb.EndBackgroundRequest, pb.EndBackgroundResponse],
    ) -> pb.EndBackgroundResponse:
        if not await self._module.end_background(request.session, request.agent):
            nothing = f"The module {self._module.name} has nothing that it could end."
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, nothing)
        return pb.EndBackgroundResponse()

    def handlers(self) -> grpc.GenericRpcHandler[object, object]:
        """The handlers that the server calls.

        On the wire, a stream of one message equals the answer of a unary method. grpc.aio sends a unary answer in one
        step with the status, while a stream takes two steps, each with a wait. Any number of messages may be written
        before it.
        """
        invoke = grpc.unary_unary_rpc_method_handler(self.Invoke, pb.InvokeRequest.FromString)
        describe = grpc.unary_unary_rpc_method_handler(
            self.Describe, pb.DescribeRequest.FromString, pb.Manifest.SerializeToString
        )
        watch = grpc.unary_stream_rpc_method_handler(
            self.Watch, pb.WatchRequest.FromString, pb.StateChange.SerializeToString
        )
        converse = grpc.stream_stream_rpc_method_handler(
            self.Converse, pb.InvokeRequest.FromString, pb.InvokeEvent.SerializeToString
        )
        ending = grpc.unary_unary_rpc_method_handler(
            self.EndBackground, pb.EndBackgroundRequest.FromString, pb.EndBackgroundResponse.SerializeToString
        )
        answer = grpc.unary_unary_rpc_method_handler(
            self.Answer, pb.AnswerRequest.FromString, pb.AnswerResponse.SerializeToString
        )
        methods = {
            "Describe": describe,
            "Invoke": invoke,
            "Converse": converse,
            "Answer": answer,
            "Watch": watch,
            "EndBackground": ending,
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)


def described(module: Module) -> str:
    """Return what `module` answers to Describe, as JSON."""
    return json_format.MessageToJson(wire.manifest(module), indent=1, sort_keys=True)


def _set_from_any_thread(loop: asyncio.AbstractEventLoop, event: asyncio.Event) -> None:
    loop.call_soon_threadsafe(event.set)


async def start(
    module: Module, socket: Path, spent: Callable[[], None] = lambda: None
) -> tuple[grpc.aio.Server, Health]:
    """Start a server on `socket` for a module that is `running`; stop it when done. `spent`: as in `Servicer`.

    Raises:
        OSError: the socket can't be created there.
    """
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((Servicer(module, spent).handlers(),))
    healthy: Health = health.aio.HealthServicer()  # type: ignore[attr-defined]  # its stubs lack aio
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)

    _remove_stale(socket)
    try:
        server.add_insecure_port(f"unix:{socket}")
    except RuntimeError as error:
        raise OSError(
            f"The socket {socket} can't be made; check that its directory exists and is writable."
        ) from error

    await server.start()
    await healthy.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    return server, healthy


def _remove_stale(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()


def _end_spent(module: Module, stop: asyncio.Event) -> None:
    """Stop the server, which can't serve any more. The module is started again when it is needed."""
    print(
        f"{module.name}: a call left what only the end of the module can end; it is to be started again",
        flush=True,
    )
    stop.set()


async def serve(module: Module, socket: Path) -> None:
    """Serve until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    proxy = await egress.offer()
    async with module.running():
        server, healthy = await start(module, socket, lambda: _end_spent(module, stop))
        print(f"{module.name}: serving on {socket}", flush=True)
        await stop.wait()
        await healthy.enter_graceful_shutdown()
        await server.stop(grace=0.5)

    if proxy is not None:
        proxy.close()
