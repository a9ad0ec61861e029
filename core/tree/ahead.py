"""Finds the calls that a person can be asked about together with an agent's first pending action. Pure.

An agent often writes several calls of the same function in a row: five invitations, the pages of a list. If a person is
asked one by one, the second question only comes when the first call is over. Therefore the calls after the first are
asked about with it, and a person can answer all of them at once. A call is only asked about before its turn if all its
arguments are written out: nothing that happens in between changes it, so the call that was shown is the call that is
made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iact.core.language.grammar import Bound, Mistake
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import bind_pending, call_of
from iact.core.tree.tree import Tree

MOST: Final = 20
"""The most calls that a person is asked about at a time; people do not read longer lists."""


def behind(tree: Tree, agent: Agent) -> Iterator[tuple[Pending, Bound]]:
    """Yield the calls after the first that can be asked about with it, in order, each with its arguments.

    Stops at the first call that is of another function, names a variable, or was made before.
    """
    first = agent.actions[0] if agent.actions else None
    if first is None or first.bound is None or agent.plan is not None:
        return
    made = {call_of(tree, first.spec.name, first.bound), *agent.guards.incomplete}
    for pending in agent.actions[1:MOST]:
        if pending.spec.name != first.spec.name:
            return
        bound = pending.bound or _written_out(tree, agent, pending)
        if bound is None or bound.attached or bound.labels:
            return
        call = call_of(tree, pending.spec.name, bound)
        if call in made:
            return
        made.add(call)
        yield pending, bound


def _written_out(tree: Tree, agent: Agent, pending: Pending) -> Bound | None:
    bound = bind_pending(tree, agent, pending)
    return None if isinstance(bound, Mistake) else bound
