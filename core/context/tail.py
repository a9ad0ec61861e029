"""The dynamic tail: what changes from turn to turn, as one paragraph after the newest input.

The most useful facts come first, and the tail is cut to a budget. Everything in it is either a function of the agent's
own state or is in `Seen`, which the journal records with the turn, so that a replay builds the same bytes.

The first tail that an agent reads is whole; each later one contains only what differs from what the agent was told
before (`Told`), and all of them stay in history. So every context is a prefix of the next one, and nothing is read
twice (measured: docs/measurements/tail.md). A compression and the beginning of a fork discard what was told; the next
tail is then whole again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal

from iact.core.language.labels import KNOWN, STATE, describe, inline, path, size
from iact.core.language.variables import Table, Value
from iact.core.records.parts import Seen, SeenFiles

Layout = Literal["whole", "changes"]
"""How a session treats its tails: whole at every turn and then dropped (the first journals), or changes that stay in
history."""

LAYOUT: Final[Layout] = "changes"
"""The layout of new sessions, as recorded in their `open` record."""

BUDGET: Final = 1600
"""The most characters of a tail; about 400 tokens."""

_DATE: Final = len("2026-01-31")
"""The characters of a date, with which a time begins."""

_FILES: Final = 600
"""The most characters of file names."""

_LISTED: Final = 12
"""The most variables and children that are named."""


@dataclass(frozen=True, slots=True)
class Told:
    """The state that the agent knows from everything it has read."""

    seen: Seen
    """What it was shown last."""
    bindings: int
    """The `bindings` of its variables at that turn."""


def tail(
    seen: Seen,
    variables: Table,
    memories: Sequence[str] = (),
    *,
    modules: Sequence[str] = (),
    named: AbstractSet[str] = frozenset(),
) -> str:
    """Return the whole state.

    `memories`: lines that were recalled for this turn. `modules`: clauses about modules. `named`: variables that are
    described above it in the same message, and so not here.
    """
    parts = [f"time: {seen.now}"]
    if seen.tokens_left is not None:
        parts.append(f"only {seen.tokens_left} tokens of your budget left")
    if seen.directory:
        parts.append(f"working directory: {path(seen.directory)}")
    parts += modules
    parts += _files(seen.files, "files, newest first")
    if seen.running:
        parts.append("children at work: " + _listed(_agents(seen), len(seen.running)))
    if memories:
        parts.append(f"{KNOWN}: " + " ".join(memories))

    listed = [(name, value) for name, value in variables.listed() if name not in named]
    if listed:
        parts.append("variables: " + _described(listed))
    return _paragraph(parts)


def changes(
    told: Told,
    seen: Seen,
    variables: Table,
    memories: Sequence[str] = (),
    *,
    modules: Sequence[str] = (),
    named: AbstractSet[str] = frozenset(),
) -> str:
    """Return what differs from what the agent was told; empty if nothing is new. Arguments are those of `tail`."""
    before = told.seen
    parts = list[str]()
    if seen.now != before.now:
        same_day = seen.now[:_DATE] == before.now[:_DATE]
        time = seen.now[_DATE:].lstrip() if same_day else seen.now
        parts.append(f"time: {time}")

    if seen.tokens_left != before.tokens_left:
        if seen.tokens_left is None:
            parts.append("your budget of tokens is not short any more")
        else:
            parts.append(f"only {seen.tokens_left} tokens of your budget left")

    if seen.directory and seen.directory != before.directory:
        parts.append(f"working directory: {path(seen.directory)}")
    parts += modules
    parts += _files(seen.files, "new or changed files")

    # Also that none is at work any more.
    if tuple(seen.running) != tuple(before.running):
        parts.append("children at work: " + (_listed(_agents(seen), len(seen.running)) or "none"))
    if memories:
        parts.append(f"{KNOWN}: " + " ".join(memories))

    listed = [(name, value) for name, value in variables.listed(told.bindings) if name not in named]
    if listed:
        parts.append("new variables: " + _described(listed))
    return _paragraph(parts) if parts else ""


def _agents(seen: Seen) -> list[str]:
    return [f"`{inline(agent, 60)}`" for agent in seen.running[:_LISTED]]


def _described(variables: Sequence[tuple[str, Value]]) -> str:
    """The first few variables with what they hold."""
    descriptions = [describe(name, value) for name, value in variables[:_LISTED]]
    return _listed(descriptions, len(variables))


def _files(files: SeenFiles | None, head: str) -> list[str]:
    """The lines about files, which are only the differences: the workspace was listed when the turn began."""
    if files is None:
        return []

    room = _FILES
    new = list[str]()
    for file in files.new:
        shown = f"{path(file.path)} ({size(file.size)})"
        if len(shown) > room:
            break
        new.append(shown)
        room -= len(shown)

    # Each may take all the room that is left, since the tail as a whole is bounded.
    gone = [path(name) for name in files.gone if len(path(name)) <= room]

    parts = list[str]()
    if files.new:
        parts.append(f"{head}: {_listed(new, len(files.new) + files.more)}")
    if files.gone:
        parts.append(f"files that are gone: {_listed(gone, len(files.gone) + files.more_gone)}")
    return parts


def _paragraph(parts: Sequence[str]) -> str:
    """The facts as one line, cut to the budget."""
    text = STATE + "; ".join(parts)
    return text if len(text) <= BUDGET else text[: BUDGET - 1] + "…"


def _listed(names: Sequence[str], count: int) -> str:
    """List `names`, and how many more of `count` there are."""
    left = count - len(names)
    if not left:
        return ", ".join(names)
    if not names:
        return f"{left} with long names"
    return f"{', '.join(names)} and {left} more"
