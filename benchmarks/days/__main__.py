"""What a server takes that runs for long: `python -m benchmarks.days [--sessions N] [--people N] [--hours N] [--keep]`.

The real page server and runtime, with a scripted model and without an engine. People at websockets begin a session, say
something, wait for the answer, and begin the next one; nobody comes back to a session but to the last one of a day, which
measures how long opening takes. Time is virtual: it passes by as sessions are used, so that a day takes minutes. A line is
printed for each virtual hour. `--keep`: sessions are never closed, as a comparison.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from websockets.asyncio.client import ClientConnection, connect

from benchmarks import kept
from benchmarks.kept import Target
from iact.core.models.roles import Models
from iact.core.ports import ChatMessage, ModelEvent, ModelProfile, StreamEnd, TextDelta, Usage, UsageReport
from iact.core.session.runtime import Runtime
from iact.web.server import WebServer
from tests.core.session.fakes import FakeHost, FakeModules, World

_IDLE: Final = 1800.0
_HOUR: Final = 3600.0
_TEXT: Final = "Which is the largest moon of Saturn? " + "Think of what is known about it. " * 20
_ANSWER: Final = "It is **Titan**, with a diameter of 5,150 km. " * 20


class VirtualClock:
    """Implements `core.ports.Clock`: time passes when `pass_by` says so, and then wakes who waits for it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None], asyncio.Task[object] | None]] = []
        self._count = 0
        self.sleeping: set[asyncio.Task[object] | None] = set()
        """The tasks that wait for time to pass."""

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self._count += 1
        woken = asyncio.get_running_loop().create_future()
        task = asyncio.current_task()
        heapq.heappush(self._waiting, (self._now + seconds, self._count, woken, task))
        self.sleeping.add(task)
        await woken

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
        while self._waiting and self._waiting[0][0] <= self._now:
            _, _, woken, task = heapq.heappop(self._waiting)
            self.sleeping.discard(task)
            if not woken.done():
                woken.set_result(None)


class ScriptedModel:
    """Always gives the same answer."""

    profile = ModelProfile("scripted", 100_000)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        for start in range(0, len(_ANSWER), 100):
            await asyncio.sleep(0)
            yield TextDelta(_ANSWER[start : start + 100])
        yield UsageReport(Usage(1000, 0, 200))
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Taken:
    """What the process takes at a moment. `memory`, `disk`: in MiB."""

    hour: float
    sessions: int
    opened: int
    memory: float
    descriptors: int
    tasks: int
    modules: int
    disk: float

    def row(self) -> list[str]:
        return [
            f"{self.hour:.0f}", f"{self.sessions:,}", f"{self.opened:,}", f"{self.memory:.0f}",
            f"{self.descriptors}", f"{self.tasks}", f"{self.modules}", f"{self.disk:.1f}",
        ]  # fmt: skip


@dataclass
class Server:
    """A server whose sessions are used, and what it took at each hour."""

    runtime: Runtime
    clock: VirtualClock
    data: Path
    closing: asyncio.Task[None]
    taken: list[Taken] = field(default_factory=list)
    used: int = 0
    last: str = ""
    hours: int = 0
    """The last hour that was measured."""

    async def pass_by(self, seconds: float) -> None:
        """Let time pass, and wait until what was due is done: a day of the server is minutes here."""
        self.clock.pass_by(seconds)
        while self.closing not in self.clock.sleeping:  # noqa: ASYNC110 (nothing tells of it)
            await asyncio.sleep(0.001)
        # Where people are many and the hours long, several pass at once.
        hour = int(self.clock.monotonic() // _HOUR)
        if hour > self.hours:
            self.hours = hour
            self.measure()

    def measure(self) -> None:
        gc.collect()
        found = Taken(
            hour=self.clock.monotonic() / _HOUR,
            sessions=self.used,
            opened=len(self.runtime.opened),
            memory=_resident() / 2**20,
            descriptors=len(os.listdir("/proc/self/fd")),
            tasks=len(asyncio.all_tasks()),
            modules=self.runtime.workload().modules,
            disk=_size(self.data) / 2**20,
        )
        self.taken.append(found)
        print("| " + " | ".join(found.row()) + " |", flush=True)


def _resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def _size(folder: Path) -> int:
    """The bytes that a folder takes on disk."""
    total = 0
    for place, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(place, name)).st_blocks * 512 for name in names)
    return total


