"""Policies: who may call what, how much, and with which arguments. Written by people (`core.gate.policy_file`).

Several scopes merge by union of functions, minimum of caps, and union of rules. The merge is commutative, associative
and idempotent.
"""

from __future__ import annotations

import fnmatch
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from iact.core.gate.grant import Scope
from iact.core.gate.hosts import Rule
from iact.core.ports import ChangeKind

Otherwise = Literal["ask", "deny"]
Then = Literal["deny", "hold", "allow"]
RuleKind = Literal["method", "sql", "path", "host", "shell", "equals"]


@dataclass(frozen=True, slots=True, order=True)
class Require:
    """A rule about one parameter of the functions that match a pattern. A missing parameter is not judged.

    Each value must be in one of the sets of `within` or have one of `hosts`, or the argument must come only from the
    user and `sources`.
    """

    function: str
    parameter: str
    within: tuple[str, ...] = ()
    """Names of sets of values; "user": the user wrote it."""
    hosts: tuple[str, ...] = ()
    links: bool = False
    """Every link and address in the text must meet this instead."""
    otherwise: Otherwise = "ask"
    sources: tuple[str, ...] = ()
    """Patterns of labels; "picked" lets the agent choose among the values of one source."""
    rank: int = 0
    """Which of several broken rules a question names, the lowest first; 0 lets the kind of argument decide
    (`core.gate.decisive_argument`)."""


@dataclass(frozen=True, slots=True, order=True)
class ImpactRule:
    """Raises the impact of a call by one of its arguments; see `core.gate.rules`."""

    function: str
    parameter: str
    kind: RuleKind
    values: tuple[str, ...] = ()
    impact: float = 2


@dataclass(frozen=True, slots=True, order=True)
class Nobody:
    """What happens to questions about a function that no person can answer; see `core.gate.nobody`."""

    function: str
    then: Then = "deny"
    parameter: str = ""
    """For `allow`: the argument that is an amount."""
    below: float = 0
    """For `allow`: the limit for all calls together."""
    otherwise: Literal["deny", "hold"] = "deny"
    """What happens to the question in all other cases."""


@dataclass(frozen=True, slots=True, order=True)
class EffectRule:
    """Rates changes in a live directory; see `core.gate.effects`."""

    path: str
    kinds: tuple[ChangeKind, ...] = ()
    """None means all."""
    impact: float = 1
    scope: str = ""
    """The scope that the rule belongs to."""


@dataclass(frozen=True, slots=True, order=True)
class CallRate:
    """At most `calls` in any `per` seconds on average, with bursts of `calls`."""

    function: str
    calls: int
    per: float


@dataclass(frozen=True, slots=True, order=True)
class PlanRule:
    """What a profiled plan does about calls of the functions that match a pattern; see `core.plan.modes.profile_rules`.

    The gate itself does nothing with it: what the rule changes is a call that the gate rates like any other.
    """

    function: str
    error: str = ""
    """A call that fails with an error that contains this is tried again."""
    when: str = ""
    """The expression that must hold just before the call."""
    set: tuple[tuple[str, str], ...] = ()
    """The parameters that are changed, with their values in JSON."""
    skip: bool = False
    """Whether the step is left out."""
    auto: tuple[tuple[str, str], ...] = ()
    """Parameters that may be marked `auto`, with the expressions that give their values."""


