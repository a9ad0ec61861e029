"""One pool of tokens for the whole tree: a call reserves tokens for the child, and unused tokens flow back.

An agent's allowance is what its caller reserved for it; the root's is the session's bound. What is left of it falls
with every token that the agent uses and every reservation that it makes. When a child returns, its reservation is
replaced by what the child really used. So the totals at the root equal the sum over the tree at every moment.

A child whose caller waits for it gets nearly all that the caller has left. A child that works at the same time as its
caller, perhaps with hundreds of others, begins with enough for a turn and a report. An agent that runs short draws more
before it asks its model: from its lender, and through it from all above, as long as each of them keeps enough to
report. Each draw is a record, so two agents never count on the same tokens. An agent that cannot afford a second turn
is told that this one is its last, so an agent that is cut off can still report.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from iact.core.records.dialogue import LastTurn
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_SYNC: Final = 0.9
"""The share of a caller's remaining tokens that a child gets while its caller waits for it."""

_START: Final = 6144
"""Tokens that a child working concurrently with its caller begins with: a first turn and a report."""

_AHEAD: Final = 1 / 32
"""The share of the tokens above it that an agent running short may draw beyond its immediate need."""

_LOW: Final = 0.2
"""Below this share of its allowance, an agent is shown what it has left."""

_REPORT_TOKENS: Final = 512
"""The most tokens that a report may take."""


def above(tree: Tree, agent: Agent) -> int:
    """The tokens that an agent can draw: all that its lender, its lender's lender and so on can give away."""
    lender = tree.agents.get(agent.account.lender)
    return 0 if lender is None else _reach(tree, lender)


def _reach(tree: Tree, lender: Agent) -> int:
    """The tokens that an agent can give away, from its own and from what it can draw itself."""
    return max(0, _spare(lender) + above(tree, lender))


def _spare(lender: Agent) -> int:
    """The tokens that an agent has beyond what it needs to report; negative if it lacks even that."""
    return lender.account.left - 2 * cost_of_turn(lender.context.history.tokens)


def share(tree: Tree, caller: Agent, child: Agent | None, *, waits: bool) -> int:
    """Return the tokens that a CALL reserves for `child` (None: a new child). `waits`: the caller is idle until it
    returns.

    A child that is already working for this caller gets none: it draws what it needs.
    """
    if child is not None and child.active and child.account.lender == caller.path:
        return 0
    start = min(_START, _reach(tree, caller))
    return max(start, int(_spare(caller) * _SYNC)) if waits else start


def short(tree: Tree, agent: Agent, cost: int) -> int:
    """How much an agent must draw before a turn of `cost` tokens; 0 if it has enough or there is nothing to draw.

    Enough means this turn and a report. If that is not available, it is only what this turn needs.
    """
    missing = 2 * cost - agent.account.left
    if missing <= 0 or agent.account.lender not in tree.agents:
        return 0
    there = above(tree, agent)
    if there < missing:
        return max(0, min(there, cost - agent.account.left))
    return min(there, missing + min(2 * cost, int(there * _AHEAD)))


def draw(tree: Tree, agent: Agent, tokens: int) -> None:
    """Take `tokens` more from the lender, or as many as it can give.

    What the lender lacks it draws from its own lender: a starting share is soon too small to lend from.
    """
    lender = tree.agents.get(agent.account.lender)
    if lender is not None and tokens > 0:
        draw(tree, lender, tokens - _spare(lender))
        given = max(0, min(tokens, _spare(lender)))
        agent.account.allowance += given
        lender.account.reserve(agent.path, given)


def reserve(tree: Tree, lender: Agent, child: Agent, tokens: int) -> None:
    """Let the child work for `lender` from now on, with `tokens` of its allowance or of what it can draw."""
    if child.account.lender != lender.path:
        refund(tree, child)
        child.account.lender = lender.path
        lender.account.reserve(child.path, 0)
    draw(tree, child, tokens)


def refund(tree: Tree, child: Agent) -> None:
    """Settle with the lender when a child comes to rest: the lender pays for what was used and gets the rest back."""
    lender = tree.agents.get(child.account.lender)
    if lender is not None:
        lender.account.settle(child.path, child.account.spent)
    child.account.close()


def lender_for(tree: Tree, child: Agent) -> Agent:
    """Return the agent that pays for an agent woken by a person: the nearest active one above it, or the root."""
    path = child.caller
    while path != "user" and not tree.agents[path].active and tree.agents[path].caller != "user":
        path = tree.agents[path].caller
    return tree.agents[path]


def low(tree: Tree, agent: Agent) -> int | None:
    """The tokens that an agent has left and can draw, if they are so few that it should know; else None."""
    more = above(tree, agent)
    tokens = agent.account.left + more
    return max(0, tokens) if tokens < (agent.account.allowance + more) * _LOW else None


def used(agent: Agent, agents: Mapping[str, Agent]) -> int:
    """Tokens used by an agent and all agents working on its budget, including those that have not returned."""
    lent = agent.account.reserved
    return agent.account.spent + sum(used(agents[path], agents) for path in lent if path in agents)


def exhausted(tree: Tree) -> bool:
    """Whether the root cannot afford even one more turn, so that a message would not be answered."""
    root = tree.root
    return root.account.left * 2 < cost_of_turn(root.context.history.tokens)


def cost_of_turn(context: int) -> int:
    """Estimate the tokens of a turn over a context of `context` tokens, with a report as reply."""
    return context + _REPORT_TOKENS


def last_turn(tree: Tree, agent: Agent, cost: int) -> LastTurn:
    """Why the turn that begins now is the last that the agent can have; empty if it is not."""
    if agent.guards.turns + 1 >= tree.bounds.turns:
        return "turns"
    return "tokens" if agent.account.left < 2 * cost else ""
