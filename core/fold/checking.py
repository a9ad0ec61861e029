"""What every rule of the fold asks of a record: that it can follow here, and that it is what the core would do."""

from __future__ import annotations

from typing import Final

from core.errors import ReplayMismatch
from core.fold.agent import Agent, Pending
from core.fold.tree import Tree
from core.journal.record import Record

NOT_RUN: Final = ("cancelled", "skipped")
"""An outcome that an action can have before it was bound."""


def expect(tree: Tree, record: Record, holds: bool, what: str) -> None:
    """Say that a record differs unless `holds`. `what`: the end of the sentence "it …".

    Raises:
        ReplayMismatch: it does not hold, in a strict tree.
    """
    if tree.strict and not holds:
        raise ReplayMismatch(f"Record {record.n} ({record.kind}) differs: it {what}.", n=record.n)


def agent_of(tree: Tree, record: Record) -> Agent:
    """The agent that a record is about.

    Raises:
        ReplayMismatch: there is none.
    """
    agent = tree.agents.get(record.agent)
    if agent is None:
        where = f"Record {record.n} ({record.kind}) differs"
        raise ReplayMismatch(f"{where}: it is about {record.agent}, which nobody has called.", n=record.n)
    return agent


def pending_of(tree: Tree, agent: Agent, record: Record) -> Pending | None:
    """The action that a record is about; in a strict tree it must be there, and bound."""
    index = record.number("action")
    found = next((one for one in agent.actions if one.index == index), None)
    known = found is not None and found.bound is not None and record.number("turn") == agent.turn
    expect(tree, record, known or record.text("status") in NOT_RUN, "is about no pending action")
    return found
