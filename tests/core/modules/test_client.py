"""The client against modules that break the contract: each way ends in one typed outcome, in bounded time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from iact.core.errors import ModuleFault, ModuleLost
from iact.core.modules.client import (
    ArtifactChunk,
    Attached,
    CallLimits,
    Completed,
    Invocation,
    ModuleClient,
    Outcome,
    Raised,
    TimedOut,
)
from iact.core.modules.manifest import Manifest
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from tests.core.modules.hostile import Hostile

T = TypeVar("T")
LIMITS = CallLimits(text=2_000_000, artifacts=2_000_000, artifact_count=10, events=5_000)


@pytest.fixture
def socket() -> Iterator[Path]:
    # Not pytest's own directory: the path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "s"


@contextlib.asynccontextmanager
async def hostile(socket: Path) -> AsyncIterator[tuple[Hostile, ModuleClient]]:
    module = Hostile()
    server = await module.start(socket)
    try:
        async with ModuleClient(f"unix:{socket}", limits=LIMITS) as client:
            yield module, client
    finally:
        await server.stop(None)


def against(socket: Path, play: Callable[[Hostile, ModuleClient], Awaitable[T]]) -> T:
    async def run() -> T:
        async with asyncio.timeout(300), hostile(socket) as (module, client):
            return await play(module, client)

    return asyncio.run(run())


def call(function: str) -> Invocation:
    return Invocation("1", "s", "/", function)


def invoke(socket: Path, function: str, timeout: float = 20) -> Outcome:
    return against(socket, lambda _, client: client.invoke(call(function), timeout=timeout))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("no_end", "without a result"),
        ("nothing", "without a result"),
        ("two_results", "after the end"),
        ("result_and_error", "after the end"),
        ("output_after_end", "after the end"),
        ("garbage", "not a message of the protocol"),
        ("not_utf8", "not a message of the protocol"),
        ("deep", "not a message of the protocol"),
        ("oversized", "too large"),
        ("bad_json", "result is not JSON"),
        ("deep_json", "result is not JSON"),
        ("constant_json", "result is not JSON"),
        ("large_result", "more than 1 MiB"),
        ("bad_data", "not a JSON object"),
        ("large_data", "more than 64 KiB"),
        ("unknown_artifact", "an artifact that it did not send"),
        ("half_artifact", "in the middle of an artifact"),
        ("reopened_artifact", "a wrong id"),
        ("nameless_artifact", "a wrong id"),
        ("many_artifacts", "more than 10 artifacts"),
        ("much_text", "more than 2,000,000 bytes of text"),
        ("much_content", "more than 2,000,000 bytes of artifacts"),
        ("many_points", "more than 100 entry points"),
        ("many_asks", "more than 20 questions"),
        ("asked_twice", "a question with a wrong id"),
        ("nameless_ask", "a question with a wrong id"),
        ("large_form", "more than 64 KiB"),
        ("flood", "more than"),
        ("flood_of_nothing", "more than 5,000 events"),
        ("internal", "INTERNAL"),
    ],
)
def test_a_broken_contract_is_the_modules_fault(socket: Path, function: str, says: str) -> None:
    with pytest.raises(ModuleFault, match=says):
        invoke(socket, function)


def test_a_module_that_takes_no_answer_ends_its_call_as_it_likes(socket: Path) -> None:
    done = invoke(socket, "asks")
    assert isinstance(done, Completed)
    assert done.output == "done"


def test_what_a_module_writes_into_a_status_is_cut_and_cleaned(socket: Path) -> None:
    with pytest.raises(ModuleFault) as caught:
        invoke(socket, "internal")
    assert len(str(caught.value)) < 220
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("function", ["long_details", "unavailable", "early_deadline", "ok_cancelled"])
def test_a_status_never_passes_for_an_outcome(socket: Path, function: str) -> None:
    with pytest.raises((ModuleFault, ModuleLost)) as caught:
        invoke(socket, function)
    assert "lies" not in str(caught.value)
    assert len(str(caught.value)) < 220


@pytest.mark.parametrize(("function", "output"), [("silent", "before"), ("drip", ".")])
def test_a_deadline_is_total_and_keeps_the_output_so_far(socket: Path, function: str, output: str) -> None:
    begun = time.monotonic()
    outcome = invoke(socket, function, timeout=0.5)
    assert isinstance(outcome, TimedOut)
    assert outcome.output.startswith(output)
    assert time.monotonic() - begun < 5


def test_cancelling_the_caller_cancels_the_call(socket: Path) -> None:
    async def play(module: Hostile, client: ModuleClient) -> None:
        heard = asyncio.Event()
        task = asyncio.ensure_future(
            client.invoke(call("silent"), timeout=20, on_output=lambda _: heard.set())
        )
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(module.over.wait(), 300)

    against(socket, play)


def test_a_fault_cancels_the_call_in_the_module_and_the_next_call_works(socket: Path) -> None:
    async def play(module: Hostile, client: ModuleClient) -> Outcome:
        with pytest.raises(ModuleFault):
            await client.invoke(call("flood"), timeout=20)
        await asyncio.wait_for(module.over.wait(), 300)
        return await client.invoke(call("unknown_event"), timeout=20)

    outcome = against(socket, play)
    assert isinstance(outcome, Completed)
    assert outcome.output == "done"


def test_what_a_function_raised_is_bounded(socket: Path) -> None:
    outcome = invoke(socket, "rude_words")
    assert isinstance(outcome, Raised)
    assert outcome.type.isprintable()
    assert (len(outcome.message), len(outcome.trace)) == (64 << 10, 256 << 10)


@contextlib.contextmanager
def apart(socket: Path) -> Iterator[subprocess.Popen[str]]:
    """The hostile module in a process of its own."""
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(
        [sys.executable, __file__.replace("test_client", "hostile"), str(socket)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_crash_in_mid_call_is_a_lost_module_at_once(socket: Path) -> None:
    async def play() -> None:
        heard: list[str] = []

        def hear(text: str) -> None:
            heard.append(text)
            Path(f"{socket}.heard").touch()

        async with ModuleClient(f"unix:{socket}") as client:
            for _ in range(2):
                with pytest.raises(ModuleLost):
                    await client.invoke(call("crash"), timeout=20, on_output=hear)
        assert heard == ["last words"]

    begun = time.monotonic()
    with apart(socket):
        asyncio.run(play())
    assert time.monotonic() - begun < 10


def test_a_stopped_module_is_left_at_the_deadline(socket: Path) -> None:
    """R7: a module that stops itself answers nothing, not even the cancellation."""

    async def play(process: subprocess.Popen[str]) -> Outcome:
        async with ModuleClient(f"unix:{socket}") as client:
            await client.invoke(call("unknown_event"), timeout=20)
            process.send_signal(19)
            begun = time.monotonic()
            outcome = await client.invoke(call("unknown_event"), timeout=0.5)
            assert time.monotonic() - begun < 5
            return outcome

    with apart(socket) as process:
        assert asyncio.run(play(process)) == TimedOut("")


async def test_nobody_at_the_socket(socket: Path) -> None:
    async with ModuleClient(f"unix:{socket}") as client:
        with pytest.raises(ModuleLost, match=r"did not begin to serve within 0\.3 s"):
            await client.wait_serving(0.3)
        with pytest.raises(ModuleLost):
            await client.invoke(call("x"), timeout=5)
        with pytest.raises(ModuleLost):
            await client.describe()


def test_a_module_without_health_does_not_serve(socket: Path) -> None:
    async def play(_: Hostile, client: ModuleClient) -> None:
        with pytest.raises(ModuleLost):
            await client.wait_serving(0.3)

    against(socket, play)


MANIFEST = pb.Manifest(
    protocol=1, name="m", functions=[pb.Function(name="f", parameters_schema='{"type": "object"}')]
)


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (b"\xff" * 40, "not a message of the protocol"),
        (b"", "manifest is refused"),
        (MANIFEST.SerializeToString() * 40_000, "bytes; the limit is"),
        (b"\x0a" + b"x" * (6 << 20), "too large"),
    ],
)
def test_a_hostile_manifest(socket: Path, manifest: bytes, says: str) -> None:
    async def play(module: Hostile, client: ModuleClient) -> Manifest:
        module.manifest = manifest
        return await client.describe()

    with pytest.raises(ModuleFault, match=says):
        against(socket, play)


def test_a_proper_manifest(socket: Path) -> None:
    async def play(module: Hostile, client: ModuleClient) -> Manifest:
        module.manifest = MANIFEST.SerializeToString()
        return await client.describe()

    assert against(socket, play).name == "m"


def test_a_slow_taker_of_artifacts_is_within_the_deadline(socket: Path) -> None:
    async def play(module: Hostile, client: ModuleClient) -> Outcome:
        async def never(chunk: ArtifactChunk) -> None:
            await asyncio.Event().wait()

        return await client.invoke(call("half_artifact"), timeout=0.5, on_artifact=never)

    assert isinstance(against(socket, play), TimedOut)


def test_a_request_carries_what_was_attached_and_large_ones_leave_the_loop_free(socket: Path) -> None:
    async def play(module: Hostile, client: ModuleClient) -> int:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        heart = asyncio.ensure_future(beat())
        large = Invocation(
            "1", "s", "/", "unknown_event", {"a": "x" * 5_000_000}, (Attached("b", "x/y", b"z" * 20_000_000),)
        )
        assert isinstance(await client.invoke(large, timeout=20), Completed)
        heart.cancel()
        return beats

    assert against(socket, play) > 10
