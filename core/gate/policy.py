"""Policies: who may call what, how much, and with which arguments. Written by people, as TOML.

    lockdown = false

    [scope.office]
    functions = ["mail.*", "files.read"]        # what is not named is denied
    caps = { "mail.*" = 2, "files.*" = 0 }      # most impact, by pattern; may lie between 0, 1 and 2
    trusted = ["tool:files.*"]                  # sources whose values count as the user's own

    [[scope.office.require]]                    # a rule about one parameter
    function = "mail.send"
    parameter = "recipients"
    within = ["user", "address-book"]           # the user wrote it, or it is in a named set
    hosts = ["example.com", "*.example.org"]    # or: the host of every address is one of these
    otherwise = "ask"                           # or "deny"

    [[scope.office.impact]]                     # raises (never lowers) the impact of matching calls
    function = "http.request"
    parameter = "method"
    kind = "method"                             # method | sql | path | host | shell | equals
    values = []                                 # for path and host: the ones that stay low
    impact = 2

    [[scope.office.rate]]
    function = "mail.*"
    calls = 10
    per = 60.0                                  # seconds

Several scopes merge by union of functions, minimum of caps, and union of rules; the merge is commutative,
associative and idempotent.
"""

from __future__ import annotations

import fnmatch
import functools
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import UsageError
from core.gate.grant import Scope

Otherwise = Literal["ask", "deny"]
RuleKind = Literal["method", "sql", "path", "host", "shell", "equals"]


@dataclass(frozen=True, slots=True, order=True)
class Require:
    """A rule about one parameter of the functions that match a pattern.

    Each value must be in one of the sets named by `within` ("user": the user wrote it) or have one of `hosts`.
    `links`: instead, every link and address in the text must. A value that the rule does not cover is not there.
    """

    function: str
    parameter: str
    within: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: bool = False
    otherwise: Otherwise = "ask"


@dataclass(frozen=True, slots=True, order=True)
class ImpactRule:
    """Raises the impact of a call by one of its arguments; see `core.gate.rules`."""

    function: str
    parameter: str
    kind: RuleKind
    values: tuple[str, ...] = ()
    impact: float = 2


@dataclass(frozen=True, slots=True, order=True)
class Rate:
    """At most `calls` in any `per` seconds on average, with bursts of `calls`."""

    function: str
    calls: int
    per: float


@dataclass(frozen=True, slots=True)
class Policy:
    """One scope, or several merged. `caps`, `intents`: pairs of pattern and level, at most one for a pattern."""

    names: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    caps: frozenset[tuple[str, float]] = frozenset()
    trusted: frozenset[str] = frozenset()
    requires: frozenset[Require] = frozenset()
    impacts: frozenset[ImpactRule] = frozenset()
    rates: frozenset[Rate] = frozenset()
    lockdown: bool = False
    _requires: dict[str, tuple[Require, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _impacts: dict[str, tuple[ImpactRule, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _rates: dict[str, tuple[Rate, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def scope(self) -> Scope:
        """As a grant holds it."""
        return Scope("+".join(sorted(self.names)), (tuple(sorted(self.functions)),), dict(sorted(self.caps)))

    def merge(self, other: Policy) -> Policy:
        """Both policies together: union of functions, minimum of caps, all rules of both.

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
            self.lockdown or other.lockdown,
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

    def rates_of(self, function: str) -> tuple[Rate, ...]:
        """The rates that a call of `function` counts for."""
        if function not in self._rates:
            self._rates[function] = _matching(self.rates, function)
        return self._rates[function]


_Rule = TypeVar("_Rule", Require, ImpactRule, Rate)


def _matching(rules: Iterable[_Rule], function: str) -> tuple[_Rule, ...]:
    return tuple(sorted(one for one in rules if fnmatch.fnmatchcase(function, one.function)))


def merged(policies: Iterable[Policy]) -> Policy:
    """Any number of policies as one; none: nothing is allowed."""
    many = list(policies)
    return functools.reduce(Policy.merge, many) if many else Policy()


# --- TOML ------------------------------------------------------------------------------------------------

_Level = Annotated[float, Field(ge=-1, le=2, allow_inf_nan=False)]
_Pattern = Annotated[str, Field(min_length=1, max_length=200)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Require(_Strict):
    function: _Pattern
    parameter: _Pattern
    within: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: bool = False
    otherwise: Otherwise = "ask"


class _Impact(_Strict):
    function: _Pattern
    parameter: _Pattern
    kind: RuleKind
    values: tuple[str, ...] = ()
    impact: _Level = 2


class _Rate(_Strict):
    function: _Pattern
    calls: Annotated[int, Field(ge=0, le=1_000_000)]
    per: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class _Scope(_Strict):
    functions: tuple[_Pattern, ...]
    caps: dict[_Pattern, _Level] = {}
    trusted: tuple[_Pattern, ...] = ()
    require: tuple[_Require, ...] = ()
    impact: tuple[_Impact, ...] = ()
    rate: tuple[_Rate, ...] = ()

    def policy(self, name: str, *, lockdown: bool) -> Policy:
        return Policy(
            frozenset({name}),
            frozenset(self.functions),
            frozenset(self.caps.items()),
            frozenset(self.trusted),
            frozenset(Require(**one.model_dump()) for one in self.require),
            frozenset(ImpactRule(**one.model_dump()) for one in self.impact),
            frozenset(Rate(**one.model_dump()) for one in self.rate),
            lockdown,
        )


class Policies(_Strict):
    """All scopes of a policy file, by name."""

    lockdown: bool = False
    scope: dict[Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_-]{0,63}\z")], _Scope] = {}

    @classmethod
    def from_toml(cls, text: str, *, where: str = "the policy") -> Self:
        """Read a policy file.

        Raises:
            UsageError: it is no TOML, or holds something that a policy can't; says where.
        """
        try:
            return cls.model_validate(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{where} is no TOML: {error}; correct it there.") from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"{where} is wrong at {place}: {first['msg']}; correct it there.") from error

    def named(self, names: Iterable[str]) -> Policy:
        """The scopes of these names, merged.

        Raises:
            UsageError: there is no scope of one of the names.
        """
        many = list(names)
        for name in many:
            if name not in self.scope:
                known = ", ".join(sorted(self.scope)) or "none"
                raise UsageError(f"There is no scope {name!r} in the policy; there are {known}.")
        return merged(self.scope[name].policy(name, lockdown=self.lockdown) for name in many)


OPEN: Final = Policy(frozenset({"default"}), frozenset({"*"}))
"""The policy where no file says more: every function of every module of the session, and no rule but the default ones."""
