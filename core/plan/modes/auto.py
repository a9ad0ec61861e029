"""`auto`: chooses how a request is worked on, by rules that can be read.

KAIJU and PTR both leave this to future work. The choice is a function of the request and of the steps
that were written for it, so it costs nothing and can be explained; it errs towards the cheaper way,
because a plain dialogue can always hand over to a plan, and not the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal

from core.plan.model import Node

Way = Literal["plain", "static", "profile", "nreflect", "reflect", "analyze"]


@dataclass(frozen=True, slots=True)
class Choice:
    """How to go about it. "plain": no plan at all. `reason`: one sentence for people."""

    way: Way
    reason: str


_UNKNOWN: Final = re.compile(
    r"\b(why|cause|debug|diagnos\w+|investigat\w+|explor\w+|find out|figure out|trouble\w*|fix|until|"
    r"work out|what is wrong|warum|ursache|herausfinden|untersuch\w+|beheb\w+|bis)\b",
    re.IGNORECASE,
)
_BRANCHES: Final = re.compile(
    r"\b(if|unless|depending|otherwise|in case|falls|je nach|sonst)\b", re.IGNORECASE
)
_MANY: Final = re.compile(
    r"\b(each|every|all|compare|summari[sz]e|report|collect|audit|then|and then|jede\w*|alle\w*|vergleich\w*|dann|sowie)\b"
    r"|;|\d+\s+\w+s\b",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"\b(and|und)\b|,", re.IGNORECASE)


def choose(goal: str, steps: Collection[Node] = ()) -> Choice:
    """The way for a request; `steps`: those that its author has already written."""
    unknown, branches = _UNKNOWN.search(goal), _BRANCHES.search(goal)
    if steps:
        return _written(steps, bool(unknown))
    parts = 1 + len(_AND.findall(goal)) + 2 * len(_MANY.findall(goal))
    if unknown:
        if parts <= 1 and len(goal.split()) <= 6:
            return Choice("plain", f"The request is short, though {unknown[0]!r} may need observation.")
        if parts >= 4:
            return Choice("nreflect", f"{unknown[0]!r} needs observation, and there are several parts.")
        return Choice("reflect", f"{unknown[0]!r} means that results decide what comes next.")
    if branches:
        return Choice("profile", f"The steps are foreseeable; {branches[0]!r} can be a branch rule.")
    if parts <= 2:
        return Choice("plain", "The request is simple: a plan would cost more than it saves.")
    return Choice("profile", f"About {parts} foreseeable parts: planned once, run in parallel.")


def _written(steps: Collection[Node], unknown: bool) -> Choice:
    if unknown and len(steps) > 3:
        return Choice("nreflect", "The steps are written, but the goal needs observation.")
    return Choice("static", "All steps are written; nothing needs to be judged.")
