"""The plain dialogue: the whole runtime with its journal, and a timed model and a timed module in memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.latency.work import ANSWER, SCHEMAS, THOUGHT, Measured, Meter, goal, tool, waves
from benchmarks.tree.fakes import InstantHost, InstantModules
from iact.core import Runtime
from iact.core.gate.gate import Ticket
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.ports import ChatMessage, ModelEvent, ModelProfile, ModuleHost, Report, StreamEnd, TextDelta
from iact.core.records.parts import Bounds

_WIDE: Final = 10**9


@dataclass
class TimedModel:
    """A model that sends `replies` one after another, each after the time that a model takes."""

    meter: Meter
    replies: Sequence[str]
    said: int = 0
    profile: ModelProfile = field(default_factory=lambda: ModelProfile("timed", _WIDE))

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        reply = self.replies[self.said]
        self.said += 1
        read = len(SCHEMAS) + sum(len(message.content) for message in messages)
        await self.meter.think(read, len(reply))
        yield TextDelta(reply)
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


class TimedModules(InstantModules):
    """The module with its latency."""

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        return Completed(await tool(), "text/plain", {}, None, (), None)


def _replies(count: int, together: bool) -> list[str]:
    turns = waves(count) if together else [[number] for number in range(count)]
    said = []
    for turn in turns:
        blocks = "\n\n".join(f"```t.read\npart {number}\n```" for number in turn)
        said.append(f"{THOUGHT.format(number=turn[0])}\n\n{blocks}")
    return [*said, ANSWER]


async def dialogue(count: int, *, together: bool) -> Measured:
    """Run one session. `together`: independent calls are in one reply; otherwise one call per turn, as in ReAct."""
    meter = Meter()

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return TimedModules()

    with tempfile.TemporaryDirectory() as folder:
        model = TimedModel(meter, _replies(count, together))
        bounds = Bounds(turns=10**6, tokens=_WIDE)
        async with Runtime(
            Path(folder), Models({"smart": model}), InstantHost(), bounds=bounds, open_modules=open_modules
        ) as running:
            session = await running.open()
            begin = time.perf_counter()
            await session.ask(goal(count))
            measured = Measured.since(begin, meter)
            results = sum(record.kind == "result" for record in session.records())
    assert results == count, f"{results} results of {count}"
    return measured
