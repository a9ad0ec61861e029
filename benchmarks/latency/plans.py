"""Plans: the engine in each mode, with a timed planner and the same tools."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.latency.dialogue import dialogue
from benchmarks.latency.work import ANSWER, Measured, Meter, before, goal, tool
from iact.core.clock import SystemClock
from iact.core.plan.model import make_plan
from iact.core.plan.modes import auto
from iact.core.plan.modes.registry import make_mode
from iact.core.plan.protocol import Firing, FunctionInfo, Outcome, PlanQuestion, StepSuccess
from iact.core.ports import JSON
from tests.core.plan.engine import PlanEngine, Waiting

MODES: Final = ("static", "reflect", "nreflect", "orchestrator", "analyze", "profile")
_INFO: Final = FunctionInfo("t.read", "Reads a part.", {"type": "object"}, idempotent=True)
_OTHERS: Final = tuple(
    FunctionInfo(f"t.other{number}", "Another function of the scope.") for number in range(29)
)


class Functions:
    """Thirty functions. The planner sees their names and summaries."""

    def find(self, name: str) -> FunctionInfo | None:
        return next((info for info in self.all() if info.name == name), None)

    def of_call(self, name: str, arguments: Mapping[str, JSON]) -> FunctionInfo | None:
        return self.find(name)

    def all(self) -> list[FunctionInfo]:
        return [_INFO, *_OTHERS]


class Reader:
    """Fires a node: the tool, with its latency."""

    async def run(self, firing: Firing, waiting: Waiting) -> Outcome:
        return StepSuccess(await tool())


@dataclass
class Timed:
    """A model that answers every question without mistakes, after the time that a model takes."""

    meter: Meter
    count: int

    async def ask(self, question: PlanQuestion) -> AsyncGenerator[str]:
        text = self._reply(question)
        await self.meter.think(len(question.text), len(text))
        yield text

    def _reply(self, question: PlanQuestion) -> str:
        if question.kind in ("plan", "profile"):
            extra: dict[str, JSON] = {"confidence": 0.95} if question.kind == "profile" else {}
            return json.dumps({"steps": [_step(number) for number in range(self.count)], **extra})
        if question.kind == "observe":
            return '{"action": "continue"}'
        if question.kind == "analyze":
            return json.dumps({"achieved": True, "confidence": 0.95, "reasoning": "", "final_answer": ANSWER})
        if question.kind == "reflect":
            over = "Still planned:\n- nothing" in question.text
            return json.dumps(
                {"decision": "conclude" if over else "continue", "answer": ANSWER if over else None}
            )
        return ANSWER


def _step(number: int) -> JSON:
    behind = before(number)
    after: list[JSON] = [] if behind is None else [f"s{behind}"]
    return {"id": f"s{number}", "call": "t.read", "params": {"part": f"part {number}"}, "after": after}


async def plan(count: int, name: str) -> Measured:
    """Run one plan in one mode, including the planner. `static` ends with one call that writes the answer."""
    meter = Meter()
    asker = Timed(meter, count)
    engine = PlanEngine(
        make_plan("p", (), goal=goal(count)), runner=Reader(), clock=SystemClock(), asker=asker,
        catalogue=Functions(), mode=make_mode(name),
    )  # fmt: skip
    begin = time.perf_counter()
    result = await engine.run()
    if name == "static":
        await meter.think(sum(len(str(record.output)) for record in result.nodes.values()), len(ANSWER))
    assert result.status == "concluded", (name, result.status, result.missing, result.warnings)
    assert sum(record.node.kind == "tool" for record in result.nodes.values()) == count
    return Measured.since(begin, meter)


async def routed(count: int) -> tuple[Measured, str]:
    """Measure the request in the way of working that the router chooses. Also returns its choice."""
    like = auto.Features(steps=count + 1, foreseeable=True, depends=False, repeat=False, branches=False)
    way = auto.choose(like).way
    return (await dialogue(count, together=False) if way == "dialogue" else await plan(count, way)), way
