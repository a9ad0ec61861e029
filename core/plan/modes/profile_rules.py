"""Rules that a policy gives for what profiled plans do, whatever their profiles say (PTR, section 2.2: the rules of a domain).

A profile's own rules are about its steps, by id. A domain's are about functions: what to do when a call of one fails with a
certain error, what to change or leave out when what it builds on is of a certain kind, where a parameter comes from that is
marked `auto`. They become rules of each step that calls such a function. `before` in an expression is the result of a step
that it builds on.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from iact.core.plan.expression import Expression, renamed
from iact.core.plan.model import WINNER, PlanNode
from iact.core.ports import JSON

BEFORE: Final = "before"
"""In the expression of a rule: the result of a step that the step builds on."""


@dataclass(frozen=True, slots=True)
class DomainRule:
    """One rule about the calls of the functions that match a pattern.

    Of `error`, `when` and `auto`, one is given: it is a rule of recovery, of a branch, or of resolution.
    """

    function: str
    """The pattern: `web.*`."""
    error: str = ""
    """It fails with an error that contains this text: it is tried again with `change`."""
    when: str = ""
    """An expression that holds just before it runs: it runs with `change`, or is left out."""
    change: Mapping[str, JSON] = field(default_factory=dict)
    """Parameters, with their values."""
    skip: bool = False
    """Whether it is left out."""
    auto: Mapping[str, str] = field(default_factory=dict)
    """Expressions that give the values of parameters which are marked `auto`."""

    def applies(self, function: str) -> bool:
        """Whether it is about calls of a function."""
        return fnmatch.fnmatchcase(function, self.function)

    def in_words(self) -> str:
        """It, as a model reads it that writes a profile."""
        changes = ", ".join(f"{name} = {value!r}" for name, value in self.change.items())
        does = "it is left out" if self.skip else f"with {changes}"
        if self.error:
            return f"{self.function} fails with {self.error!r}: it is tried again {does}"
        if self.when:
            return f"{self.function}, if {self.when}: {does}"
        values = ", ".join(f"{name} = {value}" for name, value in self.auto.items())
        return f'{self.function}, a parameter that is "auto": {values}'


def fault_of(rule: DomainRule) -> str:
    """What is wrong with a rule, in one sentence; empty if it can be used."""
    for source in filter(None, (rule.when, *rule.auto.values())):
        try:
            unknown = Expression(source).steps - {BEFORE}
        except ValueError as error:
            return f"A rule of {rule.function!r} for plans can't be used: {error}."
        if unknown:
            return (
                f"A rule of {rule.function!r} for plans reads {sorted(unknown)[0]!r}; it can read `{BEFORE}` alone, "
                "the result that a step builds on."
            )
    return ""


def expressions_for(node: PlanNode, source: str) -> Iterator[Expression]:
    """Yield what a rule's expression is for a step: one for each step that it builds on, if the expression reads any."""
    if BEFORE not in Expression(source).steps:
        yield Expression(source)
        return
    for step in node.dependencies:
        if step == WINNER:
            continue
        found = Expression(renamed(source, BEFORE, step))
        # A step whose id is a number could not be read by its name.
        if step in found.steps:
            yield found


def resolution_of(node: PlanNode, name: str, rules: Sequence[DomainRule]) -> str | None:
    """The expression that gives a step's parameter `name`, which is marked `auto`; None if no rule says."""
    for rule in rules:
        if name in rule.auto and rule.applies(node.call):
            found = next(expressions_for(node, rule.auto[name]), None)
            if found is not None:
                return found.source
    return None
