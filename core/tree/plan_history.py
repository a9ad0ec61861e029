"""Plans in journals of formats 1.0 and 1.1, whose steps followed from the records `plan` and `node` themselves.

Such a plan is read as it was written. A program that continues the session makes a machine from what was read
(`core.tree.apply_plan.take_over`), and from there on the plan is like any other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast, get_args

from iact.core.plan.forms import version_from_json
from iact.core.plan.model import PlanError, PlanVersion
from iact.core.plan.protocol import QuestionKind, StepSuccess
from iact.core.plan.state import NodeChange, PlanState
from iact.core.plan.states import IllegalTransition
from iact.core.records.plans import Ask, Node
from iact.core.records.record import Record
from iact.core.tree.mismatch import mismatch


@dataclass(slots=True)
class PlanHistory:
    """What was read. `events`: all versions and changes, in order. `answers`: what models answered about the plan."""

    state: PlanState = field(default_factory=PlanState)
    events: list[NodeChange | PlanVersion] = field(default_factory=list)
    answers: list[tuple[QuestionKind, str]] = field(default_factory=list)

    def begin(self, name: str, goal: str) -> None:
        """Begin the history of a plan that was handed over."""
        self.state = PlanState(name, goal)

    def version(self, record: Record) -> PlanVersion:
        """Take in the beginning of a version."""
        try:
            version = version_from_json(record.fields)
            self.state.adopt(version)
        except (PlanError, KeyError) as error:
            raise mismatch(record, f"can't follow here: {error}") from error
        self.events.append(version)
        return version

    def change(self, record: Record, moves: Node, result: tuple[int, StepSuccess] | None) -> NodeChange:
        """Take in a step's change of state. `result`: the step's latest, with the number of its record."""
        try:
            moved = NodeChange.from_json({**record.fields, "at": moves.t})
            if moves.result:
                if result is None or result[0] != moves.result:
                    raise mismatch(record, f"takes record {moves.result} for a result of {moved.node}")
                moved = moved._replace(output=result[1].output, labels=result[1].labels)
            if moved.version != self.state.plan.version:
                raise mismatch(record, f"names version {moved.version}, not {self.state.plan.version}")
            self.state.apply(moved)
        except (PlanError, IllegalTransition, KeyError) as error:
            raise mismatch(record, f"can't follow here: {error}") from error
        self.events.append(moved)
        return moved

    def answered(self, record: Record, ask: Ask) -> None:
        """Take in a model's answer to a question about the plan."""
        kind = ask.question
        if kind not in get_args(QuestionKind):
            raise mismatch(record, f"answers a question of the unknown kind {kind!r}")
        self.answers.append((cast(QuestionKind, kind), record.body))
