"""What every agent of a session is told from the start: the standing statements, chosen once. Pure.

They are chosen before the first turn, from the person's wishes and constraints and the project's decisions, and a
`recall` record holds them. So the head of a context stays as it is, whatever memory learns while the session lasts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from iact.core.language.labels import KNOWN
from iact.core.tree.agent import Agent
from iact.core.tree.tree import Tree

_FETCHES: Final = re.compile(
    r"^(?:please\s+|bitte\s+)?(?:fetch|download|get|open|read|load|list|count|compute|calculate|add|subtract|multiply|divide|sum|sort|run"
    r"|hol\w*|lade?|öffne|lies|zähle?|berechne|addiere|sortiere)\b",
    re.IGNORECASE,
)
"""How a task begins that brings or computes something."""

_MAKES: Final = re.compile(
    r"\b(?:write|draft|suggest|recommend|propose|name|choose|pick|plan|design|summar\w+|translat\w+|explain|describe|answer"
    r"|create|make|build|prepare|fix|edit|review|decide|report"
    r"|schreib\w*|schlag\w*|empfiehl|nenn\w*|wähl\w*|plan\w*|fass\w*|übersetz\w*|erklär\w*|erstell\w*|mach\w*|bau\w*)\b",
    re.IGNORECASE,
)
"""What a task says whose outcome depends on what somebody likes."""

_SHORT: Final = 30
"""The most words of a task that only brings or computes something; a longer one may ask for anything."""


def told_standing(tree: Tree, agent: Agent) -> Sequence[str]:
    """The standing statements that an agent's first message holds.

    None for a copy of its caller, which has them in its history, for a model that is too small, and for a child that is
    to bring or compute something and nothing else. None while memory is off.
    """
    if not tree.remembers:
        return ()
    if not agent.context.fresh or agent.context.forked or tree.roles[agent.model].small:
        return ()
    if agent.caller != "user" and is_complete(agent.mail.task):
        return ()
    return tree.standing.lines


def block(lines: Sequence[str]) -> str:
    """The paragraph of a first message that holds these statements."""
    return "\n".join([f"{KNOWN}:", *(f"- {line}" for line in lines)])


def is_complete(task: str) -> bool:
    """Whether a task only brings or computes something, so that no wish and no larger goal can help with it."""
    short = len(task.split()) <= _SHORT
    return short and _FETCHES.search(task.strip()) is not None and _MAKES.search(task) is None
