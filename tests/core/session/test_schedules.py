"""Interleaving never matters: the same outcomes under any schedule give every agent the same history."""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from core.gate.gate import Ticket
from core.models.roles import Models
from core.modules.client import OnArtifact, Outcome
from core.modules.door import FunctionCall, Modules
from core.ports import ChatMessage, ModelEvent, ModuleHost, Report
from core.records.record import Record
from core.session.replay import replay
from core.session.runtime import Runtime
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies

SCHEDULES = int(100 * float(os.environ.get("IACT_TEST_SCALE", "1")))

SCRIPT = {
    "/": [
        "```CALL_ASYNC a\nOne.\n```\n```CALL_ASYNC b\nTwo.\n```\n```CALL_ASYNC c\nThree.\n```\n```WRITE\nroot\n```\n```WAIT\n```",
        "```CALL b\nOnce more: $a_1\n```",
        "All done.",
    ],
    "/a": ["```CALL d\nDeeper.\n```\n```READ\na\n```", "From a."],
    "/b": ["```WRITE\nb1\n```\n```WRITE\nb2\n```", "From b.", "Again from b."],
    "/c": ["```t.fail\nc\n```", "```t.lose\nc\n```", "From c."],
    "/a/d": [
        "```VAR v\nvalue\n```\n```READ text=$v\n```\n```READ\nd1\n```\n```READ\nd2\n```\n```WRITE\nd3\n```",
        "From d: $v",
    ],
}
_PASSING = {"call", "turn", "took", "ms", "first_ms", "usage", "context", "seen"}
"""Fields that hold record numbers or times."""


class Dithering(ScriptedModel):
    """Gives way a random number of times before every chunk."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(replies(SCRIPT), chunk=8)
        self._dice = dice

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        async for event in super().stream(messages, max_tokens=max_tokens):
            for _ in range(self._dice.randrange(6)):
                await asyncio.sleep(0)
            yield event


class DitheringModules(FakeModules):
    """The same for calls."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(World())
        self._dice = dice

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        for _ in range(self._dice.randrange(20)):
            await asyncio.sleep(0)
        return await super().call(ticket, call, on_output=on_output, on_artifact=on_artifact, report=report)


def play(data: Path, seed: int) -> list[Record]:
    dice = random.Random(seed)

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return DitheringModules(dice)

    async def main() -> Path:
        models = Models({"smart": Dithering(dice)})
        async with Runtime(
            data, models, FakeHost(), clock=TickingClock(), open_modules=open_modules
        ) as opened:
            session = await opened.open()
            await session.ask("Go")
            return session.journal

    return list(replay(asyncio.run(main()), verify=True).records)


def histories(records: Sequence[Record]) -> dict[str, list[object]]:
    """Each agent's records without numbers and times. What a WAIT took is compared as a set: its order is an outcome.

    What an agent draws from the pool is left out as well: it depends on what the others have used of it.
    """
    agents = {record.n: record.agent for record in records}
    found: dict[str, list[object]] = defaultdict(list)
    for record in records:
        if record.kind in ("open", "module", "notice", "draw"):
            continue
        fields = {name: value for name, value in record.fields.items() if name not in _PASSING}
        took = record.fields.get("took")
        heard = sorted(agents[n] for n in took if isinstance(n, int)) if isinstance(took, list) else []
        found[record.agent].append((record.kind, record.body, fields, heard))
    return found


def test_every_schedule_gives_every_agent_the_same_history(tmp_path: Path) -> None:
    first = histories(play(tmp_path / "first", 0))
    orders = set()
    for seed in range(1, SCHEDULES):
        records = play(tmp_path / str(seed), seed)
        assert histories(records) == first
        orders.add(tuple((record.kind, record.agent) for record in records))
    assert len(orders) > SCHEDULES // 10, "the schedules were hardly different"
