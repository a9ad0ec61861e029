"""From no container to an answer: one container, eight at once, and the first call of a session."""

from __future__ import annotations

import asyncio
import statistics
from pathlib import Path
from time import perf_counter

from benchmarks.modules.calls import call, ignore
from iact.core.modules.client import Completed
from iact.core.modules.invoker import Invoker
from iact.core.modules.registry import Start
from iact.sandbox import DockerHost


async def starts(host: DockerHost, place: Path, *, rounds: int, at_once: int) -> dict[str, float]:
    """Milliseconds from a hardened `docker run` until the module answers: one at a time, and `at_once` together."""

    async def start(session: str) -> None:
        workspace = place / session
        workspace.mkdir()
        await host.start("shell", session=session, workspace=workspace, report=ignore)

    alone, together = [], []
    await start("image")
    for number in range(rounds):
        began = perf_counter()
        await start(f"alone-{number}")
        alone.append(perf_counter() - began)
        await host.end_session(f"alone-{number}")
        sessions = [f"together-{number}-{one}" for one in range(at_once)]
        began = perf_counter()
        async with asyncio.TaskGroup() as group:
            for session in sessions:
                group.create_task(start(session))
        together.append(perf_counter() - began)
        for session in sessions:
            await host.end_session(session)
    await host.end_session("image")
    return {"one": _middle(alone), f"{at_once}_at_once": _middle(together)}


async def first_calls(host: DockerHost, sessions: Path, *, kind: str, rounds: int) -> dict[str, float]:
    """Milliseconds of the first call of a new session, and of its second call, for which everything is running.

    `cold`: its container is started for it. `pool`: the pool has a container; each round waits until it does.
    `warmed`: the session started the module when it began (the setting `warm`), and the call waits for it.
    """
    first: list[float] = []
    second: list[float] = []
    digest = next(entry.digest for entry in await host.catalogue() if entry.name == "shell")
    start = Start(digest)  # as a session does for a module that it knows
    for number in range(rounds):
        session = f"{kind}-{number}"
        workspace = sessions / session / "workspace"
        workspace.mkdir(parents=True)
        invoker = Invoker(host, session, workspace)
        try:
            if kind == "pool":
                await _filled(host)
            if kind == "warmed":
                await invoker.warm("shell", ignore, start)
            for times in (first, second):
                began = perf_counter()
                assert isinstance(
                    await call(invoker, "shell.run", {"command": "true"}, start=start), Completed
                )
                times.append(perf_counter() - began)
        finally:
            await invoker.close()
    return {"first": _middle(first), "worst": round(max(first) * 1000, 1), "second": _middle(second)}


async def _filled(host: DockerHost) -> None:
    """Wait until a set of instances is ready and the machine is idle."""
    host.pool.fill()
    while not host.pool.ready:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)


def _middle(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)
