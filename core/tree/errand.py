"""What a person said to be worked on as a plan: who writes the plan, and how its report becomes the answer.

The root hands it over as it would a plan that it wrote itself, without a model's word before or after: what was said is
the goal, the report is its reply. Both go into its history as what it heard, so that the next turn knows of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.language import labels
from core.language.actions import PLAN
from core.language.grammar import Bound
from core.plan.forms import goal_text
from core.records.dialogue import Reply, Say
from core.records.record import Record
from core.tree.agent import Agent, Errand, Pending, Report
from core.tree.plan_aim import choose_way

_NOTED: Final = "The user had this worked on as a plan; you are told what was said, and what came of it."


@dataclass(frozen=True, slots=True)
class Taken:
    """How a message is to be worked on. `why`: if it was the core's choice. `errand`: None for a dialogue."""

    mode: str
    why: str
    errand: Errand | None


def take(record: Record, say: Say) -> Taken:
    """How what a person said is to be worked on."""
    mode, why = choose_way(say.mode, record.body)
    if mode == "dialogue":
        return Taken(mode, why, None)
    return Taken(mode, why, Errand(record.n, mode, why, say.plan_first))


def begin(root: Agent, errand: Errand, goal: str) -> None:
    """The root has one action to carry out: the plan."""
    arguments: dict[str, str | bool] = {"plan": goal_text(goal), "mode": errand.mode}
    if errand.why:
        arguments["chosen"] = errand.why
    if errand.first:
        arguments["first"] = True
    root.errand, root.turn = errand, errand.said
    root.actions = [Pending(0, PLAN.name, PLAN.name, "", PLAN, Bound(arguments, {}))]
    root.mail.feedback.append(labels.note(_NOTED))


def came_back(root: Agent, report: Report) -> None:
    """The plan has ended. If somebody ended it who also said something since, the root answers that itself."""
    said = root.errand is not None and (root.errand.told or root.mail.wakes)
    if root.errand is not None and not (report.status == "cancelled" and said):
        root.errand.report = report
    else:
        root.errand = None


def relay(root: Agent) -> tuple[Reply, str] | None:
    """What the root's reply says now that its plan has come back; None if there is nothing to pass on."""
    report = root.errand.report if root.errand is not None else None
    if report is None:
        return None
    return Reply(to=root.caller, status=report.status, plan=report.plan), report.text
