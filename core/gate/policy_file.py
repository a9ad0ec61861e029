"""Policy files: `policy.toml` in the data directory, written by people, and policies as journals hold them.

lockdown = false                            # true: every call is denied

[levels]                                    # names of intents between the three built-in ones
publish = 1.5

[sets]                                      # values that rules can name
address-book = ["ann@example.com"]

[scope.office]
functions = ["mail.*", "files.read"]        # all others are denied
caps = { "mail.*" = 2, "files.*" = 0 }      # highest impact, by pattern: a number from 0 to 2, or a level's name
trusted = ["tool:files.*"]                  # sources whose values count as the user's own
clearance = ["mail.send"]                   # every call of these needs approval
others = ["calendar.*", "git.star"]         # other people see what these do: untrusted sources need a yes
readers = ["web.*"]                         # only for agents of intent 0: readers, whose words are data
remember = false                            # a person's yes is valid for one call only (default: may be kept)

[scope.office.egress]                       # hosts that modules may reach without asking, by module
web = ["docs.python.org", "*.debian.org"]   # ports 80 and 443; "host:port"; "*" for every public host

[[scope.office.require]]                    # a rule about one parameter
function = "mail.send"
parameter = "recipients"
within = ["user", "address-book"]           # the user wrote it, or it is in a named set
hosts = ["example.com", "*.example.org"]    # or: the host of every address is one of these
sources = ["tool:contacts.find"]            # or: it comes only from these, found by the user's words
otherwise = "ask"                           # or "deny"
rank = 1                                    # a question names the broken rule of the lowest rank first

[[scope.office.impact]]                     # raises (never lowers) the impact of matching calls
function = "http.request"
parameter = "method"
kind = "method"                             # method | sql | path | host | shell | equals
values = []                                 # for path and host: the values that stay low
impact = 2

[[scope.office.effects]]                    # rates changes in a user's directory (default: see docs/topics/gate.md)
path = "docs/**"                            # * and ? within a name, ** any number of names; leading dots written out
kinds = ["add", "modify", "delete"]         # default: all three
impact = 1                                  # 1: they pass at intent 1; 2: they wait for a person

[[scope.office.rate]]
function = "mail.*"
calls = 10
per = 60.0                                  # seconds

[[scope.office.nobody]]                     # questions that no person can answer: the strictest rule counts
function = "bank.pay"
then = "allow"                              # deny | hold (wait for a person) | allow (below an amount)
parameter = "amount"                        # for allow: the argument that is a number,
below = 20.0                                # and the limit for all calls of a session together
otherwise = "hold"                          # in all other cases: deny (default) | hold

[[scope.office.plan]]                       # what plans in the mode profile do about a call, beside their own rules
function = "web.fetch"
error = "timed out"                         # it fails with an error that contains this: it is tried again
set = { timeout = 60 }                      # with these parameters

[[scope.office.plan]]
function = "files.write"
when = "empty(before)"                      # an expression; `before` is the result of a step that it builds on
skip = true                                 # it is left out; or `set`, as above

[[scope.office.plan]]
function = "web.fetch"
auto = { url = "before.0.url" }             # where a parameter comes from that the profile marks "auto"
"""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from iact.core.errors import UsageError
from iact.core.gate.hosts import host_rule, lists_of, rules_of
from iact.core.gate.level import NAMED, level
from iact.core.gate.policy import (
    OPEN,
    CallRate,
    EffectRule,
    ImpactRule,
    Nobody,
    Otherwise,
    PlanRule,
    Policy,
    Require,
    RuleKind,
    Then,
    merged,
)
from iact.core.ports import JSON, ChangeKind

FILE: Final = "policy.toml"
"""Its name in the data directory."""

DEFAULT: Final = "default"
"""The scope of a session for which no other was chosen."""

QUESTIONS: Final = 2
"""The newest version of the gate's questions; see `Policy`. Policy files are read in this version."""

_Level = Annotated[float, Field(ge=-1, le=2, allow_inf_nan=False)]
_Pattern = Annotated[str, Field(min_length=1, max_length=200)]
_Name = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_-]{0,63}\z")]
_Module = Annotated[str, Field(pattern=r"\A[a-z][a-z0-9_]{0,47}\z")]


def _checked_host(text: str) -> str:
    try:
        return host_rule(text)
    except UsageError as error:
        raise ValueError(str(error)) from error


