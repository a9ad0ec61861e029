"""Whether a child's message to its caller is a question: one that waits for an answer, and is no result."""

from __future__ import annotations

from iact.core.language.questions import asks
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree


def asks_caller(tree: Tree, agent: Agent, text: str) -> bool:
    """Whether the text with which an agent ends its work asks the agent or the plan that called it.

    A person reads for themselves.
    """
    caller = tree.agents.get(agent.caller)
    if caller is None or not tree.follows_1_3:
        return False
    return asks(text)