@dataclass(frozen=True)
class Policy:
    """One scope, or several merged. Without any, nothing is allowed."""

    names: frozenset[str] = frozenset()
    """The scopes that it is made of."""
    functions: frozenset[str] = frozenset()
    """Patterns of the functions that may be called."""
    caps: frozenset[tuple[str, float]] = frozenset()
    """Pairs of a pattern and the highest impact of its functions, at most one per pattern."""
    trusted: frozenset[str] = frozenset()
    """Patterns of labels whose values count as the user's own."""
    requires: frozenset[Require] = frozenset()
    impacts: frozenset[ImpactRule] = frozenset()
    rates: frozenset[CallRate] = frozenset()
    clearance: frozenset[str] = frozenset()
    """Patterns of functions whose every call needs clearance."""
    readers: frozenset[str] = frozenset()
    """Patterns of functions that only agents of intent 0 may call, because they bring in content that nobody vouches
    for. A caller with more intent delegates them to such a child."""
    sets: frozenset[tuple[str, str]] = frozenset()
    """Pairs of the name of a set of values and one value in it."""
    remember: bool = True
    """Whether a person's yes may be remembered."""
    lockdown: bool = False
    """Every call is denied."""
    levels: frozenset[tuple[str, float]] = frozenset()
    """Pairs of a name and its level of intent."""
    effects: frozenset[EffectRule] = frozenset()
    egress: frozenset[Rule] = frozenset()
    """Pairs of a module and a rule about hosts that it may reach (`core.gate.hosts`)."""
    questions: int = 0
    """The version of the gate's questions that applies, so that the decisions and questions of a journal are derived
    again as they were. 0: the alphabetically first argument is named; from 1 on, the most decisive one; from 2 on, a
    value composed of covered values is covered (`core.gate.derivations`)."""
    nobody: frozenset[Nobody] = frozenset()
    """What happens to questions that no person can answer."""
    others: frozenset[str] = frozenset()
    """Patterns of functions whose effects other people see (an invitation, an entry in a shared calendar, a star),
    however easily they are undone."""
    plans: frozenset[PlanRule] = frozenset()
    """What profiled plans do about calls."""
    _requires: dict[str, tuple[Require, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _impacts: dict[str, tuple[ImpactRule, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _rates: dict[str, tuple[CallRate, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @functools.cached_property
    def known(self) -> Mapping[str, frozenset[str]]:
        """The named sets of values."""
        by_name: dict[str, set[str]] = {}
        for name, value in self.sets:
            by_name.setdefault(name, set()).add(value)
        return {name: frozenset(values) for name, values in by_name.items()}

    def clears(self, function: str) -> bool:
        """Whether every call of `function` needs clearance."""
        return any(fnmatch.fnmatchcase(function, pattern) for pattern in self.clearance)

    def meets_others(self, function: str) -> bool:
        """Whether other people see the effects of `function`. Then the sources of a call count, whatever its impact."""
        return any(fnmatch.fnmatchcase(function, pattern) for pattern in self.others)

    def for_readers(self, function: str) -> bool:
        """Whether `function` is only for agents of intent 0."""
        return any(fnmatch.fnmatchcase(function, pattern) for pattern in self.readers)

    def scope(self) -> Scope:
        """The scope for a grant."""
        return Scope("+".join(sorted(self.names)), (tuple(sorted(self.functions)),), dict(sorted(self.caps)))

    def merge(self, other: Policy) -> Policy:
        """Merge both policies: union of functions and of hosts, minimum of caps, all rules of both.

        A source is trusted only if both trust it: one policy must not undo the other's rules.
        """
        caps: dict[str, float] = {}
        for pattern, cap in (*self.caps, *other.caps):
            caps[pattern] = min(cap, caps.get(pattern, cap))

        return Policy(
            names=self.names | other.names,
            functions=self.functions | other.functions,
            caps=frozenset(caps.items()),
            trusted=self.trusted & other.trusted,
            requires=self.requires | other.requires,
            impacts=self.impacts | other.impacts,
            rates=self.rates | other.rates,
            clearance=self.clearance | other.clearance,
            readers=self.readers | other.readers,
            sets=self.sets | other.sets,
            remember=self.remember and other.remember,
            lockdown=self.lockdown or other.lockdown,
            levels=self.levels | other.levels,
            effects=self.effects | other.effects,
            egress=self.egress | other.egress,
            questions=max(self.questions, other.questions),
            nobody=self.nobody | other.nobody,
            others=self.others | other.others,
            plans=self.plans | other.plans,
        )

    def requires_of(self, function: str) -> tuple[Require, ...]:
        """The rules about arguments of `function`."""
        if function not in self._requires:
            self._requires[function] = _matching(self.requires, function)
        return self._requires[function]

    def impacts_of(self, function: str) -> tuple[ImpactRule, ...]:
        """The rules that can raise the impact of `function`."""
        if function not in self._impacts:
            self._impacts[function] = _matching(self.impacts, function)
        return self._impacts[function]

    def rates_of(self, function: str) -> tuple[CallRate, ...]:
        """The rates that a call of `function` counts towards."""
        if function not in self._rates:
            self._rates[function] = _matching(self.rates, function)
        return self._rates[function]


_Rule = TypeVar("_Rule", Require, ImpactRule, CallRate)


def _matching(rules: Iterable[_Rule], function: str) -> tuple[_Rule, ...]:
    return tuple(sorted(rule for rule in rules if fnmatch.fnmatchcase(function, rule.function)))


def merged(policies: Iterable[Policy]) -> Policy:
    """Merge any number of policies. Without any, nothing is allowed."""
    many = list(policies)
    return functools.reduce(Policy.merge, many) if many else Policy()


OPEN: Final = Policy(names=frozenset({"default"}), functions=frozenset({"*"}))
"""The policy if no file says more: every function of every module of the session, and only the default rules."""
