"""The first call of a module in a session: with a container that has to be started, with one that was, and the next.

    python -m benchmarks.warm [--rounds N]

Both go through the gate's ticket, the door, gRPC and a real container of the shipped shell, which runs `true`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from pathlib import Path
from time import perf_counter

from core.gate.gate import CallRequest, Denial, decide
from core.gate.grant import DEFAULT_SCOPE, Grant
from core.modules.client import ArtifactChunk, Completed
from core.modules.door import Door, FunctionCall
from core.modules.registry import Start
from sandbox import DockerHost


async def calls(host: DockerHost, session: str, workspace: Path, *, warm: bool) -> tuple[float, float]:
    """Milliseconds that the first call of a new session takes, and the second."""
    door = Door(host, session, workspace)
    try:
        if warm:
            await door.warm("shell", _ignore, Start())
        return await _call(door), await _call(door)
    finally:
        await door.close()


async def _call(door: Door) -> float:
    request = CallRequest("/", "shell.run", "")
    ticket = decide(request, 0, Grant(DEFAULT_SCOPE, 1))
    assert not isinstance(ticket, Denial)
    call = FunctionCall(request, 1, {"command": "true"}, {}, 60)
    began = perf_counter()
    outcome = await door.call(ticket, call, on_output=_ignore, on_artifact=_drop, report=_ignore)
    took = (perf_counter() - began) * 1000
    assert isinstance(outcome, Completed), outcome
    return took


def _ignore(text: str) -> None:
    return None


async def _drop(chunk: ArtifactChunk) -> None:
    return None


async def measure(rounds: int) -> dict[str, float]:
    """The median of each kind, in milliseconds, taken in turns."""
    found: dict[str, list[float]] = {"cold": [], "warm": [], "second": []}
    with tempfile.TemporaryDirectory(prefix="iact-warm-") as folder:
        host = DockerHost(Path(folder))
        try:
            await calls(host, "image", Path(folder), warm=False)  # builds or finds the image
            for number in range(rounds):
                cold, _ = await calls(host, f"cold-{number}", Path(folder), warm=False)
                warm, second = await calls(host, f"warm-{number}", Path(folder), warm=True)
                for kind, taken in (("cold", cold), ("warm", warm), ("second", second)):
                    found[kind].append(taken)
        finally:
            await host.close()
    return {kind: round(statistics.median(taken), 1) for kind, taken in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    found = asyncio.run(measure(parser.parse_args().rounds))
    print("| first call of a session | ms, median |\n|---|---|")
    for kind, taken in found.items():
        print(f"| {kind} | {taken} |")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
