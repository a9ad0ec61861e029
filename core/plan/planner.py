"""Writes a plan's steps: by the planner, by a mode's own opening, or from a caller that feeds them in.

To ask is to yield: a method that needs a model's answer is a generator of questions, which is sent the text of each
answer (None if there is none). So nothing here waits, and equal answers make equal plans.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Generator, Sequence
from typing import Final

from iact.core.plan import answers, questions
from iact.core.plan.admission import DONE_OR_RUNNING, NOT_STARTED
from iact.core.plan.answers import WayOut
from iact.core.plan.asking import asked
from iact.core.plan.execution import Execution
from iact.core.plan.forms import read_plan, read_step
from iact.core.plan.model import WORK, PlanError, PlanNode
from iact.core.plan.protocol import PlanQuestion
from iact.core.plan.step_reader import StepReader
from iact.core.plan.validate import Checked, PlanInvalid
from iact.core.ports import JSON

NO_PLAN: Final = "No plan could be had, so nothing was done."
"""What the run is warned of if its planner could not be asked."""

_FITS: Final = 2
"""How often the parameters of one set of steps are asked for again."""

Thinking = Generator[PlanQuestion, str | None, None]
"""A thought: it yields questions, and is sent their answers."""


class Planner:
    """The writing of one plan. `growing`: a caller is still writing it, with `write` and `written`."""

    def __init__(self, run: Execution, *, growing: bool) -> None:
        self.growing = growing
        self.reading = False
        """Whether the current answer is a plan whose steps may start while it is being written."""
        self._run = run
        run.whole = not growing
        self._reader = StepReader()
        self.given: Sequence[PlanNode] = ()
        """Steps that were not written by the planner."""
        self._held: dict[str, PlanNode] = {}
        """Steps that were read and wait for the steps that they depend on."""
        self._problems: list[str] = []
        """What is wrong with the steps that were read, in sentences."""

    # --- asking for steps -----------------------------------------------------------------------------

    def plan(self) -> Thinking:
        """Ask for the steps of a plan that has none."""
        run = self._run
        opening = run.mode.opening(run.situation(), self.given)
        if opening is not None:
            has_steps = yield from self._open(opening)
            if not has_steps and self.given:
                run.warn("The steps run as they are written, without a profile.")
                run.add("planned", self.given)
            if has_steps or self.given or not run.mode.falls_back():
                return

        # Its steps may start while it is being written, those with effects only when it is whole.
        question = questions.plan(run.situation())
        self.reading = True
        run.whole = False
        text = yield from asked(run, "plan", question)
        self.reading = False
        if text is None:
            run.warn(NO_PLAN)
            return

        reason, nodes = self._left()
        way_out = None if nodes or self._begun else answers.way_out(text)
        if way_out is not None:
            run.leave(way_out)
            return
        joined = yield from self._join(reason, nodes)
        if not joined:
            yield from self._corrected(question, text)

    @property
    def _begun(self) -> bool:
        """Whether any of its steps has joined the plan."""
        return any(node.kind in WORK for node in self._run.state.plan.nodes.values())

    def _open(self, opening: PlanQuestion) -> Generator[PlanQuestion, str | None, bool]:
        """Run the mode's own opening, with one corrected try, and one for parameters.

        Returns whether there are steps now.
        """
        run = self._run
        question = opening
        refits_left = 1
        tries_left = 2
        while tries_left:
            text = yield question
            if text is None:
                run.warn("No profile could be had.")
                return False

            try:
                run.join("profile", run.mode.opened(text, run.catalogue))
            except PlanError as error:
                run.warn(f"The plan could not be used: {error}")
                problems = _problems_of(error)
                if isinstance(error, PlanInvalid) and error.shaped and refits_left:
                    refits_left -= 1
                    corrected = questions.refit(opening.parts, text, run.infos(), problems)
                else:
                    tries_left -= 1
                    corrected = questions.correct(opening.parts, text, problems)
                question = PlanQuestion("correct", parts=corrected, shape=answers.SHAPES["profile"])
            else:
                return True
        return False

    def _corrected(self, question: questions.Question, text: str) -> Thinking:
        """Ask the planner for its one corrected try. Steps that have started stay as they are."""
        run = self._run
        running = [id for id, node in run.state.plan.nodes.items() if node.kind in WORK]
        problems = list(self._problems)
        if running:
            problems.append(f"These steps run already, don't write them again: {', '.join(running)}.")

        rest = yield from asked(run, "correct", questions.correct(question, text, problems))
        if run.concluded:
            return
        way_out = answers.way_out(rest) if rest is not None and not running else None
        if way_out is not None:
            run.leave(way_out)
            return

        problems_before = self._problems
        self._problems = []
        nodes = self._parsed(rest) if rest is not None else ()
        joined = yield from self._join("corrected", nodes, decided=True)
        if not joined:
            problems = self._problems or problems_before
            run.warn("The plan could not be used, also after one correction.", *problems)

    def _join(
        self, reason: str, nodes: Sequence[PlanNode], *, decided: bool = False
    ) -> Generator[PlanQuestion, str | None, bool]:
        """Let steps join the plan. Returns whether they could and nothing else is wrong; if not, `_problems` say why.

        `decided`: they make their own version if the first has begun.
        """
        if nodes:
            checked = yield from self._fitted(nodes, self._run.state.plan.nodes.keys())
            if checked is not None:
                begin = self._run.add if decided else self._run.join
                begin(reason, list(checked.nodes.values()))

        if not self._problems:
            self._run.admit()
        return not self._problems

    def _fitted(
        self, nodes: Sequence[PlanNode], known: Collection[str]
    ) -> Generator[PlanQuestion, str | None, Checked | None]:
        """Return the steps as they may join; None and `_problems` if they may not. `known`: steps that they may refer
        to.

        If only parameters don't fit their functions, they are asked for again, with the functions' schemas, because a
        plan's writer has only seen signatures. This does not use up the correction of the plan's shape.
        """
        run = self._run
        refits_left = _FITS
        while True:
            try:
                checked = run.admission.check(nodes, known)
            except PlanError as error:
                question = self._misfit(nodes, error) if refits_left else None
                text = (yield question) if question is not None else None
                refitted = self._refitted(nodes, text) if text is not None else None
                if refitted is None:
                    self._problems.extend(_problems_of(error))
                    return None
                nodes = refitted
                refits_left -= 1
            else:
                run.warn(*checked.warnings)
                return checked

    def _misfit(self, nodes: Sequence[PlanNode], error: PlanError) -> PlanQuestion | None:
        """Return a question for other parameters, if nothing else is wrong."""
        if not isinstance(error, PlanInvalid) or not error.shaped:
            return None
        wrong = [node for node in nodes if node.id in error.misfits]
        return PlanQuestion("correct", parts=questions.fit(self._run.situation(), wrong, error.problems))

    def _refitted(self, nodes: Sequence[PlanNode], text: str) -> tuple[PlanNode, ...] | None:
        """Return the steps with the parameters that `text` gives for some of them; None if it can't be read."""
        try:
            corrected = read_plan(answers.plan_text(text), id=self._run.state.plan.id).nodes
        except PlanError:
            return None

        # Only parameters were asked for: whatever else was written differs for no reason.
        return tuple(
            dataclasses.replace(node, params=corrected[node.id].params, refs=corrected[node.id].refs)
            if node.id in corrected
            else node
            for node in nodes
        )

    def plan_on(self) -> Thinking:
        """Continue after the planner was cut off. Steps that it wrote stand, even if it writes them again."""
        run = self._run
        reason = "the plan was cut off while it was being written"
        text = yield from asked(run, "plan", questions.replan(run.situation(), reason))
        if text is None or run.concluded:
            return

        try:
            checked = run.admission.read_rest(text)
        except PlanError as error:
            run.warn(f"The rest of the plan could not be used: {error}")
            return

        if checked is not None:
            run.warn(*checked.warnings)
            run.join("planned on", list(checked.nodes.values()))
        run.admit()

    def replan(self, reason: str, *, wanted: bool = False) -> Thinking:
        """Ask for further steps to replace those that have not run, with one corrected try.

        `wanted`: a person asked for other steps, so that the new ones are what is asked for.
        """
        run = self._run
        state = run.state
        self._problems = []
        question = questions.replan(run.situation(), reason)

        # The one corrected try is for what is wrong with steps, not for a reply that names none on purpose.
        text = yield from asked(run, "replan", question)
        checked, way_out = yield from self._replanned(text)
        if text is not None and checked is None and way_out is None:
            rest = yield from asked(run, "correct", questions.correct(question, text, self._problems))
            checked, way_out = yield from self._replanned(rest)

        if run.concluded:  # meanwhile
            return
        if way_out is not None:
            run.leave(way_out)
            return
        if checked is None:
            run.warn("No usable new plan could be had; the old one stands.")
            run.no_new_plan = run.follows_1_3
            return

        dropped = state.work_in(*NOT_STARTED, "failed_retryable")
        gone = [*state.work_in("failed"), *dropped]
        nodes = run.take_places(tuple(checked.nodes.values()), gone, wanted=wanted)
        run.adopt(state.plan.revise(f"replan: {reason}", add=nodes, drop=dropped, finished=[]))
        run.admit()

    def break_off(self) -> bool:
        """Break off the answer that is being read. Returns whether some of it was read; complete steps stand."""
        begun = self.reading and bool(self._reader.text)
        if begun:
            self.reading = False
            self._reader = StepReader()
            self._held.clear()
        return begun

    def _replanned(
        self, text: str | None
    ) -> Generator[PlanQuestion, str | None, tuple[Checked | None, WayOut | None]]:
        """Return the further steps in a reply, or else what it says instead of naming steps; neither if there is none.

        The steps may refer to those that have run or are running.
        """
        if text is None:
            return None, None

        nodes = self._parsed(text)
        checked = None
        if nodes:
            checked = yield from self._fitted(nodes, self._run.state.in_state(*DONE_OR_RUNNING))
        way_out = answers.way_out(text) if checked is None else None
        return checked, way_out

    def _parsed(self, text: str) -> tuple[PlanNode, ...]:
        """Return the steps in a reply, under free ids; none and `_problems` if none can be read."""
        try:
            return self._run.admission.read(text)
        except PlanError as error:
            self._problems = _problems_of(error)
            return ()

    # --- a plan that is still being written -------------------------------------------------------------

    def write(self, piece: str) -> None:
        """Pass in the next piece of a plan that is being written."""
        for raw in self._reader.feed(piece):
            self._arrived(raw)

    def written(self) -> None:
        """Finish writing; faults become warnings."""
        self.growing = False
        run = self._run

        reason, nodes = self._left()
        if nodes:
            try:
                checked = run.admission.check(nodes, run.state.plan.nodes.keys())
            except PlanError as error:
                self._problems.extend(_problems_of(error))
            else:
                run.warn(*checked.warnings)
                run.given.update(checked.nodes)
                run.add(reason, list(checked.nodes.values()))

        run.warn(*self._problems)
        if not self._problems:
            run.admit()

    def _arrived(self, raw: JSON) -> None:
        """Hold a complete step until its dependencies have arrived. Then it may run, if it can have no effect."""
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
        """Admit the held steps whose dependencies have arrived. Returns whether there was one that may run."""
        present = self._run.state.plan.nodes
        complete = [
            node
            for node in self._held.values()
            if all(dependency in present for dependency in node.dependencies)
        ]
        admitted = [node for node in complete if self._admitted(node)]
        return bool(admitted)

    def _admitted(self, node: PlanNode) -> bool:
        """Let a held step join the plan, if it may."""
        try:
            self._run.admission.check([node], self._run.state.plan.nodes.keys())
        except PlanError:
            return False

        del self._held[node.id]
        if self.growing:
            self._run.given.add(node.id)
        self._run.join("planned", [node])
        return True

    def _left(self) -> tuple[str, Sequence[PlanNode]]:
        """Return the steps that were read and are still waiting, and the reason for adding them."""
        for raw in self._reader.close():
            self._arrived(raw)

        if not self._begun and not self._held and not self._problems:
            return "planned", self._parsed(self._reader.text)

        nodes = tuple(self._held.values())
        self._held.clear()
        return "planned", nodes


def _problems_of(error: PlanError) -> list[str]:
    return list(error.problems) if isinstance(error, PlanInvalid) else [str(error)]
