"""The world in which tools run: deterministic, with known latencies, and the same for every group."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from iact.core.plan.protocol import Outcome, StepFailure, StepSuccess
from iact.core.ports import JSON
from iact.evaluation.graph_tasks import PARTS, GraphTask, Step, Tool, Trouble, needed, tools, value, wanted

NEAR: Final = "-old"
"""A literal with this ending is accepted silently and returns another value: an error that is not reported."""

_BULK: Final = "0123456789 " * 100
"""The text that a result has in addition to its value: about three hundred tokens."""

_TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in tools()}


@dataclass
class World:
    """The world of one run: counts attempts and remembers values. `calls`: how many calls reached a tool."""

    task: GraphTask
    calls: int = 0
    repeated: int = 0
    values: dict[str, str] = field(default_factory=dict)
    """The values of the steps that were done as the task needs them, by step id."""
    _tries: Counter[tuple[str, str, tuple[str, ...]]] = field(default_factory=Counter)
    _done: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)

    def literal(self, step: Step) -> str:
        """The literal that the step needs."""
        return needed(self.task, step)

    def wanted(self, one: str | None = None) -> str:
        """The value that a step (by default the last) must return."""
        return wanted(self.task, one)

    async def call(self, name: str, arguments: Mapping[str, JSON]) -> Outcome:
        """Run a tool. It takes its latency, even if it fails."""
        tool = _TOOLS.get(name)
        if tool is None:
            return StepFailure("raised", f"There is no tool {name!r}.")
        self.calls += 1
        await asyncio.sleep(tool.seconds)
        literal = str(arguments.get(tool.literal, ""))
        inputs = tuple(str(arguments[one]) for one in tool.inputs if one in arguments)
        key = (name, literal, inputs)
        self._tries[key] += 1
        outcome = self._answer(tool, literal, inputs, self._tries[key])
        if isinstance(outcome, StepFailure):
            return outcome
        self.repeated += key in self._done
        self._done.add(key)
        for step in self.task.steps:
            if outcome == self.wanted(step.id):
                self.values[step.id] = outcome
        return StepSuccess({"value": outcome, "text": _BULK})

    def _answer(self, tool: Tool, literal: str, inputs: tuple[str, ...], attempt: int) -> str | StepFailure:
        meant = [step for step in self.task.steps if step.tool is tool and self._meant(step, literal)]
        if not meant:
            names = sorted({step.literal for step in self.task.steps if step.tool is tool})
            hint = f"; there is {', '.join(names)}" if names else ""
            return StepFailure("raised", f"There is no {tool.literal} {literal!r}{hint}.")
        # Of several steps with the same literal, the one whose inputs fit best is meant.
        step = max(meant, key=lambda one: sum(self.wanted(i) in inputs for i in one.inputs))
        if len(inputs) < (1 if tool.inputs == PARTS else len(step.inputs)):
            return StepFailure("raised", f"The parameter {tool.inputs[len(inputs)]!r} is missing.")
        trouble = self.task.troubles.get(step.id)
        if trouble is not None:
            failure = self._trouble(trouble, step, literal, inputs, attempt)
            if failure is not None:
                return failure
        return value(tool.name, literal, inputs)

    def _meant(self, step: Step, literal: str) -> bool:
        return literal in (step.literal, self.literal(step), f"{step.literal}{NEAR}")

    def _trouble(
        self, trouble: Trouble, step: Step, literal: str, inputs: tuple[str, ...], attempt: int
    ) -> StepFailure | None:
        if trouble.kind == "flaky" and attempt <= trouble.times:
            return StepFailure("unavailable", "The tool did not answer.")
        if trouble.kind == "moved" and literal == step.literal:
            return StepFailure("raised", f"{literal!r} is called {trouble.now!r} now.")
        if trouble.kind == "upstream" and self.wanted(trouble.of) not in inputs:
            before = self.task.step(trouble.of)
            return StepFailure(
                "raised",
                f"The input made by {before.tool.name} {before.literal!r} can't be used here; it has to be made "
                f"with {before.tool.literal} {trouble.now!r}.",
            )
        return None
