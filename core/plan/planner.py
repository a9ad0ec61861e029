"""Writes a plan's steps: asks for them, takes each as soon as it is complete, and has what is wrong corrected once.

A step runs while the following ones are still being written, so what has arrived stands, and a correction or a
new plan adds to it under ids of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.plan import questions
from core.plan.admission import NOT_STARTED
from core.plan.asking import Asking
from core.plan.forms import read_step
from core.plan.model import WORK, Node, PlanError
from core.plan.seams import FunctionInfo, Question
from core.plan.streaming import StepReader
from core.plan.validate import PlanInvalid
from core.ports import JSON

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine


class Planner:
    """The writing of one plan. `growing`: somebody else is still writing it, with `write` and `written`."""

    def __init__(self, engine: PlanEngine, asking: Asking, *, growing: bool) -> None:
        self.growing = growing
        self._engine = engine
        self._asking = asking
        self._reader = StepReader()
        self._held: dict[str, Node] = {}
        self._problems: list[str] = []

    def infos(self) -> Sequence[FunctionInfo]:
        """The functions that steps may call."""
        return self._engine.catalogue.all() if self._engine.catalogue is not None else ()

    def add(self, reason: str, nodes: Sequence[Node]) -> None:
        """Go over to the version that adds `nodes`; the first one if there is none yet."""
        engine = self._engine
        version = engine.state.plan.revise(reason, add=nodes)
        if not engine.state.versions:
            version = dataclasses.replace(version, version=1, parent=None)
        engine.adopt(version)

    # --- asking for steps -----------------------------------------------------------------------------

    async def plan(self) -> None:
        """Ask for the steps of a plan that has none."""
        engine = self._engine
        opening = engine.mode.opening(engine.goal, self.infos())
        if opening is not None:
            await self._open(opening)
            return
        question = Question("plan", "smart", questions.plan(engine.goal, self.infos()))
        text = await self._asking.ask(question, self._read)
        if text is None:
            engine.warn("No plan could be had, so nothing was done.")
            return
        if self._finish_reading():
            await self._corrected(question, text)

    async def _open(self, question: Question) -> None:
        """The mode's own opening, with one corrected try."""
        engine = self._engine
        for _ in range(2):
            text = await self._asking.ask(question)
            if text is None:
                engine.warn("No plan could be had, so nothing was done.")
                return
            try:
                self.add("profile", engine.mode.opened(text, engine.catalogue))
            except PlanError as error:
                engine.warn(f"The plan could not be used: {error}")
                question = Question("correct", "smart", questions.correct(question.text, text, [str(error)]))
            else:
                return

    async def _corrected(self, question: Question, text: str) -> None:
        """The planner's one corrected try; steps that have started stay as they are."""
        engine = self._engine
        running = [one for one, node in engine.state.plan.nodes.items() if node.kind in WORK]
        problems = [
            *self._problems,
            *([f"These steps run already, don't write them again: {', '.join(running)}."] if running else []),
        ]
        nodes = await self._steps(
            Question("correct", "smart", questions.correct(question.text, text, problems))
        )
        if nodes is None:
            engine.warn("The plan could not be used, also after one correction.", *self._problems)
            return
        self.add("corrected", nodes)

    async def plan_on(self) -> None:
        """The planner was cut off: what it wrote stands, and a step that it writes again is the one that stands."""
        engine = self._engine
        reason = "the plan was cut off while it was being written"
        asked = questions.replan(engine.goal, self.infos(), engine.state, reason)
        text = await self._asking.ask(Question("plan", "smart", asked))
        if text is None:
            return
        try:
            checked = engine.admission.read_rest(text)
        except PlanError as error:
            engine.warn(f"The rest of the plan could not be used: {error}")
            return
        if checked is not None:
            engine.warn(*checked.warnings)
            self.add("planned on", list(checked.nodes.values()))

    async def replan(self, reason: str) -> None:
        """Ask for further steps in place of those that have not run; one corrected try."""
        engine, state = self._engine, self._engine.state
        question = Question("replan", "smart", questions.replan(engine.goal, self.infos(), state, reason))
        text = await self._asking.ask(question)
        nodes = self._parsed(text) if text is not None else None
        if nodes is None and text is not None:
            correction = questions.correct(question.text, text, self._problems)
            nodes = await self._steps(Question("correct", "smart", correction))
        if nodes is None or engine.cancelled:
            engine.warn("No usable new plan could be had; the old one stands.")
            return
        engine.superseded.update(state.work_in("failed"))
        gone = state.work_in(*NOT_STARTED, "failed_retryable")
        engine.adopt(state.plan.revise(f"replan: {reason}", add=nodes, drop=gone, finished=[]))

    async def _steps(self, question: Question) -> tuple[Node, ...] | None:
        text = await self._asking.ask(question)
        return self._parsed(text) if text is not None else None

    def _parsed(self, text: str) -> tuple[Node, ...] | None:
        """The valid steps in a reply, with ids of their own; None and `_problems` if it has none."""
        try:
            checked = self._engine.admission.read(text)
        except PlanError as error:
            self._problems = _problems_of(error)
            return None
        self._engine.warn(*checked.warnings)
        return tuple(checked.nodes.values())

    # --- a plan that is still being written -------------------------------------------------------------

    def write(self, piece: str) -> None:
        """The next piece from whoever writes the plan."""
        self._read(piece)

    def written(self) -> None:
        """The writer is done; what is wrong goes into the warnings."""
        self.growing = False
        if self._finish_reading():
            self._engine.warn(*self._problems)

    def _read(self, piece: str) -> None:
        for raw in self._reader.feed(piece):
            self._arrived(raw)
        self._engine.pump()

    def _arrived(self, raw: JSON) -> None:
        """Hold a complete step until what it depends on has arrived; then it may run."""
        try:
            node = read_step(raw)
        except PlanError as error:
            self._problems.append(str(error))
            return
        if node.id in self._held or node.id in self._engine.state.nodes:
            self._problems.append(f"Two steps have the id {node.id!r}; give each its own.")
            return
        self._held[node.id] = node
        while self._admit_some():
            pass

    def _admit_some(self) -> bool:
        present = self._engine.state.plan.nodes
        able = [n for n in self._held.values() if all(d in present for d in n.dependencies)]
        return bool([n for n in able if self._admitted(n)])

    def _admitted(self, node: Node) -> bool:
        try:
            self._engine.admission.check([node], self._engine.state.plan.nodes.keys())
        except PlanError:
            return False
        del self._held[node.id]
        self.add("written", [node])
        return True

    def _finish_reading(self) -> bool:
        """Take what is left, with dangling references pruned. Whether something is wrong."""
        engine = self._engine
        for raw in self._reader.close():
            self._arrived(raw)
        begun = any(node.kind in WORK for node in engine.state.plan.nodes.values())
        if not begun and not self._held and not self._problems:
            nodes = self._parsed(self._reader.text)
            if nodes is not None:
                self.add("planned", nodes)
            return nodes is None
        if self._held:
            try:
                checked = engine.admission.check(self._held.values(), engine.state.plan.nodes.keys())
            except PlanError as error:
                self._problems.extend(_problems_of(error))
                return True
            engine.warn(*checked.warnings)
            self._held.clear()
            self.add("written", list(checked.nodes.values()))
        return bool(self._problems)


def _problems_of(error: PlanError) -> list[str]:
    return list(error.problems) if isinstance(error, PlanInvalid) else [str(error)]