_Host = Annotated[str, AfterValidator(_checked_host)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Require(_Strict):
    function: _Pattern
    parameter: _Pattern
    within: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    links: bool = False
    otherwise: Otherwise = "ask"
    sources: tuple[_Pattern, ...] = ()
    rank: Annotated[int, Field(ge=0, le=100)] = 0


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


class _Nobody(_Strict):
    function: _Pattern
    then: Then
    parameter: Annotated[str, Field(max_length=200)] = ""
    below: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    otherwise: Literal["deny", "hold"] = "deny"

    @model_validator(mode="after")
    def _amounts_go_with_allow(self) -> Self:
        with_amount = bool(self.parameter) and bool(self.below)
        without = not self.parameter and not self.below
        right = with_amount if self.then == "allow" else without
        if not right:
            raise ValueError("`allow` needs `parameter` and `below`, and nothing else takes them")
        return self


class _Effect(_Strict):
    path: _Pattern
    kinds: tuple[ChangeKind, ...] = ()
    impact: Annotated[float, Field(ge=1, le=2, allow_inf_nan=False)] = 1


class _Plan(_Strict):
    function: _Pattern
    error: Annotated[str, Field(max_length=200)] = ""
    when: Annotated[str, Field(max_length=500)] = ""
    set: dict[_Pattern, str | int | float | bool] = {}
    skip: bool = False
    auto: dict[_Pattern, Annotated[str, Field(max_length=500)]] = {}

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [bool(self.error), bool(self.when), bool(self.auto)]
        if kinds.count(True) != 1:
            raise ValueError("a rule for plans has one of `error`, `when` and `auto`")

        if self.skip and not self.when:
            raise ValueError("`skip` goes with `when`: what failed can't be left out")
        if not self.auto and bool(self.set) == self.skip:
            raise ValueError("a rule for plans has `set`, or `skip` beside `when`")
        return self

    def rule(self) -> PlanRule:
        """The rule, as policies hold it."""
        changes = tuple((name, json.dumps(value)) for name, value in sorted(self.set.items()))
        return PlanRule(
            function=self.function,
            error=self.error,
            when=self.when,
            set=changes,
            skip=self.skip,
            auto=tuple(sorted(self.auto.items())),
        )

    @classmethod
    def of(cls, rule: PlanRule) -> Self:
        """A rule of a policy, in its journal form."""
        return cls(
            function=rule.function,
            error=rule.error,
            when=rule.when,
            set={name: json.loads(value) for name, value in rule.set},
            skip=rule.skip,
            auto=dict(rule.auto),
        )


class _Scope(_Strict):
    functions: tuple[_Pattern, ...]
    caps: dict[_Pattern, _Level] = {}
    trusted: tuple[_Pattern, ...] = ()
    require: tuple[_Require, ...] = ()
    impact: tuple[_Impact, ...] = ()
    rate: tuple[_Rate, ...] = ()
    clearance: tuple[_Pattern, ...] = ()
    readers: tuple[_Pattern, ...] = ()
    remember: bool = True
    effects: tuple[_Effect, ...] = ()
    egress: dict[_Module, tuple[_Host, ...]] = {}
    nobody: tuple[_Nobody, ...] = ()
    others: tuple[_Pattern, ...] = ()
    plan: tuple[_Plan, ...] = ()

    def policy(
        self,
        names: Iterable[str],
        sets: Mapping[str, Iterable[str]],
        levels: Mapping[str, float],
        *,
        lockdown: bool,
        questions: int = QUESTIONS,
    ) -> Policy:
        """The policy of this scope alone, with what the file says for all of its scopes."""
        return Policy(
            names=frozenset(names),
            functions=frozenset(self.functions),
            caps=frozenset(self.caps.items()),
            trusted=frozenset(self.trusted),
            requires=frozenset(Require(**rule.model_dump()) for rule in self.require),
            impacts=frozenset(ImpactRule(**rule.model_dump()) for rule in self.impact),
            rates=frozenset(CallRate(**rule.model_dump()) for rule in self.rate),
            clearance=frozenset(self.clearance),
            readers=frozenset(self.readers),
            sets=frozenset((name, value) for name, values in sets.items() for value in values),
            remember=self.remember,
            lockdown=lockdown,
            levels=frozenset(levels.items()),
            effects=frozenset(self.effect_rules(names)),
            egress=rules_of(self.egress),
            questions=questions,
            nobody=frozenset(Nobody(**rule.model_dump()) for rule in self.nobody),
            others=frozenset(self.others),
            plans=frozenset(rule.rule() for rule in self.plan),
        )

    def effect_rules(self, names: Iterable[str]) -> Iterator[EffectRule]:
        """The effect rules of this scope, which has these `names`."""
        return (EffectRule(**rule.model_dump(), scope=name) for rule in self.effects for name in names)


class Policies(_Strict):
    """All scopes of a policy file, by name."""

    lockdown: bool = False
    levels: dict[_Name, Annotated[float, Field(gt=0, lt=2)]] = {}
    sets: dict[_Pattern, tuple[str, ...]] = {}
    scope: dict[_Name, _Scope] = {}

    @field_validator("levels")
    @classmethod
    def _names_of_their_own(cls, levels: dict[str, float]) -> dict[str, float]:
        if taken := levels.keys() & NAMED.keys():
            raise ValueError(f"{sorted(taken)[0]} is a level that there is already")
        return levels

    @classmethod
    def from_toml(cls, text: str, *, where: str = "the policy") -> Self:
        """Read a policy file.

        Raises:
            UsageError: it is not TOML, or contains something invalid; the message says where.
        """
        try:
            return cls.model_validate(_numbered(tomllib.loads(text)))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{where} is not valid TOML: {error}; correct it there.") from error
        except ValidationError as error:
            # The first of several: once it is corrected, the file is read again.
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UsageError(f"{where} is wrong at {place}: {first['msg']}; correct it there.") from error

    def level(self, value: float | str) -> float:
        """Return the intent for a number or the name of a level under this policy.

        Raises:
            UsageError: it is not a level.
        """
        return level(value, self.levels)

    def named(self, names: Iterable[str]) -> Policy:
        """Return the scopes with these names, merged.

        Raises:
            UsageError: no scope has one of the names.
        """
        many = list(names)
        for name in many:
            if name not in self.scope:
                known = ", ".join(sorted({DEFAULT, *self.scope}))
                raise UsageError(f"There is no scope {name!r}; there are {known}.")

        return merged(
            self.scope[name].policy([name], self.sets, self.levels, lockdown=self.lockdown) for name in many
        )

    def chosen(self, text: str) -> Policy:
        """Return the scopes that a person names with `+` between them. "default" exists even if the file has none.

        Raises:
            UsageError: no scope has one of the names.
        """
        if text == DEFAULT and DEFAULT not in self.scope:
            return dataclasses.replace(OPEN, lockdown=self.lockdown, levels=frozenset(self.levels.items()))
        return self.named(text.split("+"))


def _numbered(data: dict[str, JSON]) -> dict[str, JSON]:
    """A policy file with numbers in place of the names of levels in its caps and impacts."""
    known: dict[str, JSON] = {**NAMED}
    levels = data.get("levels")
    if isinstance(levels, dict):
        known.update(levels)

    # What isn't as it should be stays as it is: the check of the whole file, which follows, says so.
    scopes = data.get("scope")
    if not isinstance(scopes, dict):
        return data

    for scope in scopes.values():
        for fields, key in _named_levels(scope):
            fields[key] = known.get(str(fields[key]), fields[key])
    return data


def _named_levels(scope: JSON) -> Iterator[tuple[dict[str, JSON], str]]:
    """Where a scope has a name in place of a level."""
    if not isinstance(scope, dict):
        return

    caps = scope.get("caps")
    if isinstance(caps, dict):
        yield from ((caps, pattern) for pattern in caps if isinstance(caps[pattern], str))

    for rules in (scope.get("impact"), scope.get("effects")):
        if not isinstance(rules, list):
            continue
        for rule in rules:
            if isinstance(rule, dict) and isinstance(rule.get("impact"), str):
                yield rule, "impact"


# --- journals --------------------------------------------------------------------------------------------


class _StoredEffect(_Effect):
    scope: str


class _Stored(_Scope):
    """A policy in its journal form: a scope as in a file, with the file's other settings."""

    names: tuple[str, ...]
    effects: tuple[_StoredEffect, ...] = ()
    sets: dict[_Pattern, tuple[str, ...]] = {}
    lockdown: bool = False
    levels: dict[_Pattern, float] = {}
    questions: Annotated[int, Field(ge=0, le=QUESTIONS)] = 0

    def effect_rules(self, names: Iterable[str]) -> Iterator[EffectRule]:
        """The effect rules, each with the scope that it came from."""
        return (EffectRule(**rule.model_dump()) for rule in self.effects)


def policy_json(policy: Policy) -> dict[str, JSON]:
    """Return a policy in its journal form."""
    stored = _Stored(
        names=tuple(sorted(policy.names)),
        functions=tuple(sorted(policy.functions)),
        caps=dict(sorted(policy.caps)),
        trusted=tuple(sorted(policy.trusted)),
        require=tuple(_Require(**dataclasses.asdict(rule)) for rule in sorted(policy.requires)),
        impact=tuple(_Impact(**dataclasses.asdict(rule)) for rule in sorted(policy.impacts)),
        rate=tuple(_Rate(**dataclasses.asdict(rule)) for rule in sorted(policy.rates)),
        clearance=tuple(sorted(policy.clearance)),
        readers=tuple(sorted(policy.readers)),
        sets={name: tuple(sorted(values)) for name, values in sorted(policy.known.items())},
        remember=policy.remember,
        lockdown=policy.lockdown,
        levels=dict(sorted(policy.levels)),
        effects=tuple(_StoredEffect(**dataclasses.asdict(rule)) for rule in sorted(policy.effects)),
        egress=lists_of(policy.egress),
        questions=policy.questions,
        nobody=tuple(_Nobody(**dataclasses.asdict(rule)) for rule in sorted(policy.nobody)),
        others=tuple(sorted(policy.others)),
        plan=tuple(_Plan.of(rule) for rule in sorted(policy.plans)),
    )
    fields: dict[str, JSON] = stored.model_dump(mode="json", exclude_defaults=True)
    return fields


def policy_from_json(data: JSON) -> Policy:
    """Read a policy from its journal form. A malformed one allows nothing; None is from before there were policies."""
    if data is None:
        return OPEN

    try:
        stored = _Stored.model_validate(data)
    except ValidationError:
        return Policy(lockdown=True)

    return stored.policy(
        stored.names, stored.sets, stored.levels, lockdown=stored.lockdown, questions=stored.questions
    )
