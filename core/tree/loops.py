"""Detects an agent that goes round in circles: the same call with the same bad outcome, again and again.

Only exact repetitions count (function and arguments by digest, outcome by digest), so a loop that makes progress is
never stopped. Only failures and messages between agents count, so polling until something becomes ready is allowed.
"""

from __future__ import annotations

from typing import Final

from iact.core.language import labels
from iact.core.language.variables import text_value
from iact.core.tree.agent import Agent
from iact.core.tree.guards import Repeats

WARN: Final = 3
"""Repetitions after which the agent is warned."""

END: Final = 5
"""Repetitions after which its work ends."""

UNCHANGED: Final = 2
"""Repetitions of an incomplete call after which the agent's work ends."""


def observe(repeats: Repeats, function: str, arguments: str, outcome: str) -> int:
    """Count one outcome. Returns how often in a row this call has had it."""
    last, count = repeats.get((function, arguments), ("", 0))
    count = count + 1 if last == outcome else 1
    repeats[function, arguments] = outcome, count
    return count


def watch(agent: Agent, function: str, arguments: str, outcome_text: str) -> None:
    """Note the outcome of a call. If it is always the same, the agent is warned, and finally stopped."""
    count = observe(agent.guards.repeats, function, arguments, text_value(outcome_text).sha256)
    if count >= END:
        agent.guards.ended = f"The same {function} was made {count} times with the same outcome."
    elif count >= WARN:
        agent.mail.feedback.append(labels.repeated(function, count))
