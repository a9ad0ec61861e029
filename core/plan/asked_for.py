"""Whether a person asked for a step, as far as that can be told from their words: they named what it works on.

A judge may find planned steps needless, but not those: "read a.txt, b.txt and c.txt" is three steps, whatever the first two
have shown. It errs towards the person.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from iact.core.plan.model import PlanNode
from iact.core.ports import JSON

_LEAST: Final = 3
"""The fewest characters of a value that can be recognised."""

_MOST: Final = 400
"""The most: a longer text is not one that a person names something by."""


def asked_for(node: PlanNode, words: Iterable[str]) -> bool:
    """Whether the person named what a step works on: a value of one of its parameters is in their words."""
    said = [text.casefold() for text in words]
    values = [value.casefold() for value in _texts(list(node.params.values()))]
    return any(value in text for value in values for text in said)


def _texts(value: JSON) -> Iterator[str]:
    if isinstance(value, str) and _LEAST <= len(value.strip()) <= _MOST:
        yield value.strip()
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
