"""A message that a person wants worked on as a plan: who writes the plan, and how its report becomes the answer.

The root hands the plan over like one that it wrote itself, without calling its model before or after: the message is
the goal, and the report is its reply. Both go into its history as messages, so that the next turn knows of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from iact.core.language import labels
from iact.core.language.actions import PLAN
from iact.core.language.grammar import Bound
from iact.core.plan.forms import goal_text
from iact.core.plan.modes import auto
from iact.core.ports import JSON
from iact.core.records.dialogue import Choose, Reply
from iact.core.records.parts import Tokens
from iact.core.tree.agent import Agent, Errand, Pending, Report
from iact.core.tree.plan_briefing import before_choosing, window_of
from iact.core.tree.tree import Tree

_NOTED: Final = "The user had this worked on as a plan; you are told what was said, and what came of it."


def chosen(
    tree: Tree,
    errand: Errand,
    answer: str,
    usage: Tokens,
    failed: str,
    failures: Mapping[str, float] | None,
) -> Choose:
    """Build the record of how a message is worked on. `answer`: a model's assessment of the message; `failures`: as
    `auto.choose` takes them."""
    text, role = errand.said.text, asked(tree)
    found = choice(tree, text, answer, failures)
    digest = hashlib.sha256(question(tree, text).encode("utf-8", "replace")).hexdigest()[:16]
    return Choose(
        of=errand.said.n, mode=found.way, why=found.why, role=role, model=tree.roles[role].model, digest=digest,
        usage=usage, failed=failed, failures=failures or None,
    )  # fmt: skip


def question(tree: Tree, text: str) -> str:
    """The question about a message, as the model reads it that says what the message is like."""
    return auto.question(before_choosing(tree, text), window_of(tree, asked(tree)))


def choice(tree: Tree, text: str, answer: str, failures: Mapping[str, float] | None) -> auto.Choice:
    """Choose how to work on a message. `answer`: a model's assessment of the message; empty if there is none. `failures`:
    as `auto.choose` takes them."""
    if not tree.registry("/").functions():
        return auto.Choice("dialogue", "There are no functions that a plan could call.")
    features = auto.read(answer) if answer else None
    if features is None:
        return auto.choose_by_form(text)
    return auto.choose(features, failures)


def asked(tree: Tree) -> str:
    """The role of the model that assesses a message."""
    return "fast" if "fast" in tree.roles else "smart"


def begin(root: Agent, errand: Errand) -> None:
    """Give the root one action to carry out: the plan."""
    arguments: dict[str, JSON] = {"plan": goal_text(errand.said.text), "mode": errand.mode}
    if errand.why:
        arguments["chosen"] = errand.why
    if errand.first:
        arguments["first"] = True
    root.turn = errand.said.n
    root.actions = [Pending(0, PLAN.name, PLAN.name, "", PLAN, Bound(arguments, {}))]
    root.mail.feedback.append(labels.note(_NOTED))


def came_back(root: Agent, report: Report) -> None:
    """Note that the plan ended. If a person ended it and has written since, the root answers that message itself."""
    said = root.errand is not None and (root.errand.told or root.mail.wakes)
    if root.errand is not None and not (report.status == "cancelled" and said):
        root.errand.report = report
    else:
        root.errand = None


def relay(root: Agent) -> tuple[Reply, str] | None:
    """The root's reply after its plan has ended; None if there is nothing to pass on."""
    report = root.errand.report if root.errand is not None else None
    if report is None:
        return None
    verdict = report.verdict if report.plan else None
    reply = Reply(to=root.caller, status=report.status, plan=report.plan, verdict=verdict)
    return reply, report.text
