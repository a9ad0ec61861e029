"""What becomes of a question when nobody is there to answer it: a program, a pipe, a job at night. Pure.

A policy says it for classes of calls (`Nobody`): `deny`; `hold`, so that it waits for a person as long as that takes
while all goes on that does not depend on it; or `allow` below an amount. Of several rules about a call the strictest
counts, so that merging two scopes never lets more through than each alone.

The amount is that of *all* calls together that a rule let through in a session, for whoever owns the model would make
many small ones. Only a plain number counts as an amount: a text can be read in two ways ("1.000"), a negative number
would make room, and what is not given says nothing.
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
"""What rules let through so far, each by itself."""

_STRICTEST_FIRST: Final[tuple[Then, ...]] = ("deny", "hold", "allow")


def unattended(policy: Policy, function: str, arguments: Mapping[str, JSON], spent: Spent) -> Then | None:
    """What becomes of a question about a call; None: the policy says nothing, so it waits as if somebody were there."""
    said = {_verdict(rule, arguments, spent) for rule in rules_of(policy, function)}
    return next((one for one in _STRICTEST_FIRST if one in said), None)


def spend(policy: Policy, function: str, arguments: Mapping[str, JSON], spent: Spent) -> Spent:
    """What rules let through so far, with one more call that they allowed."""
    more = dict(spent)
    for rule in rules_of(policy, function):
        amount = _amount(arguments.get(rule.parameter)) if rule.then == "allow" else None
        if amount is not None:
            more[rule] = more.get(rule, Fraction(0)) + amount
    return more


def rules_of(policy: Policy, function: str) -> Iterable[Nobody]:
    """The rules about questions that nobody is there to answer, of calls of `function`."""
    return [one for one in sorted(policy.nobody) if fnmatch.fnmatchcase(function, one.function)]


def _verdict(rule: Nobody, arguments: Mapping[str, JSON], spent: Spent) -> Then:
    if rule.then != "allow":
        return rule.then
    amount = _amount(arguments.get(rule.parameter))
    if amount is None or spent.get(rule, Fraction(0)) + amount >= Fraction(rule.below):
        return rule.otherwise
    return "allow"


def _amount(value: JSON) -> Fraction | None:
    """An amount as a number that nobody can read in another way; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(value) if math.isfinite(value) and value >= 0 else None
