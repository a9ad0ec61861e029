"""Calls that follow each other on one stream: what is reused, and that no call hears of another."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio
import pytest

from iact.core.errors import ModuleFault, ModuleLost
from iact.core.modules import stream_pool
from iact.core.modules.client import Completed, Invocation, ModuleClient, TimedOut
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

T = TypeVar("T")
Context = grpc.aio.ServicerContext[bytes, bytes]
PATIENCE = 300.0


def result(call: str, text: str) -> bytes:
    return pb.InvokeEvent(call_id=call, result=pb.Result(text=text)).SerializeToString()


def output(call: str, text: str) -> bytes:
    return pb.InvokeEvent(call_id=call, output=pb.Output(text=text)).SerializeToString()


class Talker:
    """A module that converses, in the way that the function's name asks for."""

    def __init__(self, *, converses: bool = True, marked: bool = True) -> None:
        self._converses = converses
        self._marked = marked
        self.streams = 0
        self.invoked = 0
        self.slow = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def _converse(self, requests: object, context: Context) -> None:
        self.streams += 1
        if not self._marked:
            await asyncio.Event().wait()
        await context.send_initial_metadata(((stream_pool.MARK, "1"),))
        while isinstance(data := await context.read(), bytes):
            request = pb.InvokeRequest.FromString(data)
            if not await self._answer(request.call_id, request.function, context):
                return

    async def _answer(self, call: str, function: str, context: Context) -> bool:
        match function:
            case "slow":
                self.slow.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case "belated":
                await context.write(result(call, "done"))
                await context.write(output(call, "too late"))
            case "foreign":
                await context.write(output("another", "hello"))
            case "nameless":
                await context.write(output("", "hello"))
            case "garbage":
                await context.write(b"\xff" * 50)
            case "closes":
                await context.write(output(call, "hello"))
                return False
            case _:
                await context.write(output(call, function))
                await context.write(result(call, call))
        return True

    async def _invoke(self, request: bytes, context: Context) -> bytes:
        self.invoked += 1
        return result("", "invoked")

    async def start(self, socket: Path) -> grpc.aio.Server:
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Invoke": grpc.unary_unary_rpc_method_handler(self._invoke)
        }
        if self._converses:
            methods["Converse"] = grpc.stream_stream_rpc_method_handler(self._converse)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("iact.ext_module.v1.ExtModule", methods),)
        )
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        return server


def against(play: Callable[[Talker, ModuleClient], Awaitable[T]], module: Callable[[], Talker] = Talker) -> T:
    async def run() -> T:
        talker = module()
        with tempfile.TemporaryDirectory() as folder:  # the path of a socket has at most 107 bytes
            server = await talker.start(Path(folder) / "s")
            try:
                async with asyncio.timeout(PATIENCE), ModuleClient(f"unix:{folder}/s") as client:
                    return await play(talker, client)
            finally:
                await server.stop(None)

    return asyncio.run(run())


async def said(client: ModuleClient, call: str, function: str = "echo") -> str:
    outcome = await client.invoke(Invocation(call, "s", "/", function), timeout=PATIENCE)
    assert isinstance(outcome, Completed), outcome
    return outcome.output


def test_calls_follow_each_other_on_one_stream() -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        for number in range(5):
            assert await said(client, str(number)) == str(number)
        assert (talker.streams, talker.invoked) == (1, 0)

    against(play)


def test_calls_that_overlap_have_streams_of_their_own() -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        waiting = asyncio.create_task(said(client, "1", "slow"))
        await talker.slow.wait()
        assert await said(client, "2") == "2"
        assert talker.streams == 2
        waiting.cancel()
        await asyncio.wait([waiting])
        await talker.cancelled.wait()
        assert await said(client, "3") == "3"
        assert talker.streams == 2, "the one that was cancelled is gone, the other goes on"

    against(play)


def test_a_call_that_is_over_time_ends_its_stream() -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        assert await said(client, "1") == "1"
        outcome = await client.invoke(Invocation("2", "s", "/", "slow"), timeout=1.0)
        assert outcome == TimedOut("")
        assert await said(client, "3") == "3"
        assert talker.streams == 2

    against(play)


def test_what_comes_behind_the_end_is_not_the_next_calls() -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        heard: list[str] = []
        assert await said(client, "1", "belated") == "done"
        outcome = await client.invoke(
            Invocation("2", "s", "/", "echo"), timeout=PATIENCE, on_output=heard.append
        )
        assert isinstance(outcome, Completed)
        assert (outcome.output, heard) == ("2", ["echo"])
        assert talker.streams == 1

    against(play)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        ("foreign", "belongs to no call"),
        ("nameless", "belongs to no call"),
        ("garbage", "not a message of the protocol"),
        ("closes", "without a result or an error"),
    ],
)
def test_a_broken_contract_is_the_modules_fault_and_costs_one_call(function: str, why: str) -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        assert await said(client, "1") == "1"
        with pytest.raises(ModuleFault, match=why):
            await said(client, "2", function)
        assert await said(client, "3") == "3"
        assert talker.streams == 2

    against(play)


def test_a_module_that_does_not_converse_is_invoked() -> None:
    async def play(talker: Talker, client: ModuleClient) -> None:
        assert [await said(client, str(number)) for number in range(3)] == ["invoked"] * 3
        assert (talker.streams, talker.invoked) == (0, 3)

    against(play, lambda: Talker(converses=False))


def test_a_module_that_leaves_the_stream_unopened_is_invoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_pool, "_OPENING", 0.2)

    async def play(talker: Talker, client: ModuleClient) -> None:
        assert [await said(client, str(number)) for number in range(3)] == ["invoked"] * 3
        assert talker.invoked == 3
        assert talker.streams <= 1, "it is tried once"

    against(play, lambda: Talker(marked=False))


async def test_a_module_that_is_gone_between_two_calls_is_lost() -> None:
    talker = Talker()
    with tempfile.TemporaryDirectory() as folder:
        server = await talker.start(Path(folder) / "s")
        async with asyncio.timeout(PATIENCE), ModuleClient(f"unix:{folder}/s") as client:
            assert await said(client, "1") == "1"
            await server.stop(None)
            with pytest.raises(ModuleLost):
                await said(client, "2")
