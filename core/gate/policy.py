"""Policies: who may call what, how much, and with which arguments. Written by people (`core.gate.policy_file`).

Several scopes merge by union of functions, minimum of caps, and union of rules; the merge is commutative,
associative and idempotent.
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

    Each value must be in one of the sets named by `within` ("user": the user wrote it) or have one of `hosts`, or
    the argument comes from nothing but the user and `sources` (patterns of labels; "picked" lets the agent choose
    among what one of them holds). `links`: instead, every link and address in the text must. A parameter that is
    not given is not judged. `rank`: which of several broken rules a question names, the lowest first; 0 leaves it to
    what the argument says (`core.gate.decisive_argument`).
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
    """What becomes of questions about a function that nobody is there to answer; see `core.gate.nobody`.

    `parameter`, `below`: of `allow`, the argument that is an amount, and what all calls together stay below;
    `otherwise`: what becomes of the question where they don't.
    """

    function: str
    then: Then = "deny"
    parameter: str = ""
    below: float = 0
    otherwise: Literal["deny", "hold"] = "deny"


@dataclass(frozen=True, slots=True, order=True)
class EffectRule:
    """Rates changes in a live directory; see `core.gate.effects`. `kinds`: none means all. `scope`: whose rule it is."""

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


@dataclass(frozen=True)
class Policy:
    """One scope, or several merged. `caps`: pairs of pattern and level, at most one for a pattern.

    `clearance`: patterns of functions whose every call needs clearance. `readers`: of those that only agents of intent
    0 may call, because they bring in what nobody vouches for (a caller that may do more leaves them to such a child).
    `remember`: whether a person's yes may be remembered. `sets`: pairs of the name of a set of values and one value in
    it. `levels`: pairs of a name and the level of intent that it stands for. `egress`: pairs of a module and a rule
    about hosts that it may reach (`core.gate.hosts`). `questions`: which version of the gate's questions holds, so that
    what a journal says is decided and said again as it was. 0: the first argument by the alphabet is named; from 1 on
    the one that decides; from 2 on a value that is composed of covered ones is covered (`core.gate.derivations`).
    `nobody`: what becomes of questions when nobody is there to answer. `others`: patterns of functions whose effects
    other people meet (an invitation, an entry in a shared calendar, a star), however easily they are undone.
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
        """Whether other people meet what calls of `function` do: then where it comes from counts, whatever its impact."""
        return any(fnmatch.fnmatchcase(function, one) for one in self.others)

    def for_readers(self, function: str) -> bool:
        """Whether `function` is for agents of intent 0 alone."""
        return any(fnmatch.fnmatchcase(function, one) for one in self.readers)

    def scope(self) -> Scope:
        """As a grant holds it."""
        return Scope("+".join(sorted(self.names)), (tuple(sorted(self.functions)),), dict(sorted(self.caps)))

    def merge(self, other: Policy) -> Policy:
        """Both policies together: union of functions and of hosts, minimum of caps, all rules of both.

        A source is trusted if both trust it: rules of one must not be undone by the other.
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
        """The rates that a call of `function` counts for."""
        if function not in self._rates:
            self._rates[function] = _matching(self.rates, function)
        return self._rates[function]


_Rule = TypeVar("_Rule", Require, ImpactRule, CallRate)


def _matching(rules: Iterable[_Rule], function: str) -> tuple[_Rule, ...]:
    return tuple(sorted(one for one in rules if fnmatch.fnmatchcase(function, one.function)))


def merged(policies: Iterable[Policy]) -> Policy:
    """Any number of policies as one; none: nothing is allowed."""
    many = list(policies)
    return functools.reduce(Policy.merge, many) if many else Policy()


OPEN: Final = Policy(frozenset({"default"}), frozenset({"*"}))
"""The policy where no file says more: every function of every module of the session, and no rule but the default ones."""
