"""What every rule of the fold requires of a record: it can follow here, and the core would write the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

from iact.core.language import labels
from iact.core.language.actions import ActionSpec
from iact.core.ports import JSON
from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result, Select
from iact.core.records.codec import encode_fields, layout_of
from iact.core.records.content import Content
from iact.core.records.record import Record
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.mismatch import mismatch
from iact.core.tree.tree import Tree

OfAction: TypeAlias = Call | Gate | ClearanceAsk | ClearanceAnswer | Result | Select
"""The contents of records that are about one action."""

NOT_RUN: Final = ("cancelled", "skipped", "forked")
"""Outcomes that an action can have before it is bound."""

GATED: Final = ("LOAD", "DEPLOY", "SKILL", "FRONTEND")
"""Actions of the core that the gate decides about."""

_SHOWN: Final = 200
"""The most characters of a value that are quoted in a sentence about a record."""


def expect(tree: Tree, record: Record, holds: bool, what: str) -> None:
    """Check a condition on a record. `what`: the end of the sentence "it …" for a record that does not meet it.

    Raises:
        ReplayMismatch: it does not hold, in a strict tree.
    """
    if not holds and tree.strict:
        raise mismatch(record, what)


def expect_content(tree: Tree, record: Record, expected: Content) -> None:
    """Check that a record has exactly this content.

    Raises:
        ReplayMismatch: it does not, in a strict tree.
    """
    if not tree.strict:
        return
    if _identical(record.content, expected):
        return
    expect(tree, record, record.kind == expected.KIND, f"is none of the kind {expected.KIND!r}")
    told, right = encode_fields(record.content), encode_fields(expected)
    wrong = [name for name in sorted({*told, *right}) if not _same(told, right, name)]
    said = ", ".join(f"{name}: {_shown(told, name)}" for name in wrong)
    came = ", ".join(f"{name}: {_shown(right, name)}" for name in wrong)
    expect(tree, record, not wrong, f"says {said}; the core says {came}")


def _identical(one: Content, other: Content) -> bool:
    """Whether two contents are exactly the same.

    Compares by `repr` where needed, because `true` and 1 are equal in Python.
    """
    if type(one) is not type(other):
        return False
    values_of = layout_of(type(other)).values_of
    for said, came in zip(values_of(one), values_of(other), strict=True):
        if said is not came and not (type(said) is str is type(came) and said == came):
            return repr(one) == repr(other)
    return True


def _same(said: Mapping[str, JSON], came: Mapping[str, JSON], name: str) -> bool:
    """Whether both have the field with the same value, or neither has it; `true` is not 1."""
    return name in said and name in came and _exact(said[name]) == _exact(came[name])


def _exact(value: JSON) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(fields: Mapping[str, JSON], name: str) -> str:
    return labels.inline(_exact(fields[name]), _SHOWN) if name in fields else "nothing"


def expect_said(tree: Tree, record: Record, expected: Content, body: str = "") -> None:
    """Check that a record has exactly this content and this body.

    Raises:
        ReplayMismatch: it does not, in a strict tree.
    """
    expect_content(tree, record, expected)
    expect(tree, record, record.body == body, "has another body than the core's" if body else "has a body")


def is_gated(spec: ActionSpec) -> bool:
    """Whether the gate decides about an action before it is carried out: a module's function, LOAD, DEPLOY, SKILL or
    FRONTEND.
    """
    return not spec.core or spec.name in GATED


def agent_of(tree: Tree, record: Record) -> Agent:
    """Return the agent that a record is about.

    Raises:
        ReplayMismatch: there is no such agent.
    """
    agent = tree.agents.get(record.agent)
    if agent is None:
        raise mismatch(record, f"is about {record.agent}, which nobody has called")
    return agent


def pending_of(tree: Tree, agent: Agent, record: Record, said: OfAction) -> Pending | None:
    """Return the action that a record is about. In a strict tree it must exist and be bound."""
    index = said.action
    found = next((one for one in agent.actions if one.index == index), None)
    here = found is not None and said.turn == agent.turn and found.spec.name == said.function
    not_run = isinstance(said, Result) and said.status in NOT_RUN
    ready = here and found is not None and (found.bound is not None or not_run)
    expect(tree, record, ready, "is about no pending action")
    return found
