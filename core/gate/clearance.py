"""Clearance: may this call be made, now, for this user? An HTTP endpoint or a person decides; any doubt is a no.

The tree receives a `ClearancePort`. A person's yes can be remembered, bound to exactly these arguments or to a rule
that the person chose to make. A no is never remembered.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from iact.core.errors import UsageError
from iact.core.gate.gate import Answer, Question
from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class ClearanceRequest:
    """The question for an authority."""

    question: Question
    arguments: Mapping[str, JSON]
    user: str
    session: str
    provenance: Mapping[str, Sequence[str]]
    """Labels by parameter, shown to people."""

    def to_json(self) -> dict[str, JSON]:
        """Return the body of the POST request."""
        return {
            "function": self.question.request.function,
            "params": dict(self.arguments),
            "user": self.user,
            "session": self.session,
            "agent": self.question.request.agent,
        }


class ClearancePort(Protocol):
    """An authority. It answers in bounded time, and raises nothing except on cancellation."""

    async def ask(self, request: ClearanceRequest) -> Answer: ...


# --- earlier answers of a person ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RememberedCall:
    """A yes to exactly this call."""

    function: str
    arguments: str
    """The digest of the arguments."""
    user: str
    impact: float
    """The highest impact that is covered."""


@dataclass(frozen=True, slots=True)
class RememberedRule:
    """A yes to a kind of call that a person chose: patterns of the function and of named arguments."""

    function: str
    user: str
    impact: float
    """The highest impact that is covered."""
    arguments: tuple[tuple[str, str], ...] = ()
    """Pairs of a parameter and a pattern. Each of them must be present and match."""


Keep = RememberedCall | RememberedRule


def kept(data: JSON, question: Question, user: str) -> Keep | None:
    """What a person wants remembered of a yes to `question`, or None.

    `data`: "call" for exactly this call, or an object of patterns for a rule: `function`, and `arguments` by name.

    Raises:
        UsageError: it is neither, or it is a rule that does not cover the call for which it was made.
    """
    request = question.request
    match data:
        case None:
            return None
        case "call":
            return RememberedCall(request.function, request.arguments, user, question.impact)
        case {"function": str(function), **rest} if set(rest) <= {"arguments"}:
            patterns = rest.get("arguments", {})
            if isinstance(patterns, dict) and all(isinstance(pattern, str) for pattern in patterns.values()):
                named = tuple(sorted((name, str(pattern)) for name, pattern in patterns.items()))
                if fnmatch.fnmatchcase(request.function, function):
                    return RememberedRule(function, user, question.impact, named)

    raise UsageError(
        'The field remember must be "call", or {"function": pattern, "arguments": {name: pattern}} '
        f"with a pattern that {request.function} matches."
    )


@dataclass(frozen=True, slots=True)
class Remembered:
    """The remembered yeses that still apply, as folded from the journal."""

    calls: frozenset[RememberedCall] = frozenset()
    rules: frozenset[RememberedRule] = frozenset()

    def keep(self, yes: Keep | None) -> Remembered:
        """Return a copy with one more."""
        match yes:
            case RememberedCall():
                return Remembered(self.calls | {yes}, self.rules)
            case RememberedRule():
                return Remembered(self.calls, self.rules | {yes})
            case None:
                return self

    def without(self, module: str) -> Remembered:
        """Return a copy without what was said about calls of a module, because it is another one now."""
        calls = frozenset(call for call in self.calls if _module_of(call.function) != module)
        rules = frozenset(
            rule for rule in self.rules if not fnmatch.fnmatchcase(module, _module_of(rule.function))
        )
        return Remembered(calls, rules)

    def allow(self, request: ClearanceRequest) -> Answer | None:
        """Return a remembered yes that covers this call, or None."""
        question = request.question
        wanted = (question.request.function, question.request.arguments, request.user)

        # Neither a call nor a rule covers more impact than the person was shown when they said yes.
        for call in self.calls:
            same = (call.function, call.arguments, call.user) == wanted
            if same and question.impact <= call.impact:
                return Answer(True, "A person allowed exactly this call before.")

        for rule in self.rules:
            if rule.user == request.user and question.impact <= rule.impact and _fits(rule, request):
                return Answer(True, f"A person made a rule for {rule.function} before.")
        return None


def _module_of(function: str) -> str:
    """The module that a function's name, or a pattern of such names, begins with."""
    return function.partition(".")[0]


def _fits(rule: RememberedRule, request: ClearanceRequest) -> bool:
    if not fnmatch.fnmatchcase(request.question.request.function, rule.function):
        return False

    for name, pattern in rule.arguments:
        value = request.arguments.get(name)
        if not isinstance(value, str) or not fnmatch.fnmatchcase(value, pattern):
            return False
    return True
