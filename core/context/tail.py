"""The dynamic tail: what changes every turn, at the very end of a context and never in history.

It is one paragraph behind the newest input, most useful first, cut to a budget. Everything in it
is either a function of the agent's own state or stands in `Seen`, which the journal records with
the turn, so that a replay builds the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from core.language.labels import describe, inline, path
from core.language.variables import Table
from core.ports import JSON

BUDGET: Final = 1600
"""Characters; about 400 tokens."""

_LISTED: Final = 12
"""Variables and children that are named."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an agent is shown of the world at one turn. `now`: to the minute, UTC. `running`: children at work.

    `tokens_left`: of the agent's budget, once that is short.
    """

    now: str
    directory: str = ""
    running: Sequence[str] = field(default_factory=tuple)
    tokens_left: int | None = None

    def to_json(self) -> dict[str, JSON]:
        """As it stands in a `turn` record."""
        found: dict[str, JSON] = {"now": self.now}
        if self.directory:
            found["directory"] = self.directory
        if self.running:
            found["running"] = list(self.running)
        if self.tokens_left is not None:
            found["tokens_left"] = self.tokens_left
        return found

    @staticmethod
    def from_json(data: JSON) -> Seen:
        """Back from a `turn` record; absent fields are empty."""
        if not isinstance(data, dict):
            return Seen("")
        running = data.get("running")
        return Seen(
            str(data.get("now", "")),
            str(data.get("directory", "")),
            tuple(str(name) for name in running) if isinstance(running, list) else (),
            left if isinstance(left := data.get("tokens_left"), int) else None,
        )


def tail(seen: Seen, variables: Table) -> str:
    """The tail's text; newest variables first."""
    parts = [f"time: {seen.now}"]
    if seen.tokens_left is not None:
        parts.append(f"only {seen.tokens_left} tokens of your budget left")
    if seen.directory:
        parts.append(f"working directory: {path(seen.directory)}")
    if seen.running:
        names = [inline(name, 60) for name in seen.running[:_LISTED]]
        parts.append("children at work: " + _listed(names, len(seen.running)))
    if variables:
        newest = [describe(*item) for item in islice(variables.newest(), _LISTED)]
        parts.append("variables: " + _listed(newest, len(variables)))
    text = "(state) " + "; ".join(parts)
    return text if len(text) <= BUDGET else text[: BUDGET - 1] + "…"


def _listed(names: Sequence[str], count: int) -> str:
    """`names` of `count` things."""
    left = count - len(names)
    return ", ".join(names) + (f" and {left} more" if left else "")
