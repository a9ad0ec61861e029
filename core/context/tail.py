"""The dynamic tail: what changes from turn to turn, as one paragraph behind the newest input.

It is most useful first and cut to a budget. Everything in it is either a function of the agent's own
state or stands in `Seen`, which the journal records with the turn, so that a replay builds the same bytes.

The first tail that an agent reads is whole; each later one names only what is different from what it was
told (`Told`), and all of them stay in history. So every context is a prefix of the next one, and nothing
is read twice (measured: docs/measurements/tail.md). What was told ends with a compression and at the beginning
of a fork; the next tail is then whole again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

from iact.core.language.labels import describe, inline, path, size
from iact.core.language.variables import Table
from iact.core.records.parts import Seen, SeenFiles

Layout = Literal["whole", "changes"]
"""What a session does with its tails: the whole one at every turn and then dropped (the first journals), or
changes that stay in history."""

LAYOUT: Final[Layout] = "changes"
"""The layout of new sessions; it stands in their `open` record."""

BUDGET: Final = 1600
"""Characters; about 400 tokens."""

_DATE: Final = len("2026-01-31")

_FILES: Final = 600
"""Characters of files' names."""

_LISTED: Final = 12
"""Variables and children that are named."""


@dataclass(frozen=True, slots=True)
class Told:
    """The state as it follows from all that an agent has read: its last `Seen`, and the `bindings` at that turn."""

    seen: Seen
    bindings: int


def tail(seen: Seen, variables: Table, memories: Sequence[str] = ()) -> str:
    """The whole state; newest variables first. `memories`: lines of what was recalled for this turn."""
    parts = [f"time: {seen.now}"]
    if seen.tokens_left is not None:
        parts.append(f"only {seen.tokens_left} tokens of your budget left")
    if seen.directory:
        parts.append(f"working directory: {path(seen.directory)}")
    parts += _files(seen.files, "files, newest first")
    if seen.running:
        names = [inline(name, 60) for name in seen.running[:_LISTED]]
        parts.append("children at work: " + _listed(names, len(seen.running)))
    if memories:
        parts.append("memory: " + " ".join(memories))
    if variables:
        newest = [describe(*item) for item in islice(variables.newest(), _LISTED)]
        parts.append("variables: " + _listed(newest, len(variables)))
    return _paragraph(parts)


def changes(told: Told, seen: Seen, variables: Table, memories: Sequence[str] = ()) -> str:
    """The state as far as it is not what the agent was told, and `memories`; empty if nothing is new."""
    before, parts = told.seen, list[str]()
    if seen.now != before.now:
        same_day = seen.now[:_DATE] == before.now[:_DATE]
        parts.append(f"time: {seen.now[_DATE:].lstrip() if same_day else seen.now}")
    if seen.tokens_left is not None and seen.tokens_left != before.tokens_left:
        parts.append(f"only {seen.tokens_left} tokens of your budget left")
    elif seen.tokens_left is None and before.tokens_left is not None:
        parts.append("your budget of tokens is not short any more")
    if seen.directory and seen.directory != before.directory:
        parts.append(f"working directory: {path(seen.directory)}")
    parts += _files(seen.files, "new or changed files")
    if tuple(seen.running) != tuple(before.running):
        names = [inline(name, 60) for name in seen.running[:_LISTED]]
        parts.append("children at work: " + (_listed(names, len(seen.running)) or "none"))
    if memories:
        parts.append("memory: " + " ".join(memories))
    fresh = list(variables.newest(told.bindings))
    if fresh:
        described = [describe(*item) for item in fresh[:_LISTED]]
        parts.append("new variables: " + _listed(described, len(fresh)))
    return _paragraph(parts) if parts else ""


def _files(files: SeenFiles | None, head: str) -> list[str]:
    """What is told of files, which is what is different: the shell looked when the turn began."""
    if files is None:
        return []
    named, room = list[str](), _FILES
    for one in files.new:
        shown = f"{path(one.path)} ({size(one.size)})"
        if len(shown) > room:
            break
        named.append(shown)
        room -= len(shown)
    gone = [path(name) for name in files.gone if len(path(name)) <= room]
    return [
        *([f"{head}: {_listed(named, len(files.new) + files.more)}"] if files.new else []),
        *([f"files that are gone: {_listed(gone, len(files.gone) + files.more_gone)}"] if files.gone else []),
    ]


def _paragraph(parts: Sequence[str]) -> str:
    text = "(state) " + "; ".join(parts)
    return text if len(text) <= BUDGET else text[: BUDGET - 1] + "…"


def _listed(names: Sequence[str], count: int) -> str:
    """`names` of `count` things."""
    left = count - len(names)
    if not names:
        return f"{left} with long names" if left else ""
    return ", ".join(names) + (f" and {left} more" if left else "")
