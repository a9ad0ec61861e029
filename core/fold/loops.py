"""Notices an agent that goes round in circles: the same call with the same bad outcome, again and again.

Only what is exactly repeated counts (function and arguments by digest, outcome by digest), so a
loop that makes progress is never stopped, and only failures and messages between agents count, so
polling for something to become ready is allowed.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Final

WARN: Final = 3
"""Repetitions after which the agent is told."""

END: Final = 5
"""Repetitions after which its work ends."""

UNCHANGED: Final = 2
"""Repetitions of a call that did not complete after which the agent's work ends."""

Repeats = MutableMapping[tuple[str, str], tuple[str, int]]
"""(function, digest of arguments) → (digest of its last outcome, how often in a row)."""


def observe(repeats: Repeats, function: str, arguments: str, outcome: str) -> int:
    """Count one outcome; gives how often in a row this call has had it."""
    last, count = repeats.get((function, arguments), ("", 0))
    count = count + 1 if last == outcome else 1
    repeats[function, arguments] = outcome, count
    return count
