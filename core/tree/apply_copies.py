"""Copies of the workspace for racing steps that write, and what happens to the winner's copy.

A plan's machine decides which steps race and whose changes are taken over (`core.plan.machine`). Whether the copy could
be made, and whether taking it over worked, only the world can say: the records here report it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iact.core.plan.protocol import StepFailure
from iact.core.records.plans import MakeCopy, TakeOver
from iact.core.records.record import Record
from iact.core.tree import apply_shared_state
from iact.core.tree.agent import Agent
from iact.core.tree.apply_plan import run_of, telling
from iact.core.tree.expectations import expect, expect_content
from iact.core.tree.mismatch import mismatch
from iact.core.tree.plan_run import Copied
from iact.core.tree.tree import Tree

_NAMED: Final = 3
"""The most names in a sentence."""


def make(tree: Tree, plan: Agent, record: Record, said: MakeCopy) -> None:
    """Note that a firing has the copy in which it works, or that none could be made."""
    found = (one for one in plan.actions if one.index == said.action and one.node == said.node)
    pending = next(found, None)
    due = pending is not None and pending.race != "" and not pending.copied and not pending.call
    expect(tree, record, due, f"makes a copy for {said.node!r}, which needs none")
    expect(
        tree,
        record,
        bool(said.base) != bool(said.why),
        "says of a copy neither what it is made of nor why not",
    )
    if pending is not None and due:
        pending.copied, pending.base = record.n, said.base
        run = run_of(plan, record)
        if said.why and run.running is not None:
            run.running.uncopied(said.node, run.at(record.at))


def wanted(tree: Tree, node: str, copied: Copied) -> TakeOver:
    """Build the content of the record that takes over a copy, without the fields that only the world can fill in."""
    return TakeOver(
        node=node,
        call=copied.call,
        base=copied.base,
        copy=copied.version,
        beside=apply_shared_state.written_since(tree),
    )


def take_over(tree: Tree, plan: Agent, record: Record, said: TakeOver) -> None:
    """Note that a step's changes were taken over from its copy into the workspace, or that they could not be."""
    run = run_of(plan, record)
    copied = run.taking.pop(said.node, None)
    if copied is None:
        raise mismatch(record, f"takes over what {said.node!r} wrote, which is not to be")
    came = replace(
        wanted(tree, said.node, copied), version=said.version, conflicts=said.conflicts, why=said.why
    )
    expect_content(tree, record, came)
    told = bool(said.version) != bool(said.conflicts or said.why)
    expect(tree, record, told, "says neither what came of it nor why nothing did")
    if said.version:
        apply_shared_state.take_over(tree, said.version, copied.labels)
    machine = run.running
    if machine is not None and plan.active and said.node in machine.run.attempts:
        failure = None if said.version else _failure(said)
        with telling(tree, plan, run):
            machine.taken_over(said.node, failure, run.at(record.at))


def _failure(said: TakeOver) -> StepFailure:
    if said.why:
        return StepFailure("raised", f"What it wrote could not be put into the workspace: {said.why}")
    named = ", ".join(said.conflicts[:_NAMED])
    rest = len(said.conflicts) - _NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return StepFailure(
        "conflict",
        f"What it wrote was not put into the workspace, since somebody else changed {named}{more} there meanwhile.",
    )
