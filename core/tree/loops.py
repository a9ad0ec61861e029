"""Detects an agent that goes round in circles: the same again and again, with the same outcome.

Calls are compared by their kind (`core.gate.kind_of_call`), so that a blank or a comment makes no other call of one,
and outcomes by digest. A failure counts whenever it comes again. A success counts only as long as nothing new happens
in between: an agent that runs the same check after each of its changes is making progress. A call that waits by itself
(`shell.output` with `wait`, a script that sleeps) may bring the same as often as it likes: an agent that waits for something
needs that, and the number of turns is bounded.
"""

from __future__ import annotations

from typing import Final, TypeVar

from iact.core.language import labels
from iact.core.language.variables import text_value
from iact.core.tree.agent import Agent
from iact.core.tree.guards import Guards

WARN: Final = 3
"""Repetitions after which the agent is warned."""

END: Final = 5
"""Repetitions after which its work ends."""

ATTEMPTS: Final = 2
"""How often a call is made that does not complete."""

UNCHANGED: Final = 2
"""How often it may then still be written; after that, the agent's work ends."""

Key = TypeVar("Key")
Kept = TypeVar("Kept")

_MOST: Final = 512
"""How many outcomes are kept to compare with; the oldest are forgotten."""


def watch(agent: Agent, function: str, call: str, outcome_text: str) -> None:
    """Note a failure, or a message between agents. If it is always the same, the agent is warned, and finally stopped.

    `call`: what tells calls of this function apart.
    """
    outcome = text_value(outcome_text).sha256
    _progress(agent.guards, (function, call, outcome))
    count = observe(agent.guards, function, call, outcome)
    _judge(agent, function, count)


def watch_success(agent: Agent, function: str, call: str, outcome_text: str) -> None:
    """Note a call that went well. The same one, with nothing new since, is as bad as a failure.

    It counts once in a reply: an agent that writes it twice in one reply has not seen the first outcome.
    """
    guards = agent.guards
    outcome = function, call, text_value(outcome_text).sha256
    if _progress(guards, outcome):
        guards.again[outcome] = 1, agent.turn
        return

    count, turn = guards.again.get(outcome, (1, 0))
    if turn == agent.turn:
        return
    guards.again[outcome] = count + 1, agent.turn
    _judge(agent, function, count + 1)


def observe(guards: Guards, function: str, call: str, outcome: str) -> int:
    """Count one outcome. Returns how often in a row this call has had it."""
    last, count = guards.repeats.pop((function, call), ("", 0))
    count = count + 1 if last == outcome else 1
    guards.repeats[function, call] = outcome, count
    _forget(guards.repeats)
    return count


def _progress(guards: Guards, outcome: tuple[str, str, str]) -> bool:
    """Note an outcome. Returns whether it is new; then what went well before may be done again."""
    is_new = outcome not in guards.seen
    guards.seen.pop(outcome, None)
    guards.seen[outcome] = None
    _forget(guards.seen)
    if is_new:
        guards.again.clear()
    return is_new


def _forget(kept: dict[Key, Kept]) -> None:
    """Forget the oldest of very many."""
    while len(kept) > _MOST:
        del kept[next(iter(kept))]


def _judge(agent: Agent, function: str, count: int) -> None:
    if count >= END:
        agent.guards.ended = f"The same {function} was made {count} times with the same outcome."
    elif count >= WARN:
        agent.mail.feedback.append(labels.repeated(function, count))
