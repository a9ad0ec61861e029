"""The questions of a group to a model, and the two models that answer: a simulated one, and an endpoint.

THE SIMULATED MODEL IS AN ASSUMPTION, not a measurement of any model. It reads the same questions that an
endpoint would get, knows the task, and makes mistakes of known kinds at known rates (`Rates`), drawn from a
seed. Its answers are text in the requested form, so the engine reads them like any model's answers. Its
latency and its price follow from the number of tokens that it reads and writes.
"""

from __future__ import annotations

import ast
import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final, Protocol

from benchmarks.seven_groups.world import NEAR, World
from iact.core.plan.protocol import PlanQuestion
from iact.core.ports import JSON
from iact.evaluation.graph_tasks import Step

CHARACTERS_PER_TOKEN: Final = 4


@dataclass(frozen=True, slots=True)
class Rates:
    """Chances of the simulated model's mistakes, and its speed.

    `literal`: a wrong word in a call; `silent`: the share of these that no tool complains about.
    `forget`: a planner leaves a step out. `unlink`: it forgets to pass a result on. `drift`: a loop makes an
    unnecessary call; `early`: it believes that it is done. `rot`: how much the mistakes of a decision grow with
    each thousand tokens of its context. `mend`: it draws the right conclusion from an error; `mend_upstream`:
    the same if the error was made before the failed step and only that step is shown.
    `first`, `per_input`, `per_output`: seconds of a call, and per token read and written.
    """

    literal: float = 0.04
    silent: float = 0.15
    forget: float = 0.02
    unlink: float = 0.02
    drift: float = 0.03
    early: float = 0.01
    rot: float = 0.1
    mend: float = 0.85
    mend_upstream: float = 0.3
    first: float = 0.6
    per_input: float = 0.00005
    per_output: float = 0.0125

    def scaled(self, factor: float) -> Rates:
        """The same rates with all mistakes `factor` times as frequent."""
        return Rates(
            literal=self.literal * factor, forget=self.forget * factor, unlink=self.unlink * factor,
            drift=self.drift * factor, early=self.early * factor, mend=1 - min(1.0, (1 - self.mend) * factor),
            mend_upstream=self.mend_upstream,
        )  # fmt: skip


@dataclass
class Meter:
    """What a run has spent."""

    tokens: int = 0
    model_calls: int = 0

    def count(self, question: str, answer: str) -> tuple[int, int]:
        """Add one call. Returns its tokens in and out."""
        read, written = len(question) // CHARACTERS_PER_TOKEN, max(1, len(answer) // CHARACTERS_PER_TOKEN)
        self.tokens += read + written
        self.model_calls += 1
        return read, written


class Mind(Protocol):
    """Answers questions of the plan engine (as its `Asker`), and those of a loop."""

    meter: Meter

    def ask(self, question: PlanQuestion) -> AsyncGenerator[str]: ...
    async def decide(self, text: str, *, careful: bool, planned: bool) -> str:
        """The next action of a loop, as JSON: {"call", "params"} or {"finish": VALUE}.

        `careful`: the prompt asks the model to reflect before it acts. `planned`: the prompt contains a plan.
        """
        ...

    async def amend(self, text: str, failed: JSON, error: str) -> str:
        """Other parameters for a call that failed, as JSON: {"params"}."""
        ...

    def saw(self, output: str | None, error: str) -> None:
        """Receive the result of a loop's last action. The next text contains it as well."""
        ...


