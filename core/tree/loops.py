"""Notices an agent that goes round in circles: the same call with the same bad outcome, again and again.

Only what is exactly repeated counts (function and arguments by digest, outcome by digest), so a
loop that makes progress is never stopped, and only failures and messages between agents count, so
polling for something to become ready is allowed.
"""

from __future__ import annotations

from typing import Final

from iact.core.language import labels
from iact.core.language.variables import text_value
from iact.core.tree.agent import Agent
from iact.core.tree.guards import Repeats

WARN: Final = 3
"""Repetitions after which the agent is told."""

END: Final = 5
"""Repetitions after which its work ends."""

UNCHANGED: Final = 2
"""Repetitions of a call that did not complete after which the agent's work ends."""


def observe(repeats: Repeats, function: str, arguments: str, outcome: str) -> int:
    """Count one outcome; gives how often in a row this call has had it."""
    last, count = repeats.get((function, arguments), ("", 0))
    count = count + 1 if last == outcome else 1
    repeats[function, arguments] = outcome, count
    return count


def watch(agent: Agent, function: str, arguments: str, outcome_text: str) -> None:
    """Note the outcome of a call; its agent is told, and in the end stopped, if it is always the same."""
    count = observe(agent.guards.repeats, function, arguments, text_value(outcome_text).sha256)
    if count >= END:
        agent.guards.ended = f"The same {function} was made {count} times with the same outcome."
    elif count >= WARN:
        agent.mail.feedback.append(labels.repeated(function, count))
