"""Values in the messages that mention them: small texts whole, so that nobody spends a turn on reading them.

A longer text stands there by name, type, size and first line; anything else by name, type and size. What a message shows of
a value taints its reader with the value's labels, which are returned with it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.context.excerpt import readable
from iact.core.language import labels
from iact.core.language.variables import Value

SMALL: Final = 2_000
"""A text of fewer characters is shown whole."""

_BYTES_PER_CHARACTER: Final = 4
"""The most bytes of a character, so that a long text need not be read to know that it is long."""
_LINE: Final = 400
"""The most bytes of a text that are read for its first line."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a message says about the values that it brings."""

    about: tuple[str, ...]
    """A description of each value."""
    whole: Mapping[str, str]
    """The contents of the small ones, by name."""
    sources: frozenset[str]
    """The labels of all values of which any content is shown."""


NO_VALUES: Final = Described((), {}, frozenset())
"""What is said about the values of a message that brings none."""


def in_full(value: Value) -> str | None:
    """The content of a value that is shown whole; None if only its name is given."""
    if not value.is_text or value.size > SMALL * _BYTES_PER_CHARACTER:
        return None

    text = readable(value)
    is_small = len(text) < SMALL and bool(text.strip())
    return text if is_small else None


def first_line(value: Value) -> str:
    """The first line of a text that has words in it; empty if it is no text."""
    if not value.is_text:
        return ""

    begin = value.load()[:_LINE].decode("utf-8", "replace")
    lines = (line.strip() for line in begin.splitlines())
    return next((line for line in lines if line), "")


def describe_values(
    values: Mapping[str, Value],
    *,
    new: Collection[str],
    begun: Collection[str],
    room: int,
    is_lost: Callable[[str], bool],
    known_lost: Container[str] = (),
) -> Described:
    """Describe the values that a message brings, by name.

    `new`: those that the reader did not have before; only of these it is shown something. `begun`: those of which a first
    line may be shown. `room`: the most characters that are shown of all small values together. `is_lost`: whether the
    content with a digest is lost, so that a sentence is read in its place. `known_lost`: digests of which a record says so.
    """
    about: list[str] = []
    whole: dict[str, str] = {}
    sources: frozenset[str] = frozenset()

    for name, value in values.items():
        if name not in new:
            about.append(labels.describe(name, value, lost=value.sha256 in known_lost))
            continue

        text = in_full(value)
        begins = ""
        if text is not None and len(text) <= room:
            whole[name] = text
            room -= len(text)
        elif name in begun:
            begins = first_line(value)

        # What is shown of a value taints its reader.
        if name in whole or begins:
            sources |= value.labels
        # Of what no record says it, only what was read is known to be lost.
        gone = value.sha256 in known_lost or (bool(begins) and is_lost(value.sha256))
        about.append(labels.describe(name, value, begins, lost=gone))

    return Described(tuple(about), whole, sources)
