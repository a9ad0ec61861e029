"""Shortens text that can't fit into a model's window, no matter who wrote it: one long text must not end a session.

An eighth of a window is for one result, half for what is new in one turn, a quarter for one reply of the agent itself.
Longer text loses its middle (`core.context.excerpt`). The whole text stays in a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iact.core.context.excerpt import Feedback, Passage, excerpt
from iact.core.context.tokens import estimate
from iact.core.language.variables import text_value
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_LONG: Final = 20_000
"""Messages of more than this many characters are kept as a variable in any window."""

_LEAST: Final = 400
"""The fewest characters kept of each part, even if the total is still too long."""


def room_for(tree: Tree, agent: Agent, text: str) -> int:
    """How many characters of a text an agent reads at once: an eighth of its window, and `Bounds.shown` at least."""
    least = tree.bounds.shown
    role = tree.roles.get(agent.model)
    if len(text) <= least or role is None:
        return least

    share = role.context // 8
    tokens = estimate(text)
    if tokens <= share:
        return len(text)
    return max(least, len(text) * share // tokens)


def may_be_cut(tree: Tree, agent: Agent, text: str) -> bool:
    """Whether a message can be so long that, with what comes beside it, a part of it is left out."""
    room = _window(tree, agent) // 4
    return len(text) > _LONG or not (_surely_fits(len(text), room) or estimate(text) <= room)


def fitted(tree: Tree, agent: Agent, parts: Sequence[Feedback]) -> list[str]:
    """Return the new parts for an agent; if they are too long together, the middles of the longest are left out."""
    room = _window(tree, agent) // 2
    found = [str(part) for part in parts]
    if _surely_fits(sum(map(len, found)), room):
        return found

    limit = max(map(len, found))
    while limit > _LEAST and sum(map(estimate, found)) > room:
        limit = max(_LEAST, limit * 3 // 4)
        found = [_within(part, limit) for part in parts]
    return found


def _within(part: Feedback, limit: int) -> str:
    return part.within(limit) if isinstance(part, Passage) else excerpt(part, limit)


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
        shown = excerpt(text, limit, variable)
    return shown


def _window(tree: Tree, agent: Agent) -> int:
    role = tree.roles.get(agent.model)
    return role.context if role is not None and role.context > 0 else 1 << 30


def _surely_fits(characters: int, room: int) -> bool:
    """Whether this many characters fit, whatever they are: no character has more than two tokens."""
    return characters * 2 <= room
