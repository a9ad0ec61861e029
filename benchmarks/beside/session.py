"""Runs one session of the checkout in the working directory, and prints the measurements as JSON.

    python session.py CALLS live|scratch docker|bubblewrap THINKS

Runs with either commit, so it only uses what both have: the settings, the wiring, a session and its journal.
The model is a script that answers after THINKS seconds; gate, journal, module, container and versions are real.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Protocol

sys.path.insert(0, os.getcwd())

from iact import wiring
from iact.core.models.roles import Models
from iact.core.ports import ChatMessage, ModelEvent, ModelProfile, StreamEnd, TextDelta
from iact.core.session import models as session_models
from iact.settings import Settings

_LOOK = "```shell.run\ncat notes.txt | wc -l\n```"
_WRITE = "```shell.run\necho one more line >> notes.txt\n```"


class Record(Protocol):
    """A journal's record, in the form that both commits have, wherever the class is defined."""

    @property
    def kind(self) -> str: ...

    @property
    def at(self) -> str: ...

    def text(self, name: str) -> str: ...


class Script:
    """A model that sends the given replies, one per turn, and then says that it is done. It waits before each reply."""

    def __init__(self, thinks: float) -> None:
        self.replies: list[str] = []
        self._thinks = thinks

    @property
    def profile(self) -> ModelProfile:
        return ModelProfile("script", 1_000_000)

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        await asyncio.sleep(self._thinks)
        yield TextDelta(self.replies.pop(0) if self.replies else "Done.")
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return

    async def close(self) -> None:
        return


async def measure(calls: int, where: str, backend: str, thinks: float) -> dict[str, object]:
    """Milliseconds from the end of a turn to the outcome of its call, by kind of call; and the modules' memory."""
    script = Script(thinks)
    setattr(session_models, "open_models", lambda *given, **options: Models({"smart": script}))  # noqa: B010 - of either commit
    with tempfile.TemporaryDirectory(prefix="iact-beside-") as folder:
        data, live = Path(folder) / "data", Path(folder) / "live"
        live.mkdir()
        (live / "notes.txt").write_text("a line\n")
        settings = Settings.model_validate(
            {"data": data, "model": "script", "memory": "off", "sandbox": backend}
        )
        async with wiring.open_runtime(settings, pool=1) as runtime:
            await _filled(runtime)
            place = live if where == "live" else None
            session = await runtime.open(intent=2, workspace=place)
            taken: dict[str, list[float]] = {}
            for name, replies in (
                ("first look", [_LOOK]),
                ("first write", [_WRITE]),
                ("look", [_LOOK] * calls),
                ("write", [_WRITE] * calls),
            ):
                since = len(session.records())
                script.replies = list(replies)
                await session.ask(name)
                taken[name] = _times(session.records(since))
            memory, shared = _memory(session.id, backend)
            return {
                "taken": taken, "memory_mb": memory, "shared_mb": shared, "modules": session.modules_running
            }  # fmt: skip


async def _filled(runtime: object) -> None:
    """Wait until the pool has a set of instances and the machine is idle, as it is when a person begins a session."""
    pool = getattr(runtime, "_host").pool  # noqa: B009 - a private name, alike in both commits
    async with asyncio.timeout(60):
        while not pool.ready:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    await asyncio.sleep(1)


def _times(records: Sequence[Record]) -> list[float]:
    """The milliseconds from each turn that contains a call to the result of the call."""
    found: list[float] = []
    last: Record | None = None
    for record in records:
        if record.kind == "turn":
            last = record
        elif record.kind == "result" and last is not None:
            assert record.text("status") == "ok", record
            found.append((_seconds(record.at) - _seconds(last.at)) * 1000)
    return found


def _seconds(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()


def _memory(session: str, backend: str) -> tuple[float, float]:
    """Megabytes that the session's containers use now: as the engine counts them, and as PSS, which divides pages that
    several processes map. Only root can read PSS.
    """
    if backend != "docker":
        return 0.0, 0.0
    named = _docker("ps", "--format", "{{.Names}}")
    ours = [name for name in named if session in name]
    told = sum(map(_megabytes, _docker("stats", "--no-stream", "--format", "{{.MemUsage}}", *ours)))
    processes = [line for name in ours for line in _docker("top", name, "-o", "pid")[1:]]
    return round(told, 1), round(sum(map(_mapped, processes)), 1)


def _mapped(process: str) -> float:
    """Megabytes of a process in memory, with its share of each shared page."""
    try:
        rows = Path(f"/proc/{process.strip()}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return sum(int(row.split()[1]) for row in rows if row.startswith("Pss:")) * 1.024e-3


def _docker(*arguments: str) -> list[str]:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def _megabytes(usage: str) -> float:
    """The first size in "21.4MiB / 512MiB". A container that has just ended has "0B"."""
    found = re.match(r"([0-9.]+)([KMG]?)i?B", usage)
    assert found is not None, usage
    return float(found[1]) * {"": 1 / 1048576, "K": 1 / 1024, "M": 1.0, "G": 1024.0}[found[2]] * 1.048576


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(int(sys.argv[1]), sys.argv[2], sys.argv[3], float(sys.argv[4])))))
