"""One call of a trivial function through the product, compared with the least that gRPC can do, in turns in one run.

| kind | what it includes |
|---|---|
| bare | a unary echo of grpc.aio, over a unix socket, between two processes of this machine |
| contained | the same server inside the module's own container |
| whole | digest of the arguments, the gate's decision, its ticket, the invoker, the core's client, gRPC, the SDK, the function, and its result checked |
| journal | what a call that changes something waits for in addition: its durable `call` record |

The whole call excludes what the tree does before (parsing the turn) and after (recording the result).
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Final

import grpc
import grpc.aio

from benchmarks.modules.served.echo import bare
from iact.core.gate.gate import Ticket, consider
from iact.core.gate.grant import Grant, Scope
from iact.core.gate.policy import Policy
from iact.core.gate.provenance import USER, Provenance
from iact.core.journal.file import Journal
from iact.core.modules.client import ArtifactChunk, Completed
from iact.core.modules.invoker import FunctionCall, Invoker
from iact.core.modules.outcome import Outcome
from iact.core.modules.registry import Start
from iact.core.ports import JSON
from iact.core.records import calls as said
from iact.sandbox import DockerHost, socket_folder

SERVED: Final = Path(__file__).with_name("served")
TEXT: Final = "x" * 1024
GRANT: Final = Grant(Scope("bench", (("*",),)), 1)
_AT: Final = "2026-01-01T00:00:00Z"

Call = Callable[[], Awaitable[None]]
Times = dict[str, list[float]]


def ignore(text: str) -> None:
    """Discard a text."""


async def drop(chunk: ArtifactChunk) -> None:
    """Discard a chunk of an artifact."""


async def call(
    invoker: Invoker,
    function: str,
    arguments: dict[str, JSON],
    *,
    start: Start | None = None,
    on_artifact: Callable[[ArtifactChunk], Awaitable[None]] = drop,
) -> Outcome:
    """Make one call as the root agent, through the gate."""
    call = FunctionCall("/", function, 1, arguments, {}, 60, start or Start())
    provenance = Provenance({name: frozenset({USER}) for name in arguments})
    ticket = consider(call.request, 0, GRANT, Policy(), arguments=arguments, provenance=provenance)
    assert isinstance(ticket, Ticket)
    return await invoker.call(
        ticket,
        call,
        on_output=ignore,
        on_artifact=on_artifact,
        report=ignore,
    )


def echo(channel: grpc.aio.Channel) -> Call:
    """Make a bare unary echo call over `channel`."""
    method = channel.unary_unary(f"/{bare.SERVICE}/Echo", None, None)
    payload = TEXT.encode()

    async def once() -> None:
        assert await method(payload) == payload

    return once


@asynccontextmanager
async def kinds(host: DockerHost, place: Path) -> AsyncIterator[dict[str, Call]]:
    """All kinds of calls, ready to be made."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iact-bare-")))
        server = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, bare.__file__, str(folder / "s")], stdout=subprocess.PIPE
        )
        stack.callback(server.wait)
        stack.callback(server.kill)
        assert server.stdout is not None
        assert await asyncio.to_thread(server.stdout.readline) == b"ready\n"
        stack.callback(server.stdout.close)
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"unix:{folder}/s"))

        invoker = Invoker(host, "calls", place)
        stack.push_async_callback(invoker.close)
        assert isinstance(await call(invoker, "echo.echo", {"text": TEXT}), Completed)
        instance = await host.start("echo", session="calls", workspace=place, report=ignore)
        beside = socket_folder.open_socket(instance.folder, "bare.sock")
        assert beside is not None
        stack.callback(beside.close)
        contained = await stack.enter_async_context(grpc.aio.insecure_channel(beside.target))

        async def whole() -> None:
            outcome = await call(invoker, "echo.echo", {"text": TEXT})
            assert isinstance(outcome, Completed)
            assert outcome.output == TEXT

        journal = Journal.create(place / "journal")
        stack.push_async_callback(journal.close)

        async def durable() -> None:
            content = said.Call(turn=1, action=0, function="echo.echo", impact=1, args="0" * 16)
            record = journal.append(content, "/", 1, _AT)
            await journal.durable(record.n)

        yield {"bare": echo(channel), "contained": echo(contained), "whole": whole, "journal": durable}


async def latencies(kinds: dict[str, Call], *, rounds: int, calls: int) -> dict[str, dict[str, float]]:
    """Milliseconds of one call while no other call runs: `calls` of each kind, in turns, `rounds` times."""
    times: Times = {name: [] for name in kinds}
    for number in range(rounds + 1):
        for name, once in kinds.items():
            for _ in range(calls):
                began = perf_counter()
                await once()
                if number:  # the first round warms up
                    times[name].append((perf_counter() - began) * 1000)
    return {name: _summary(taken) for name, taken in times.items()}


async def crowded(
    kinds: dict[str, Call], *, rounds: int, calls: int, flight: int
) -> dict[str, dict[str, float]]:
    """The same with `flight` calls running at any time. `per_s`: how many end per second, in the median round."""
    times: Times = {name: [] for name in kinds}
    rates: Times = {name: [] for name in kinds}
    for number in range(rounds + 1):
        for name, once in kinds.items():
            taken: list[float] = []
            began = perf_counter()
            async with asyncio.TaskGroup() as group:
                for _ in range(flight):
                    group.create_task(_again(once, max(1, calls // flight), taken))
            if number:
                times[name] += taken
                rates[name].append(len(taken) / (perf_counter() - began))
    return {
        name: {**_summary(taken), "per_s": round(statistics.median(rates[name]))}
        for name, taken in times.items()
    }


async def _again(once: Call, calls: int, times: list[float]) -> None:
    for _ in range(calls):
        began = perf_counter()
        await once()
        times.append((perf_counter() - began) * 1000)


def _summary(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50": round(cuts[49], 3), "p99": round(cuts[98], 3)}
