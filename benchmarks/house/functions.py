"""Functions of a room that are chosen at random, as they are at two commits: to be read, and explained in a sentence.

Chosen are functions whose body is long enough to be counted by `breathing`, because a short one can be understood in any
form. Which ones depends on the seed and on the earlier commit alone, so that nothing that was written since decides it.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.house.breathing import LEAST, Function, without_docstring

SEED: Final = 45
MOST: Final = 10
"""How many functions of a room are chosen."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a function is."""

    file: str
    name: str
    """Its name, behind that of its class: `Scanner.feed`."""


def chosen(before: Mapping[str, str], seed: int = SEED, most: int = MOST) -> list[Place]:
    """Choose functions of some files, which are texts by name."""
    places = sorted(
        (
            Place(file, name)
            for file, text in before.items()
            for name, function in functions(text)
            if _is_long(function)
        ),
        key=lambda place: (place.file, place.name),
    )
    return sorted(random.Random(seed).sample(places, min(most, len(places))), key=places.index)


def source_of(files: Mapping[str, str], place: Place) -> str:
    """A function's text in some files; empty if it is in none of them."""
    text = files.get(place.file, "")
    for name, function in functions(text):
        if name == place.name:
            lines = text.splitlines()[function.lineno - 1 : function.end_lineno]
            return textwrap.dedent("\n".join(lines))
    return ""


def functions(text: str) -> Iterator[tuple[str, Function]]:
    """The functions and methods of a file, with their names."""
    for node in ast.parse(text).body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function):
                    yield f"{node.name}.{inner.name}", inner


def _is_long(function: Function) -> bool:
    body = without_docstring(function.body)
    if not body:
        return False
    return (function.end_lineno or 0) - body[0].lineno + 1 >= LEAST
