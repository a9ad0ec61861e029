"""The steps of a plan while they are being written: by the planner, by a mode's own opening, or by whoever feeds them.

Asking is yielding: a method that needs a model's answer is a generator of questions, which is sent each answer's text
(None if none can be had). So nothing here waits, and equal answers make equal plans.
"""

from __future__ import annotations

from collections.abc import Generator

from core.plan import questions
from core.plan.admission import NOT_STARTED
from core.plan.execution import Execution
from core.plan.forms import read_step
from core.plan.model import WORK, Node, PlanError
from core.plan.seams import Question
from core.plan.streaming import StepReader
from core.plan.validate import PlanInvalid
from core.ports import JSON

Thinking = Generator[Question, str | None, None]
"""A thought: it yields questions, and is sent what was answered."""


class Planner:
    """The writing of one plan. `growing`: somebody else is still writing it, with `write` and `written`."""

    def __init__(self, run: Execution, *, growing: bool) -> None:
        self.growing = growing
        self.reading = False
        """Whether the answer that is being given is a plan whose steps may start while it is written."""
        self._run = run
        self._reader = StepReader()
        self._held: dict[str, Node] = {}
        self._problems: list[str] = []

    # --- asking for steps -----------------------------------------------------------------------------

    def plan(self) -> Thinking:
        """Ask for the steps of a plan that has none."""
        run = self._run
        opening = run.mode.opening(run.goal, run.infos())
        if opening is not None:
            yield from self._open(opening)
            return
        question = Question("plan", "smart", questions.plan(run.goal, run.infos()))
        self.reading = True
        text = yield question
        self.reading = False
        if text is None:
            run.warn("No plan could be had, so nothing was done.")
            return
        if self._finish_reading():
            yield from self._corrected(question, text)

    def _open(self, question: Question) -> Thinking:
        """The mode's own opening, with one corrected try."""
        run = self._run
        for _ in range(2):
            text = yield question
            if text is None:
                run.warn("No plan could be had, so nothing was done.")
                return
            try:
                self._run.add("profile", run.mode.opened(text, run.catalogue))
            except PlanError as error:
                run.warn(f"The plan could not be used: {error}")
                question = Question("correct", "smart", questions.correct(question.text, text, [str(error)]))
            else:
                return

    def _corrected(self, question: Question, text: str) -> Thinking:
        """The planner's one corrected try; steps that have started stay as they are."""
        run = self._run
        running = [one for one, node in run.state.plan.nodes.items() if node.kind in WORK]
        problems = [
            *self._problems,
            *([f"These steps run already, don't write them again: {', '.join(running)}."] if running else []),
        ]
        rest = yield Question("correct", "smart", questions.correct(question.text, text, problems))
        nodes = self._parsed(rest) if rest is not None else None
        if nodes is None:
            run.warn("The plan could not be used, also after one correction.", *self._problems)
            return
        self._run.add("corrected", nodes)

    def plan_on(self) -> Thinking:
        """The planner was cut off: what it wrote stands, and a step that it writes again is the one that stands."""
        run = self._run
        reason = "the plan was cut off while it was being written"
        asked = questions.replan(run.goal, run.infos(), run.state, reason)
        text = yield Question("plan", "smart", asked)
        if text is None:
            return
        try:
            checked = run.admission.read_rest(text)
        except PlanError as error:
            run.warn(f"The rest of the plan could not be used: {error}")
            return
        if checked is not None:
            run.warn(*checked.warnings)
            self._run.add("planned on", list(checked.nodes.values()))

    def replan(self, reason: str) -> Thinking:
        """Ask for further steps in place of those that have not run; one corrected try."""
        run, state = self._run, self._run.state
        question = Question("replan", "smart", questions.replan(run.goal, run.infos(), state, reason))
        text = yield question
        nodes = self._parsed(text) if text is not None else None
        if nodes is None and text is not None:
            correction = questions.correct(question.text, text, self._problems)
            rest = yield Question("correct", "smart", correction)
            nodes = self._parsed(rest) if rest is not None else None
        if nodes is None or run.cancelled:
            run.warn("No usable new plan could be had; the old one stands.")
            return
        run.superseded.update(state.work_in("failed"))
        gone = state.work_in(*NOT_STARTED, "failed_retryable")
        run.adopt(state.plan.revise(f"replan: {reason}", add=nodes, drop=gone, finished=[]))

    def break_off(self) -> bool:
        """The answer that is being read breaks off. Whether some of it was read; what was complete stands."""
        begun = self.reading and bool(self._reader.text)
        if begun:
            self.reading = False
            self._reader = StepReader()
            self._held.clear()
        return begun

    def _parsed(self, text: str) -> tuple[Node, ...] | None:
        """The valid steps in a reply, with ids of their own; None and `_problems` if it has none."""
        try:
            checked = self._run.admission.read(text)
        except PlanError as error:
            self._problems = _problems_of(error)
            return None
        self._run.warn(*checked.warnings)
        return tuple(checked.nodes.values())

    # --- a plan that is still being written -------------------------------------------------------------

    def write(self, piece: str) -> None:
        """The next piece of a plan that is being written."""
        for raw in self._reader.feed(piece):
            self._arrived(raw)

    def written(self) -> None:
        """The writer is done; what is wrong goes into the warnings."""
        self.growing = False
        if self._finish_reading():
            self._run.warn(*self._problems)

    def _arrived(self, raw: JSON) -> None:
        """Hold a complete step until what it depends on has arrived; then it may run."""
        try:
            node = read_step(raw)
        except PlanError as error:
            self._problems.append(str(error))
            return
        if node.id in self._held or node.id in self._run.state.nodes:
            self._problems.append(f"Two steps have the id {node.id!r}; give each its own.")
            return
        self._held[node.id] = node
        while self._admit_some():
            pass

    def _admit_some(self) -> bool:
        present = self._run.state.plan.nodes
        able = [n for n in self._held.values() if all(d in present for d in n.dependencies)]
        return bool([n for n in able if self._admitted(n)])

    def _admitted(self, node: Node) -> bool:
        try:
            self._run.admission.check([node], self._run.state.plan.nodes.keys())
        except PlanError:
            return False
        del self._held[node.id]
        self._run.add("written", [node])
        return True

    def _finish_reading(self) -> bool:
        """Take what is left, with dangling references pruned. Whether something is wrong."""
        run = self._run
        for raw in self._reader.close():
            self._arrived(raw)
        begun = any(node.kind in WORK for node in run.state.plan.nodes.values())
        if not begun and not self._held and not self._problems:
            nodes = self._parsed(self._reader.text)
            if nodes is not None:
                self._run.add("planned", nodes)
            return nodes is None
        if self._held:
            try:
                checked = run.admission.check(self._held.values(), run.state.plan.nodes.keys())
            except PlanError as error:
                self._problems.extend(_problems_of(error))
                return True
            run.warn(*checked.warnings)
            self._held.clear()
            self._run.add("written", list(checked.nodes.values()))
        return bool(self._problems)


def _problems_of(error: PlanError) -> list[str]:
    return list(error.problems) if isinstance(error, PlanInvalid) else [str(error)]
