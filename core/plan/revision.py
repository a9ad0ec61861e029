"""A person's changes to a plan: other steps in place of those that have not started, and failed steps again.

Each becomes a version like any other: what has started stays as it was, and what runs again runs as a new step. Pure:
the machine decides who may ask, when, and what follows.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Collection, Mapping
from typing import Final

from iact.core.plan.admission import Admission
from iact.core.plan.model import WORK, PlanError, PlanGraph, PlanNode, PlanVersion, Ref
from iact.core.plan.state import PlanState
from iact.core.plan.states import STARTED, TERMINAL

EDITED: Final = "changed by the user"


def edited(state: PlanState, plan: PlanGraph, admission: Admission, *, exact: bool = False) -> PlanVersion:
    """Return the version in which the steps that have not started are replaced by those of `plan`.

    `exact`: as before format 1.3, when a step that waits for one that does not exist began without it.

    Raises:
        PlanError: it changes what has started, or the steps don't fit together.
    """
    present = {one: node for one, node in state.plan.nodes.items() if node.kind in WORK}
    ended = [one for one in present if one not in plan.nodes and state.nodes[one].state in TERMINAL]
    if not exact:
        _refuse_unknown(plan, ended)
    add: list[PlanNode] = []
    rewire: dict[str, PlanNode] = {}
    for written in admission.check(plan.nodes.values(), ended).nodes.values():
        record = state.nodes.get(written.id)
        if record is None:
            add.append(written)
            continue
        node = dataclasses.replace(written, spawned_by=record.node.spawned_by)
        if written.id not in present:
            raise PlanError(f"an earlier version had a step {written.id!r}; choose another id")
        if node == record.node:
            continue
        if record.state in STARTED:
            raise PlanError(
                f"the step {written.id!r} is {record.state} and can't be changed; add another under a new id"
            )
        rewire[written.id] = node
    drop = [one for one in present if one not in plan.nodes and state.nodes[one].state not in TERMINAL]
    if not (add or rewire or drop):
        raise PlanError("these are the steps that the plan has")
    return state.plan.revise(EDITED, add=add, drop=drop, rewire=rewire)


def _refuse_unknown(plan: PlanGraph, ended: Collection[str]) -> None:
    """Refuse steps that wait for steps that do not exist: a person can say what they meant.

    Raises:
        PlanError: there is such a step.
    """
    known = [*plan.nodes, *ended]
    for node in plan.nodes.values():
        for one in node.dependencies:
            if one in known:
                continue
            close = difflib.get_close_matches(one, known, 1, 0.5)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise PlanError(f"the step {node.id!r} waits for {one!r}, and there is no step {one!r}{hint}")


def again(state: PlanState, failed: str) -> tuple[PlanVersion, Mapping[str, str]]:
    """Return the version in which a failed, skipped or cancelled step runs again, with all steps lost because of it.

    Also returns the new id of each of them.

    Raises:
        PlanError: the step has a result or may still get one, or it needs another step that came to nothing.
    """
    _, nodes = state.plan, state.nodes
    if nodes[failed].state not in ("failed", "skipped", "cancelled") or nodes[failed].node.kind not in WORK:
        raise PlanError(
            f"the step {failed!r} is {nodes[failed].state}; only one that failed can be tried again"
        )
    lost = [failed]
    for one in lost:
        lost += [
            other
            for other in nodes[one].serves
            if other in state.plan.nodes and other not in lost and _came_to_nothing(state, other)
        ]
    names = {one: _fresh(state, one) for one in lost}
    for one in lost:
        gone = [d for d in nodes[one].node.required if d not in names and _came_to_nothing(state, d)]
        if gone:
            raise PlanError(
                f"{one!r} also needs {gone[0]!r}, which is {nodes[gone[0]].state}; try that again first"
            )
    waiting = {
        other
        for one in lost
        for other in nodes[one].serves
        if other in state.plan.nodes and other not in names and nodes[other].state not in STARTED
    }
    new = [
        dataclasses.replace(_renamed(nodes[one].node, names), id=names[one], spawned_by=one) for one in lost
    ]
    rewire = {one: _renamed(nodes[one].node, names) for one in sorted(waiting)}
    return state.plan.revise(f"the user tries {failed} again", add=new, rewire=rewire), names


def _came_to_nothing(state: PlanState, node: str) -> bool:
    return state.nodes[node].state in ("failed", "skipped", "cancelled")


def _fresh(state: PlanState, node: str) -> str:
    count, stem = 2, node[:56]
    while f"{stem}-{count}" in state.nodes:
        count += 1
    return f"{stem}-{count}"


def _renamed(node: PlanNode, names: Mapping[str, str]) -> PlanNode:
    """Return a node that depends on the new nodes instead of the old ones."""
    refs: dict[str, Ref] = {
        name: dataclasses.replace(ref, step=names.get(ref.step, ref.step)) for name, ref in node.refs.items()
    }
    return dataclasses.replace(node, after=tuple(names.get(one, one) for one in node.after), refs=refs)


def standing(state: PlanState, superseded: Collection[str]) -> list[PlanNode]:
    """The steps that the plan consists of now, without replaced and removed steps."""
    return [
        node
        for one, node in state.plan.nodes.items()
        if node.kind in WORK and one not in superseded and state.nodes[one].state != "cancelled"
    ]
