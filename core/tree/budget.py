"""One pool of tokens for the whole tree: a call reserves a share for the child, what is unused flows back.

An agent's allowance is what its caller reserved for it, the root's is the session's bound. What is
left of it falls with every token that the agent uses and every reservation that it makes; when a
child returns, its reservation is replaced by what the child really used. So the totals at the root
equal the sum over the tree, at every moment. A child whose share runs short draws more from its
caller, and through it from all above, as long as each keeps enough to report. An agent that can afford no second turn is
told that this one is its last, so whoever is cut off can still report.
"""

from __future__ import annotations

from typing import Final, Literal

from core.tree.agent import Agent
from core.tree.tree import Tree

_SYNC: Final = 0.9
"""Share of what a caller has left that a child gets while its caller waits for it."""

_ASYNC: Final = 1 / 32
"""Share for a child that works beside its caller, and perhaps beside many others; it can draw more."""

_LOW: Final = 0.2
"""Below this share of its allowance an agent is shown what it has left."""

_REPORT_TOKENS: Final = 512
"""Tokens that a report may take."""

LastTurn = Literal["", "turns", "tokens"]
"""Why a turn is an agent's last one, if it is."""


def left(agent: Agent) -> int:
    """Tokens of an agent's allowance that are neither used nor reserved for a child; may be negative."""
    return agent.allowance - agent.spent - sum(agent.reserved.values())


def available(lender: Agent) -> int:
    """What an agent can give away and still report."""
    return max(0, left(lender) - 2 * cost_of_turn(lender.history.tokens))


def share(caller: Agent, *, waits: bool) -> int:
    """Tokens to reserve for a child. `waits`: the caller does nothing until the child returns."""
    return int(available(caller) * (_SYNC if waits else _ASYNC))


def short(tree: Tree, agent: Agent, cost: int) -> int:
    """How much an agent that is about to run short should draw; 0 if it has enough or nobody has more."""
    lender = tree.agents.get(agent.lender)
    if lender is None or left(agent) >= 3 * cost:
        return 0
    return min(_above(tree, agent), max(3 * cost, share(lender, waits=False)))


def _above(tree: Tree, agent: Agent) -> int:
    """What all those above an agent can give away, its lender, that one's lender and so on."""
    lender = tree.agents.get(agent.lender)
    return 0 if lender is None else available(lender) + _above(tree, lender)


def draw(tree: Tree, agent: Agent, tokens: int) -> None:
    """Take `tokens` more from the lender, or as much as can still be given: others may have drawn meanwhile.

    What the lender has not got it draws from its own: a share of a share of a share is soon too small to work on.
    """
    lender = tree.agents.get(agent.lender)
    if lender is not None and tokens > 0:
        draw(tree, lender, tokens - available(lender))
        extend(lender, agent, min(tokens, available(lender)))


def reserve(lender: Agent, child: Agent, tokens: int) -> None:
    """The child begins to work on `tokens` of the lender's allowance."""
    child.allowance, child.spent, child.lender = tokens, 0, lender.path
    lender.reserved[child.path] = tokens


def extend(lender: Agent, child: Agent, tokens: int) -> None:
    """A child that is at work already gets `tokens` more."""
    child.allowance += tokens
    lender.reserved[child.path] = lender.reserved.get(child.path, 0) + tokens


def refund(tree: Tree, child: Agent) -> None:
    """The child came to rest: its lender pays what it used and gets back the rest."""
    lender = tree.agents.get(child.lender)
    if lender is not None and child.path in lender.reserved:
        del lender.reserved[child.path]
        lender.spent += child.spent
    child.allowance = child.spent = 0
    child.lender = ""


def lender_for(tree: Tree, child: Agent) -> Agent:
    """Who pays for an agent that a person woke: the nearest above it that is at work, or the root."""
    path = child.caller
    while path != "user" and not tree.agents[path].active and tree.agents[path].caller != "user":
        path = tree.agents[path].caller
    return tree.agents[path]


def low(agent: Agent) -> int | None:
    """What an agent has left, if that is so little that it should know."""
    tokens = left(agent)
    return max(0, tokens) if tokens < agent.allowance * _LOW else None


def cost_of_turn(context: int) -> int:
    """Tokens that a turn over a context of `context` tokens will about take, with a report as reply."""
    return context + _REPORT_TOKENS


def last_turn(tree: Tree, agent: Agent, cost: int, more: int) -> LastTurn:
    """Whether the turn that begins now is the last that the agent can have. `more`: what it can draw."""
    if agent.turns + 1 >= tree.bounds.turns:
        return "turns"
    return "tokens" if left(agent) + more < 2 * cost else ""
