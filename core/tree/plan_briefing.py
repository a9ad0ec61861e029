"""What the models that think about a plan, and the agents that carry out its steps, are told: short values in full,
long ones by name. Pure.

Content from outside is passed by name only, however short it is: an agent that takes orders from a task must not find a
stranger's text in it. It is read with SHOW, as data, like any result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from iact.core.gate.provenance import Labels, join
from iact.core.language.grammar import Bound
from iact.core.language.labels import clean, describe
from iact.core.language.variables import Value, text_value
from iact.core.plan import questions
from iact.core.plan.briefing import SHORT, Briefing, KnownValue
from iact.core.plan.contracts import as_text
from iact.core.plan.model import PlanNode
from iact.core.ports import JSON
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.plan_run import PlanRun, variable_of
from iact.core.tree.tree import Tree

_BYTES_PER_SIGN: Final = 4


@dataclass(frozen=True, slots=True)
class _Handed:
    """A value that an agent step can use. `source`: the step that produced it; "" where that adds nothing."""

    name: str
    value: Value
    source: str = ""


def in_full(tree: Tree, value: Value) -> str | None:
    """The text of a value that may be given in full; None if its name must do."""
    if not value.is_text or value.size > SHORT * _BYTES_PER_SIGN or origin.strange(tree, value.labels):
        return None
    text = clean(value.text()).strip("\n")
    # A `$name` in it would pass on a variable by accident.
    return None if len(text) > SHORT or "$" in text or not text.strip() else text.replace("\n", "\n    ")


def briefing_of(tree: Tree, run: PlanRun) -> Briefing:
    """What the models that write or judge a plan's steps are told, in addition to its goal."""
    known = tuple(
        KnownValue(describe(name, value), in_full(tree, value)) for name, value in run.given.items()
    )
    day = datetime.fromtimestamp(run.heard, UTC).strftime("%A, %Y-%m-%d")
    return Briefing(day, known=known, models=tuple(sorted(tree.roles)))


def read_of_briefing(tree: Tree, given: Mapping[str, Value]) -> Labels:
    """The labels of what a briefing shows of these values."""
    return join(value.labels for value in given.values() if in_full(tree, value) is not None)


def task_of(
    tree: Tree,
    run: PlanRun,
    plan: Agent,
    node: PlanNode,
    arguments: Mapping[str, JSON],
    refs: Mapping[str, Labels],
) -> Bound:
    """Build the message to the child of an agent step: its task, its purpose, and what it builds on.

    `refs`: the labels of what each of its refs passes on.
    """
    plain: list[str] = []
    handed: list[_Handed] = []
    for name, value in arguments.items():
        if name not in node.refs:
            plain.append(f"{name}: {as_text(value)}")
            continue
        media = "text/plain" if isinstance(value, str) else "application/json"
        kept = text_value(as_text(value), media=media, labels=refs[name], origin=node.refs[name].step)
        handed.append(_Handed(plan.table.receive(variable_of(name), kept), kept))
    for one in node.dependencies:
        settled = run.latest.get(one)
        if one in run.state.outputs and settled is not None and settled.value is not None:
            source = questions.step(run.state.nodes[one].node)
            handed.append(_Handed(variable_of(one), settled.value, source))
            handed += [_Handed(name, plan.table[name]) for name in settled.brought if name in plan.table]
    known: dict[str, _Handed] = {}
    for one_handed in handed:
        known.setdefault(one_handed.name, one_handed)
    handed = list(known.values())
    if run.machine is None:
        return _bound(tree, node, _told_then(node, plain, handed))
    message = _told(tree, node, plain, handed, run.machine.run.goal, run.source.constraints)
    shown = join(one.value.labels for one in handed if in_full(tree, one.value) is not None)
    return _bound(tree, node, message, shown)


def _told(
    tree: Tree,
    node: PlanNode,
    plain: Sequence[str],
    handed: Iterable[_Handed],
    goal: str,
    constraints: Sequence[str],
) -> str:
    parts = [node.task]
    why = [f"This is one step of a plan. The goal of the plan: {goal}"] if goal else []
    ruled = Briefing(constraints=constraints).ruled()
    parts.append("\n".join([*why, *([ruled] if ruled else []), *plain]))
    lines = []
    for one in handed:
        text = in_full(tree, one.value)
        source = f", from {one.source}" if one.source else ""
        # Separate, indented lines keep what a step said apart from what is said about it.
        told = "" if text is None else f":\n    {text}"
        lines.append(f"- {describe(one.name, one.value)}{source}{told}")
    if lines:
        parts.append("\n".join(["What you can build on:", *lines]))
    return "\n\n".join(one for one in parts if one)


def _told_then(node: PlanNode, plain: Sequence[str], handed: Iterable[_Handed]) -> str:
    """The same in formats 1.0 and 1.1: all values by name, and nothing about the goal."""
    lines = [*plain]
    names = [f"${one.name}" for one in handed]
    if names:
        lines.append("What you can use: " + ", ".join(names) + ".")
    return "\n".join([node.task, *(["", *lines] if lines else [])])


def _bound(tree: Tree, node: PlanNode, message: str, labels: Labels = frozenset()) -> Bound:
    given: dict[str, JSON] = {"name": node.call, "message": message}
    if node.role:
        given["role"] = node.role
    if node.model in tree.roles:
        given["model"] = node.model
    return Bound(given, {}, {"message": labels} if labels else {})
