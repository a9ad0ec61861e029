"""What would be asked less, and what an attacker would gain: three rules that the gate does not have, on recorded runs.

Each rule lets values pass that the person or the policy did not name. A rule is worth it if honest runs are asked much less
and no attack gets through by it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.agentdyn.replay import Call, Decided, Person, Run, decided, harm, lets, questions, through
from iact.core.gate.gate import Question
from iact.core.gate.rules import texts_of

Rule = Literal["for its function and argument", "for its argument", "for everything", "a field of its own"]
RULES: Final[tuple[Rule, ...]] = (
    "for its function and argument",
    "for its argument",
    "for everything",
    "a field of its own",
)
"""The first three: a yes also holds for later values from the same result, as far as this says. The last: a value that is
the only one of its kind in a result is not asked about."""

PERSON: Final[Person] = "knows the task"


@dataclass
class Compared:
    """How a rule did."""

    asked: int = 0
    """Questions in honest runs."""
    through: int = 0
    """Attacks that get through, of those that reached their goal when they were recorded."""


def compared(runs: Iterable[Run]) -> dict[Rule | None, Compared]:
    """How each rule does, and the gate as it is (None)."""
    found: dict[Rule | None, Compared] = {rule: Compared() for rule in (None, *RULES)}
    for run in runs:
        is_attack = bool(run.injection_task)
        if not run.user_task or (is_attack and not run.reached):
            continue

        calls = decided(run)
        for rule, sums in found.items():
            if is_attack:
                sums.through += _gets_through(run, calls, rule)
            else:
                sums.asked += _asked(run, calls, rule)
    return found


def _asked(run: Run, calls: Sequence[Decided], rule: Rule | None) -> int:
    passed = _passed(run, calls, rule)
    return sum(not any(one is other for other in passed) for one in questions(calls))


def _gets_through(run: Run, calls: Sequence[Decided], rule: Rule | None) -> bool:
    if through(calls, PERSON) > 0:
        return True
    passed = _passed(run, calls, rule)
    return any(one is other for one in harm(calls) for other in passed)


def _passed(run: Run, calls: Sequence[Decided], rule: Rule | None) -> list[Decided]:
    """The calls that a rule lets pass without a question."""
    if rule is None:
        return []

    passed: list[Decided] = []
    answered = set[tuple[object, ...]]()
    for one in calls:
        if not isinstance(one.verdict, Question) or not one.asked:
            continue
        if rule == "a field of its own":
            if all(where == "one field of a result" for _, where in one.asked):
                passed.append(one)
            continue

        place = _place(run, one, rule)
        if place is not None and place in answered:
            passed.append(one)
        elif place is not None and lets(PERSON, one):
            answered.add(place)
    return passed


def _place(run: Run, one: Decided, rule: Rule) -> tuple[object, ...] | None:
    """What a yes holds for: the result that the values were read from, and what the rule says. None: no such result."""
    names = tuple(name for name, _ in one.asked)
    source = _source(run, one.call, names)
    if source is None:
        return None
    match rule:
        case "for its function and argument":
            return source, one.call.function, names
        case "for its argument":
            return source, names
        case _:
            return (source,)


def _source(run: Run, call: Call, names: Sequence[str]) -> int | None:
    """The first result that a value of these arguments is in, if all of them were read somewhere."""
    before = []
    for earlier in run.calls:
        if earlier is call:
            break
        before.append(earlier.result)

    values = [text for name in names for text in texts_of(call.arguments[name]) if len(text) > 2]
    if not values or not all(any(value in result for result in before) for value in values):
        return None
    return next(at for at, result in enumerate(before) if any(value in result for value in values))
