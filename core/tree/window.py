"""How a model's window is shared out, and how text is shortened that can't fit into it, no matter who wrote it.

    |<---- at most this after a cut: 40 % ---->|<- what is new in one turn ->|<- state ->|<- a reply: 12.5 % ->|

One long text, or one full history, must never end a session. An eighth of a window is for one result, a quarter for one
reply of the agent itself. Longer text loses its middle (`core.context.excerpt`). The whole text stays in a variable. Of
a small window, the static prompt takes so much that a share would leave nothing, so each part has a least size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from iact.core.context.excerpt import Feedback, Passage, excerpt
from iact.core.context.tokens import Calibration, estimate
from iact.core.language.variables import text_value
from iact.core.tree import origin
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_LONG: Final = 20_000
"""Messages of more than this many characters are kept as a variable in any window."""

_LEAST: Final = 400
"""The fewest characters kept of each part, even if the total is still too long."""

_AFTER_CUT: Final = 0.4
"""The share of a window that is left after a cut, with the static prompt."""

_OWN: Final = 0.2
"""The share that is left for the agent's own messages at least, where the static prompt takes most of a window."""

COMPRESS: Final = 0.9
"""The share of what messages may take at which the core compresses a history."""

_STATE: Final = 400
"""The tokens of the lines about the state, which are not part of what is fitted."""

_REPLY: Final = 4096
"""The most tokens of a reply where a window is so small that a quarter of it is less."""

_LONG_REPLY: Final = 32_768
"""The most tokens of a reply in any window."""

_UNSURE: Final = 0.02
"""The share by which an estimate of a prompt may be too low."""

_SAMPLE: Final = 100_000
"""The characters at each end of a long text by which it is estimated."""

_UNLIMITED: Final = 1 << 30


def usable(tree: Tree, agent: Agent) -> int:
    """The tokens that messages to an agent may take: its window without the room for a reply."""
    window = _window(tree, agent)
    return window - min(tree.bounds.reply_tokens or window, window // 8)


def after_cut(tree: Tree, agent: Agent) -> int:
    """The most estimated tokens that an agent's history may have after a cut, with its static prompt."""
    window = _estimated(tree, agent, _window(tree, agent))
    return max(int(window * _AFTER_CUT), agent.context.history.static_tokens + int(window * _OWN))


def reply_limit(tree: Tree, role: str, prompt: int) -> int:
    """The most tokens that the model of a role may write after a prompt of `prompt` tokens.

    That is what its window leaves, at least an eighth of it, and no more than what is sensible: a quarter of the window
    is what a history keeps of a reply. The bound of the session's settings is lower or higher, if there is one.
    """
    known = tree.roles.get(role)
    window = known.context if known is not None and known.context > 0 else _UNLIMITED
    left = max(window // 8, window - prompt - int(prompt * _UNSURE) - 64)
    return min(left, tree.bounds.reply_tokens or max(_REPLY, min(window // 4, _LONG_REPLY)))


def room_for(tree: Tree, agent: Agent, text: str) -> int:
    """How many characters of a text an agent reads at once: an eighth of its window, and `Bounds.shown` at least."""
    least = tree.bounds.shown
    role = tree.roles.get(agent.model)
    if len(text) <= least or role is None:
        return least

    share = role.context // 8
    if tree.follows_1_3 and len(text) > _SAMPLE * 2:
        # Of what is much too long, only the ends are shown, and so only they are estimated.
        ends = text[:_SAMPLE] + text[-_SAMPLE:]
        room = len(ends) * share // max(estimate(ends), 1)
        if room < len(text):
            return max(least, room)

    tokens = estimate(text)
    if tokens <= share:
        return len(text)
    return max(least, len(text) * share // tokens)


def may_be_cut(tree: Tree, agent: Agent, text: str) -> bool:
    """Whether a message can be so long that, with what comes beside it, a part of it is left out."""
    if len(text) > _LONG:
        return True
    if _surely_fits(len(text), _least_room(tree, agent) // 2):
        return False
    room = min(_window(tree, agent) // 4, _room_for_news(tree, agent) // 2)
    return estimate(text) > room


def fitted(tree: Tree, agent: Agent, parts: Sequence[Feedback]) -> list[str]:
    """Return the new parts for an agent; if they are too long together, the middles of the longest are left out."""
    found = [str(part) for part in parts]
    if _surely_fits(sum(map(len, found)), _least_room(tree, agent)):
        return found

    room = _room_for_news(tree, agent)
    limit = max(map(len, found))
    while limit > _LEAST and sum(map(estimate, found)) > room:
        limit = max(_LEAST, limit * 3 // 4)
        found = [_within(part, limit) for part in parts]
    return found


def _within(part: Feedback, limit: int) -> str:
    return part.within(limit) if isinstance(part, Passage) else excerpt(part, limit)


def _least_room(tree: Tree, agent: Agent) -> int:
    """The tokens that there are for what is new in any case. It is asked first, since it costs little."""
    return _estimated(tree, agent, _window(tree, agent) // 8)


def _room_for_news(tree: Tree, agent: Agent) -> int:
    """The most estimated tokens of what is new in one turn: it must fit beside a history that was just cut."""
    window = _window(tree, agent)
    if not tree.follows_1_3:
        return window // 2
    beside = _estimated(tree, agent, int(usable(tree, agent) * COMPRESS) - _STATE)
    return max(_least_room(tree, agent), beside - after_cut(tree, agent))


def own_reply(tree: Tree, agent: Agent, text: str) -> str:
    """An agent's own reply as its history holds it. A reply that is too long is kept whole in a variable."""
    room = _window(tree, agent) // 4
    if _surely_fits(len(text), room) or estimate(text) <= room:
        return text
    value = text_value(text, media="text/markdown", labels=origin.by(agent), origin=agent.path)
    variable = agent.table.keep("reply", value)
    return shortened(text, room, variable)


def shortened(text: str, room: int, variable: str = "") -> str:
    """A text without its middle, so that it has about `room` estimated tokens. `variable`: where all of it stands."""
    limit, shown = len(text), text
    while limit > _LEAST and estimate(shown) > room:
        limit = max(_LEAST, limit * 3 // 4)
        shown = excerpt(text, limit, variable)
    return shown


def _estimated(tree: Tree, agent: Agent, tokens: int) -> int:
    """How many tokens our estimate counts where the model of an agent counts `tokens`."""
    known = tree.calibrations.get(agent.model, Calibration())
    return int(tokens / known.factor)


def _window(tree: Tree, agent: Agent) -> int:
    role = tree.roles.get(agent.model)
    return role.context if role is not None and role.context > 0 else _UNLIMITED


def _surely_fits(characters: int, room: int) -> bool:
    """Whether this many characters fit, whatever they are: no character has more than two tokens."""
    return characters * 2 <= room
