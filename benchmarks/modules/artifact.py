"""A large artifact streamed from a module into a blob: its cost in memory, and how long it blocks the event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter

from benchmarks.modules.calls import call
from iact.core.journal.spool import Spool
from iact.core.modules.client import ArtifactChunk, Completed
from iact.core.modules.invoker import Invoker
from iact.sandbox import DockerHost


class Ticking:
    """Measures the longest time that the event loop was blocked within the block, in seconds beyond `every`."""

    def __init__(self, every: float = 0.001) -> None:
        self._every = every
        self.longest = 0.0

    async def __aenter__(self) -> Ticking:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.sleep(0)
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _tick(self) -> None:
        while True:
            began = perf_counter()
            await asyncio.sleep(self._every)
            self.longest = max(self.longest, perf_counter() - began - self._every)


def high_water() -> int:
    """The most bytes that this process held since `forget_high_water`."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel reports no high-water mark")


def forget_high_water() -> int:
    """Reset the high-water mark to the memory that this process holds now. Returns it in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return high_water()


async def stream(host: DockerHost, place: Path, *, mebibytes: int, rounds: int) -> dict[str, float]:
    """Stream one artifact after another. Returns the worst values of all rounds."""
    invoker = Invoker(host, "artifact", place)
    blocked, grown, seconds = 0.0, 0, 0.0
    (place / "blobs").mkdir()
    try:
        await _once(invoker, place, mebibytes=4)
        for _ in range(rounds):
            held = forget_high_water()
            async with Ticking() as ticking:
                began = perf_counter()
                await _once(invoker, place, mebibytes=mebibytes)
                seconds = max(seconds, perf_counter() - began)
            blocked, grown = max(blocked, ticking.longest), max(grown, high_water() - held)
    finally:
        await invoker.close()
    return {
        "mebibytes": mebibytes,
        "seconds": round(seconds, 2),
        "grown_mib": round(grown / (1 << 20), 1),
        "blocked_ms": round(blocked * 1000, 1),
    }


async def _once(invoker: Invoker, place: Path, *, mebibytes: int) -> None:
    """Stream one artifact into a blob, exactly as the tree does it."""
    with Spool(place) as spool:

        async def keep(chunk: ArtifactChunk) -> None:
            await spool.take(chunk.id, chunk.data, last=chunk.last)

        outcome = await call(invoker, "echo.send", {"mebibytes": mebibytes}, on_artifact=keep)
        assert isinstance(outcome, Completed), outcome
        (artifact,) = outcome.artifacts
        assert spool.kept[artifact.id].size == mebibytes << 20
