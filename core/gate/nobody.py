"""Decides what happens to a question that no person can answer: in a script, a pipe, or a scheduled job. Pure.

A policy decides it for classes of calls (`Nobody`): `deny`; `hold`, so that the call waits for a person as long as that
takes, while everything that does not depend on it continues; or `allow` below an amount. If several rules match a call,
the strictest counts, so that merging two scopes never allows more than each of them alone.

The amount is the total of *all* calls that a rule allowed in a session, because an attacker who controls the model
would otherwise make many small calls. Only a plain number counts as an amount: a text can be read in two ways
("1.000"), a negative number would make room, and a missing value means nothing.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from iact.core.gate.policy import Nobody, Policy, Then
from iact.core.ports import JSON

Spent = Mapping[Nobody, Fraction]
"""What each rule has allowed so far."""

_STRICTEST_FIRST: Final[tuple[Then, ...]] = ("deny", "hold", "allow")


def unattended(policy: Policy, function: str, arguments: Mapping[str, JSON], spent: Spent) -> Then | None:
    """What happens to a question about a call. None: no rule matches, so it is denied."""
    verdicts = {_verdict(rule, arguments, spent) for rule in rules_of(policy, function)}
    return next((verdict for verdict in _STRICTEST_FIRST if verdict in verdicts), None)


def spend(policy: Policy, function: str, arguments: Mapping[str, JSON], spent: Spent) -> Spent:
    """Return what rules have allowed so far, including one more call that they allowed."""
    more = dict(spent)
    for rule in rules_of(policy, function):
        if rule.then != "allow":
            continue

        amount = _amount(arguments.get(rule.parameter))
        if amount is not None:
            more[rule] = more.get(rule, Fraction(0)) + amount
    return more


def rules_of(policy: Policy, function: str) -> Iterable[Nobody]:
    """The rules that apply to unanswered questions about calls of `function`."""
    return [rule for rule in sorted(policy.nobody) if fnmatch.fnmatchcase(function, rule.function)]


def _verdict(rule: Nobody, arguments: Mapping[str, JSON], spent: Spent) -> Then:
    """What one rule says about a call."""
    if rule.then != "allow":
        return rule.then

    amount = _amount(arguments.get(rule.parameter))
    if amount is None:
        return rule.otherwise

    total = spent.get(rule, Fraction(0)) + amount
    return "allow" if total < Fraction(rule.below) else rule.otherwise


def _amount(value: JSON) -> Fraction | None:
    """An amount as an unambiguous number, or None if the value is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value) if math.isfinite(value) and value >= 0 else None