@dataclass
class Simulated:
    """The simulated model in one run."""

    world: World
    rates: Rates
    rng: random.Random
    meter: Meter = field(default_factory=Meter)
    nodes: dict[str, str] = field(default_factory=dict)
    """For a plan: the node of each step id."""
    _made: int = 0
    _known: dict[str, str] = field(default_factory=dict)
    """Literals that it learned from errors, by step id."""
    _had: dict[str, str] = field(default_factory=dict)
    """For a loop: what it believes is the value of each step, including mistakes that were not reported to it."""
    _last: str = ""
    _doing: str = ""

    # --- questions of the engine --------------------------------------------------------------------

    async def ask(self, question: PlanQuestion) -> AsyncGenerator[str]:
        if question.kind == "patch":
            text = self._patch(question.text)
        elif question.kind in ("plan", "correct"):
            text = json.dumps({"steps": self._steps(self.world.task.steps, {})})
        elif question.kind == "replan":
            text = json.dumps({"steps": self._rest()})
        else:
            text = json.dumps({"decision": "continue", "reason": "", "holds": True})
        await self._spend(question.text, text)
        yield text

    def _steps(self, steps: tuple[Step, ...], there: dict[str, str], suffix: str = "") -> list[JSON]:
        """Steps as a planner writes them, with its mistakes. `there`: the node that has the value, by step id."""
        written: list[JSON] = []
        names = dict(there)
        for step in steps:
            if step is not steps[-1] and self._slips(self.rates.forget):
                continue
            names[step.id] = f"{step.id}{suffix}"
            written.append(self._node(step, names, names[step.id]))
        self.nodes.update(names)
        return written

    def _node(self, step: Step, names: dict[str, str], id: str) -> dict[str, JSON]:
        refs: dict[str, JSON] = {}
        for parameter, one in zip(step.tool.inputs, step.inputs, strict=False):
            if one in names and not self._slips(self.rates.unlink):
                refs[parameter] = {"step": names[one], "field": "value"}
        params: dict[str, JSON] = {step.tool.literal: self._word(step)}
        return {"id": id, "call": step.tool.name, "params": params, "refs": refs}

    def _rest(self) -> list[JSON]:
        """The remaining steps, given all errors so far. Correct results are used again."""
        for step in self.world.task.steps:
            if self.world.literal(step) != step.literal and not self._slips(1 - self.rates.mend):
                self._known[step.id] = self.world.literal(step)
        there = {one: given for one, given in self.nodes.items() if one in self.world.values}
        todo = tuple(step for step in self.world.task.steps if step.id not in there)
        self._made += 1
        return self._steps(todo or self.world.task.steps[-1:], there, f"-r{self._made}")

    def _patch(self, text: str) -> str:
        """A replacement for the step that the question shows."""
        shown = re.search(r"The step: (\{.*\})\n", text)
        error = re.search(r"Its error: (.*)", text)
        node = ast.literal_eval(shown[1]) if shown else {}
        step = self._meant(str(node.get("id", "")))
        if step is None:
            return json.dumps({"skip": False, "reason": "It can't be told what this step was for."})
        self._made += 1
        suffix = f"-p{self._made}"
        trouble = self.world.task.troubles.get(step.id)
        upstream = "has to be made with" in (error[1] if error else "")
        if self._slips(1 - (self.rates.mend_upstream if upstream else self.rates.mend)):
            return json.dumps({"steps": [self._node(step, self.nodes, f"{step.id}{suffix}")]})
        if trouble is not None and trouble.kind == "moved":
            self._known[step.id] = trouble.now
        if upstream and trouble is not None:
            self._known[trouble.of] = trouble.now
        there = {one: given for one, given in self.nodes.items() if one in self.world.values}
        needed = [
            self.world.task.step(one)
            for one in step.inputs
            if one not in there and (upstream or one not in self.nodes)
        ]
        return json.dumps({"steps": self._steps((*needed, step), {**self.nodes, **there}, suffix)})

    def _meant(self, id: str) -> Step | None:
        one = id.partition("-")[0]
        return next((step for step in self.world.task.steps if step.id == one), None)

    # --- questions of a loop ------------------------------------------------------------------------

    async def decide(self, text: str, *, careful: bool, planned: bool) -> str:
        rotten = 1 + self.rates.rot * len(text) / CHARACTERS_PER_TOKEN / 1000
        factor = rotten * (0.6 if careful else 1.0) * (0.7 if planned else 1.0)
        answer = json.dumps(self._action(factor))
        # A careful prompt makes it think aloud before it acts.
        thought = 240 if careful else 80
        await self._spend(text, answer + " " * thought)
        return answer

    def _action(self, factor: float) -> JSON:
        world, task = self.world, self.world.task
        last = task.steps[-1]
        if last.id in world.values:
            return {"finish": world.values[last.id]}
        if self._last and self._slips(self.rates.early * factor):
            return {"finish": self._last}
        if self._slips(self.rates.drift * factor):
            step = self.rng.choice([one for one in task.steps if not one.inputs])
            return {"call": step.tool.name, "params": {step.tool.literal: self._word(step)}}
        missing = [one for one in task.steps if one.id not in self._had]
        ready = [one for one in missing if all(other in self._had for other in one.inputs)]
        if not ready:  # every value exists, but the result is wrong: a mistake that was not reported to it
            return {"finish": self._last}
        step = ready[0]
        params: dict[str, JSON] = {step.tool.literal: self._word(step, factor)}
        for parameter, one in zip(step.tool.inputs, step.inputs, strict=False):
            if not self._slips(self.rates.unlink * factor):
                params[parameter] = self._had.get(one, "")
        self._doing = step.id
        return {"call": step.tool.name, "params": params}

    def saw(self, output: str | None, error: str) -> None:
        """Receive a loop's result. It may learn from an error."""
        if output is not None:
            self._last = output
            if self._doing:
                self._had[self._doing] = output
        elif self._doing and not self._slips(1 - self.rates.mend):
            trouble = self.world.task.troubles.get(self._doing)
            if trouble is not None and trouble.kind == "moved" and "is called" in error:
                self._known[self._doing] = trouble.now
            if trouble is not None and trouble.kind == "upstream" and "has to be made" in error:
                self._known[trouble.of] = trouble.now
                self._had.pop(trouble.of, None)
        self._doing = ""

    async def amend(self, text: str, failed: JSON, error: str) -> str:
        node = failed if isinstance(failed, dict) else {}
        step = self._meant(str(node.get("id", "")))
        given = node.get("params")
        params = dict(given) if isinstance(given, dict) else {}
        if step is not None:
            trouble = self.world.task.troubles.get(step.id)
            if trouble is not None and trouble.kind == "moved" and not self._slips(1 - self.rates.mend):
                self._known[step.id] = trouble.now
            params[step.tool.literal] = self._word(step)
        answer = json.dumps({"params": params})
        await self._spend(text, answer)
        return answer

    # --- chance and cost ----------------------------------------------------------------------------

    def _slips(self, chance: float) -> bool:
        return self.rng.random() < chance

    def _word(self, step: Step, factor: float = 1.0) -> str:
        right = self._known.get(step.id, step.literal)
        if not self._slips(self.rates.literal * factor):
            return right
        return f"{step.literal}{NEAR}" if self._slips(self.rates.silent) else f"{right}?"

    async def _spend(self, question: str, answer: str) -> None:
        read, written = self.meter.count(question, answer)
        await asyncio.sleep(self.rates.first + read * self.rates.per_input + written * self.rates.per_output)
