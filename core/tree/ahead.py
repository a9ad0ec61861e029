"""Which calls can be put to a person together with the one that stands first among an agent's actions. Pure.

An agent often writes one call after the other of the same function: five invitations, the pages of a list. Asked about
one by one, the second question comes when the first call is over. So those behind the first are asked about with it, and
a person can answer all of them at once. Only a call with all its arguments written out is asked about ahead of its
turn: nothing that happens before changes what it is, so what was shown is what is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from iact.core.language.grammar import Bound, Mistake, bind, split
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import digest_of

MOST: Final = 20
"""Calls that a person is asked about at a time; more are no list that anybody reads."""


def behind(agent: Agent) -> Iterator[tuple[Pending, Bound]]:
    """The calls behind the first that can be asked about with it, in order, each with its arguments.

    They end at the first that is of another function, names a variable, or was made before.
    """
    first = agent.actions[0] if agent.actions else None
    if first is None or first.bound is None or agent.plan is not None:
        return
    made = {digest_of(first.bound)}
    made |= {arguments for function, arguments in agent.guards.incomplete if function == first.spec.name}
    for pending in agent.actions[1:MOST]:
        if pending.spec.name != first.spec.name:
            return
        bound = pending.bound or _written_out(agent, pending)
        if bound is None or bound.attached or bound.labels or digest_of(bound) in made:
            return
        made.add(digest_of(bound))
        yield pending, bound


def _written_out(agent: Agent, pending: Pending) -> Bound | None:
    taken = split(pending.info)
    bound = taken if isinstance(taken, Mistake) else bind(pending.spec, taken[1], pending.body, agent.table)
    return None if isinstance(bound, Mistake) else bound
