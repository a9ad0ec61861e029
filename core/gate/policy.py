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
    """A rule about one parameter of the functions that match a pattern.

    Each value must be in one of the sets named by `within` ("user": the user wrote it) or have one of `hosts`, or the
    argument must come only from the user and `sources` (patterns of labels; "picked" lets the agent choose among the
    values of one source). `links`: every link and address in the text must meet this instead. A missing parameter is
    not judged. `rank`: which of several broken rules a question names, the lowest first; 0 lets the kind of argument
    decide (`core.gate.decisive_argument`).
    """

    function: str
    parameter: str
    within: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: bool = False
    otherwise: Otherwise = "ask"
    sources: tuple[str, ...] = ()
    rank: int = 0


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
    """What happens to questions about a function that no person can answer; see `core.gate.nobody`.

    `parameter`, `below`: for `allow`, the argument that is an amount, and the limit for all calls together.
    `otherwise`: what happens to the question in all other cases.
    """

    function: str
    then: Then = "deny"
    parameter: str = ""
    below: float = 0
    otherwise: Literal["deny", "hold"] = "deny"


@dataclass(frozen=True, slots=True, order=True)
class EffectRule:
    """Rates changes in a live directory; see `core.gate.effects`.

    `kinds`: none means all. `scope`: the scope that the rule belongs to.
    """

    path: str
    kinds: tuple[ChangeKind, ...] = ()
    impact: float = 1
    scope: str = ""


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
    """One scope, or several merged. `caps`: pairs of pattern and level, at most one per pattern.

    `clearance`: patterns of functions whose every call needs clearance. `readers`: patterns of functions that only
    agents of intent 0 may call, because they bring in content that nobody vouches for (a caller with more intent
    delegates them to such a child). `remember`: whether a person's yes may be remembered. `sets`: pairs of the name of
    a set of values and one value in it. `levels`: pairs of a name and its level of intent. `egress`: pairs of a module
    and a rule about hosts that it may reach (`core.gate.hosts`). `questions`: the version of the gate's questions that
    applies, so that the decisions and questions of a journal are derived again as they were. 0: the alphabetically
    first argument is named; from 1 on, the most decisive one; from 2 on, a value composed of covered values is covered
    (`core.gate.derivations`). `nobody`: what happens to questions that no person can answer. `others`: patterns of
    functions whose effects other people see (an invitation, an entry in a shared calendar, a star), however easily they
    are undone. `plans`: what profiled plans do about calls.
    """

    names: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    caps: frozenset[tuple[str, float]] = frozenset()
    trusted: frozenset[str] = frozenset()
    requires: frozenset[Require] = frozenset()
    impacts: frozenset[ImpactRule] = frozenset()
    rates: frozenset[CallRate] = frozenset()
    clearance: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()
    sets: frozenset[tuple[str, str]] = frozenset()
    remember: bool = True
    lockdown: bool = False
    levels: frozenset[tuple[str, float]] = frozenset()
    effects: frozenset[EffectRule] = frozenset()
    egress: frozenset[Rule] = frozenset()
    questions: int = 0
    nobody: frozenset[Nobody] = frozenset()
    others: frozenset[str] = frozenset()
    plans: frozenset[PlanRule] = frozenset()
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
        found: dict[str, set[str]] = {}
        for name, value in self.sets:
            found.setdefault(name, set()).add(value)
        return {name: frozenset(values) for name, values in found.items()}

    def clears(self, function: str) -> bool:
        """Whether every call of `function` needs clearance."""
        return any(fnmatch.fnmatchcase(function, one) for one in self.clearance)

    def meets_others(self, function: str) -> bool:
        """Whether other people see the effects of `function`. Then the sources of a call count, whatever its impact."""
        return any(fnmatch.fnmatchcase(function, one) for one in self.others)

    def for_readers(self, function: str) -> bool:
        """Whether `function` is only for agents of intent 0."""
        return any(fnmatch.fnmatchcase(function, one) for one in self.readers)

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
            self.names | other.names,
            self.functions | other.functions,
            frozenset(caps.items()),
            self.trusted & other.trusted,
            self.requires | other.requires,
            self.impacts | other.impacts,
            self.rates | other.rates,
            self.clearance | other.clearance,
            self.readers | other.readers,
            self.sets | other.sets,
            self.remember and other.remember,
            self.lockdown or other.lockdown,
            self.levels | other.levels,
            self.effects | other.effects,
            self.egress | other.egress,
            max(self.questions, other.questions),
            self.nobody | other.nobody,
            self.others | other.others,
            self.plans | other.plans,
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
    return tuple(sorted(one for one in rules if fnmatch.fnmatchcase(function, one.function)))


def merged(policies: Iterable[Policy]) -> Policy:
    """Merge any number of policies. Without any, nothing is allowed."""
    many = list(policies)
    return functools.reduce(Policy.merge, many) if many else Policy()


OPEN: Final = Policy(frozenset({"default"}), frozenset({"*"}))
"""The policy if no file says more: every function of every module of the session, and only the default rules."""
