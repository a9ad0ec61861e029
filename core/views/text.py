"""An agent's text as people are shown it: prose, action blocks, whom each CALL is for, and which variables it mentions.

What is shown as an action is what the interpreter took for one, because both scan a reply by the same rules. Only the
words that begin an action may differ: only the session knows the aliases of functions (`View.is_action`). Importing
this module loads nothing but the language, so a process that only renders starts in a tenth of a second.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.language import foreign, unread, variables
from iact.core.language.actions import ANSWER, CORE_ACTIONS
from iact.core.language.grammar import Mistake, split
from iact.core.language.scanner import Block, scan

IsAction = Callable[[str], bool]
"""Whether the first word of an info string names an action."""

CALLS: Final = frozenset({"CALL", "CALL_ASYNC"})
"""Actions whose text is a message to a child."""

DELIVERS: Final = ANSWER.name
"""The action that makes the text before it the reply."""

_ALIASES: Final = frozenset({"BASH"})
"""Aliases of functions that ship with the product; only a session knows the others."""

_FUNCTION: Final = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+")


@dataclass(frozen=True, slots=True)
class ActionBlock:
    """An action as written in a reply. `index`: its position among the reply's actions; `arguments`: as written.

    `to`: the name of the child that a CALL is for, and `message`: what it says to that child; both are empty for other
    actions and for malformed blocks.
    """

    index: int
    name: str
    arguments: str
    body: str
    to: str = ""
    message: str = ""


def looks_like_action(name: str) -> bool:
    """Whether a word names an action of the core, or a function by its form."""
    return name in CORE_ACTIONS or name in _ALIASES or _FUNCTION.fullmatch(name) is not None


def pieces(text: str, is_action: IsAction = looks_like_action) -> list[str | ActionBlock]:
    """Split a reply, in order, into prose (unless it is only white space) and actions."""
    found: list[str | ActionBlock] = []
    position = 0
    for index, block in enumerate(one for one in scan(text, is_action).blocks if one.action):
        found += [text[position : block.start], _action(index, block)]
        position = block.end
    found.append(text[position:])
    return [one for one in found if isinstance(one, ActionBlock) or one.strip()]


def calls(text: str, is_action: IsAction = looks_like_action) -> list[ActionBlock]:
    """The CALLs of a reply that name a child."""
    if "CALL" not in text:
        return []
    return [one for one in pieces(text, is_action) if isinstance(one, ActionBlock) and one.to]


def mentions(text: str, known: Iterable[str] | Mapping[str, object]) -> list[str]:
    """The variables of `known` that a text mentions as `$name`, in order of first mention."""
    table = known if isinstance(known, Mapping) else dict.fromkeys(known)
    return list(variables.mentions(text, table))


def argument(action: ActionBlock, name: str) -> str:
    """The text of a named argument of an action, as written; empty if it has none, or is malformed."""
    taken = split(f"{action.name} {action.arguments}")
    if isinstance(taken, Mistake):
        return ""
    return next((one.text for one in taken[1] if one.key == name), "")


def _action(index: int, block: Block) -> ActionBlock:
    name, _, rest = block.info.partition(" ")
    to, message = _addressed(block) if name in CALLS else ("", "")
    return ActionBlock(index, name, rest.strip(), block.body, to, message)


def _addressed(block: Block) -> tuple[str, str]:
    taken = split(block.info)
    if isinstance(taken, Mistake):
        return "", ""
    named = {argument.key or "name": argument.text for argument in reversed(taken[1])}
    if "name" not in named:
        return "", ""
    return named["name"], block.body or named.get("message", "")


def without_actions(text: str, is_action: IsAction) -> str:
    """Return what an agent says in a text besides its actions, as it is when that becomes its reply."""
    return unread.prose(text, scan(text, is_action).blocks)


def without_delivery(text: str, is_action: IsAction) -> str:
    """Return a text without the action that only makes it the reply."""
    blocks = scan(text, is_action).blocks
    delivers = [block for block in blocks if block.info.split(None, 1)[:1] == [DELIVERS]]
    return "".join(unread.outside(text, delivers)).rstrip() if delivers else text


def call_begins_in(line: str) -> int | None:
    """Where a call in another form may begin in a line; None if none does."""
    return foreign.opens_in(line)
