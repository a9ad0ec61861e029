"""How much an agent or a plan draws from those above it: what it lacks for the turn or answer that begins now.

The record holds what the turn would show of the world, or which question is asked. All else follows from the tree, so a
verifier builds the same context and counts it again.
"""

from __future__ import annotations

from iact.core.context.tokens import estimate
from iact.core.records.dialogue import Draw
from iact.core.records.record import Record
from iact.core.tree import budget
from iact.core.tree.agent import Agent
from iact.core.tree.contexts import compose
from iact.core.tree.expectations import expect
from iact.core.tree.notes import choose_notes
from iact.core.tree.tree import Tree


def draw(tree: Tree, agent: Agent, record: Record, said: Draw) -> None:
    """Note that an agent takes more tokens from those above it before it asks its model."""
    there = 0 < said.tokens <= budget.above(tree, agent)
    expect(tree, record, there, f"draws {said.tokens} tokens that are not there")
    if tree.strict:
        lacks = budget.short(tree, agent, _cost(tree, agent, record, said))
        expect(tree, record, said.tokens == lacks, f"draws {said.tokens} tokens where {lacks} are missing")
    budget.draw(tree, agent, said.tokens)


def _cost(tree: Tree, agent: Agent, record: Record, said: Draw) -> int:
    """The cost of the turn or answer that the tokens are drawn for."""
    if agent.plan is not None:
        asking = agent.plan.asking.get(said.thought)
        expect(
            tree, record, asking is not None and said.seen is None, "draws for a question that nobody asked"
        )
        return budget.cost_of_turn(estimate(asking.question.text)) if asking is not None else 0
    expect(tree, record, said.seen is not None and not said.thought, "does not say what its turn would see")
    if said.seen is None:
        return 0
    composed = compose(tree, agent, said.seen, notes=choose_notes(tree, agent))
    return budget.cost_of_turn(tree.tokens(agent, composed.newest))
