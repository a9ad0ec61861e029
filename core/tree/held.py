"""Which calls wait indefinitely for a person, and whether nothing else can proceed. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from iact.core.tree.agent import Agent, Pending
from iact.core.tree.child_waits import satisfied
from iact.core.tree.decision import without_person
from iact.core.tree.tree import Tree


def is_held(tree: Tree, pending: Pending) -> bool:
    """Whether a call waits without a time limit, because no person was available when it was asked about."""
    asks = pending.asked > 0 and pending.asked_of == "person" and pending.answer is None
    return asks and pending.seconds == 0 and without_person(tree, pending) == "hold"


def held(tree: Tree) -> Iterator[Pending]:
    """Yield a session's calls that wait without a time limit."""
    for agent in tree.at_work.values():
        yield from (one for one in agent.actions if is_held(tree, one))


def only_held(tree: Tree) -> bool:
    """Whether some calls wait without a time limit, and nothing proceeds until a person answers."""
    if not tree.policy.nobody:
        return False
    return any(held(tree)) and not any(_goes_on(tree, one) for one in tree.at_work.values())


def _goes_on(tree: Tree, agent: Agent) -> bool:
    """Whether an agent proceeds on its own. It does not if it waits for a held call or for another agent."""
    if any(one.call and not one.child for one in agent.actions):
        return True
    if tree.paused(agent.path):
        return False
    if agent.plan is not None:
        machine = agent.plan.running
        return machine is None or not machine.still
    first = agent.actions[0] if agent.actions else None
    if first is None:
        return True
    if first.spec.name == "WAIT":
        timed = first.bound is None or first.bound.arguments.get("timeout") is not None
        return timed or satisfied(tree, agent, first)
    if first.child and first.call:
        return not tree.agents[first.child].active
    return not is_held(tree, first)