async def _until_rest(client: ClientConnection) -> None:
    """Read until the root has answered."""
    while True:
        message = json.loads(await client.recv())
        if message.get("type") == "record" and message.get("kind") == "reply":
            return


async def _ask(client: ClientConnection, session: str | None) -> str:
    """Say something in a session, and wait for the answer. Returns the session's id."""
    await client.send(
        json.dumps({"type": "hello", "session": session, "lazy": True, "since": 1 << 30 if session else 0})
    )
    await client.send(json.dumps({"type": "say", "text": _TEXT, "id": 1}))
    while True:
        message = json.loads(await client.recv())
        if message.get("id") == 1:
            assert message["type"] == "ok", message
            break
        if message.get("type") == "record" and message.get("kind") == "reply":
            return session or ""
    await _until_rest(client)
    return str(message["session"])


async def _person(server: Server, address: str, key: str, sessions: int, seconds: float) -> None:
    headers = {"Authorization": f"Bearer {key}"}
    async with connect(address, additional_headers=headers, compression=None, proxy=None) as client:
        while server.used < sessions:
            server.used += 1
            server.last = await _ask(client, None)
            await server.pass_by(seconds)


async def _reopened(server: Server, rounds: int) -> list[float]:
    """Milliseconds in which a closed session is open again."""
    took = list[float]()
    for info in server.runtime.sessions()[-rounds:]:
        await server.runtime.close(info.id)
        began = time.perf_counter()
        await server.runtime.open(info.id)
        took.append((time.perf_counter() - began) * 1000)
    return took


async def _run(
    data: Path, sessions: int, people: int, hours: float, *, keep: bool
) -> tuple[list[Taken], list[float]]:
    clock = VirtualClock()
    world = World()
    models = Models({"smart": ScriptedModel()})
    runtime = Runtime(
        data, models, FakeHost(), clock=clock, open_modules=lambda host, session, folder: FakeModules(world)
    )
    async with runtime, WebServer(runtime) as page, asyncio.TaskGroup() as group:
        closing = group.create_task(runtime.close_unneeded(0 if keep else _IDLE))
        server = Server(runtime, clock, data, closing)
        server.measure()
        address = f"ws://127.0.0.1:{page.port}/ws"
        each = hours * _HOUR / sessions
        async with asyncio.TaskGroup() as crowd:
            for _ in range(people):
                crowd.create_task(_person(server, address, page.key, sessions, each))
        for _ in range(int(_HOUR / 60) + 1):
            await server.pass_by(60)
        took = await _reopened(server, 20)
        closing.cancel()
    return server.taken, took


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(prog="benchmarks.days", description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--keep", action="store_true")
    chosen = parser.parse_args(arguments)
    heads = ["hour", "sessions used", "open", "memory (MiB)", "descriptors", "tasks", "modules", "disk (MiB)"]
    print("| " + " | ".join(heads) + " |\n|" + "---:|" * len(heads), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        taken, took = asyncio.run(
            _run(Path(folder), chosen.sessions, chosen.people, chosen.hours, keep=chosen.keep)
        )
    # By the third hour everything that is made once is there.
    early, late = taken[min(3, len(taken) - 1)], taken[-1]
    grown = (late.memory - early.memory) * 1024 / max(1, late.sessions - early.sessions)
    kept.targets(
        [
            Target("memory that stays for each session", grown, 40, "KiB"),
            Target("sessions open at the end", late.opened, 0),
            Target("opening a closed session, median", statistics.median(took), 100, "ms"),
            Target("descriptors at the end, above the third hour", late.descriptors - early.descriptors, 0),
        ]
    )


if __name__ == "__main__":
    main(sys.argv[1:])
