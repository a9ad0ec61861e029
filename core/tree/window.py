"""Shortens text that can't fit into a model's window, no matter who wrote it: one long text must not end a session.

Half of a window is for what is new in one turn, a quarter for one reply of the agent itself. Longer text loses its
middle. The whole text stays in a variable, or in the variable that the text itself names.
"""

from __future__ import annotations

from collections.abc import Sequence

from iact.core.context.tokens import estimate
from iact.core.language import labels
from iact.core.language.variables import text_value
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_LEAST = 400
"""The fewest characters kept of each part, even if the total is still too long."""


def fitted(tree: Tree, agent: Agent, parts: Sequence[str]) -> list[str]:
    """Return the new parts for an agent; if they are too long together, the middles of the longest are left out."""
    room = _window(tree, agent) // 2
    if _surely_fits(sum(map(len, parts)), room):
        return list(parts)
    limit, found = max(map(len, parts)), list(parts)
    while limit > _LEAST and sum(map(estimate, found)) > room:
        limit = max(_LEAST, limit * 3 // 4)
        found = [labels.shorten(part, limit, None) for part in parts]
    return found


def own_reply(tree: Tree, agent: Agent, text: str) -> str:
    """An agent's own reply as its history holds it. A reply that is too long is kept whole in a variable."""
    room = _window(tree, agent) // 4
    if _surely_fits(len(text), room) or estimate(text) <= room:
        return text
    value = text_value(text, media="text/markdown", labels=origin.by(agent), origin=agent.path)
    variable = agent.table.keep("reply", value)
    limit, shown = len(text), text
    while limit > _LEAST and estimate(shown) > room:
        limit = max(_LEAST, limit * 3 // 4)
        shown = labels.shorten(text, limit, variable)
    return shown


def _window(tree: Tree, agent: Agent) -> int:
    role = tree.roles.get(agent.model)
    return role.context if role is not None and role.context > 0 else 1 << 30


def _surely_fits(characters: int, room: int) -> bool:
    """Whether this many characters fit, whatever they are: no character has more than two tokens."""
    return characters * 2 <= room
