"""The execution gate: one pure decision per call, and the only place where tickets are made.

`allow(call) ⇔ function ∈ scope ∧ impact ≤ min(intent, cap) ∧ provenance rules hold ∧ clearance says yes`,

checked in that order. `consider` checks the first three and returns the question for a clearance authority; `settle`
takes the authority's answer. `decide` checks only the first two. The decision and its reason are recorded in the
journal as a `gate` record; an agent sees neither (law 7). A `Ticket` is valid for one call of exactly this function
with exactly these arguments by exactly this agent, and states whether the call may write where it runs.
`core.modules.invoker` refuses to invoke anything without one.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn

from iact.core.errors import IactError
from iact.core.gate.decisive_argument import Kind, kind_of
from iact.core.gate.derivations import derived
from iact.core.gate.grant import Grant
from iact.core.gate.policy import CallRate, Policy, Require
from iact.core.gate.provenance import USER, Labels, Provenance, source_of
from iact.core.gate.rules import host_allowed, texts_of
from iact.core.gate.user_values import identifiers, wrote
from iact.core.ports import JSON, Right

Authority = Literal["scope", "impact", "provenance", "clearance", "lockdown", "rate"]
"""The rule that denied the call (or, for an allowed call, the question that was asked last)."""


class TicketError(IactError):
    """A ticket was used twice or for another call. This is a bug in iact, and is never shown to a model."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call that an agent wants to make."""

    agent: str
    function: str
    arguments: str
    """The digest of the arguments and of the attached values."""


@dataclass(frozen=True, slots=True)
class Denial:
    """The gate denies the call."""

    by: Authority
    impact: float
    reason: str
    """For people only."""


class Ticket:
    """The right to make one call, once. Only the functions of this file create tickets.

    `right`: what the instance that serves the call may do with the workspace. `layer`: the call may be made only in a
    layer over the workspace that is thrown away.
    """

    __slots__ = ("_used", "impact", "layer", "request", "right")

    def __init__(
        self, maker: object, request: CallRequest, impact: float, right: Right, *, layer: bool
    ) -> None:
        if maker is not _MAKER:
            raise TicketError("Only the gate makes tickets.")
        self.request: Final = request
        self.impact: Final = impact
        self.right: Final = right
        self.layer: Final = layer
        self._used = False

    def __reduce__(self) -> NoReturn:
        raise TicketError(f"The ticket for {self.request.function} can't be copied.")

    def redeem(self, request: CallRequest) -> None:
        """Use up the ticket for `request`.

        Raises:
            TicketError: it was used before, or made for another call.
        """
        if self._used:
            raise TicketError(f"The ticket for {self.request.function} was used before.")
        if request != self.request:
            raise TicketError(f"The ticket for {self.request.function} was made for another call.")
        self._used = True


_MAKER: Final = object()
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def arguments_digest(arguments: Mapping[str, JSON], attached: Mapping[str, str]) -> str:
    """Return the SHA-256 of a call's arguments. `attached`: the SHA-256 of each value passed by name, by parameter."""
    canonical = _CANONICAL.encode([arguments, attached])
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def right_of(impact: float, grant: Grant, *, held: bool) -> Right:
    """What a call may do where it runs. If impact 0 was wrong, the call then fails to write and has no effect.

    `held`: the function's answers depend on what earlier calls with more impact left where they ran. An agent that may
    only observe has no such place.
    """
    return "work" if impact > 0 or (held and grant.intent > 0) else "look"


def decide(
    request: CallRequest, impact: float, grant: Grant, *, held: bool = False, layer: bool = False
) -> Ticket | Denial:
    """Decide one call whose impact was judged to be `impact`. `held`: see `right_of`.

    `layer`: the call has this impact only in a layer that is thrown away (`core.gate.layer`).
    """
    if not grant.scope.contains(request.function):
        return Denial("scope", impact, f"{request.function} is not in the scope “{grant.scope.name}”.")

    cap = grant.scope.cap(request.function)
    if impact > min(grant.intent, cap):
        limit = f"the intent is {grant.intent:g}" if grant.intent <= cap else f"its cap is {cap:g}"
        return Denial("impact", impact, f"The call has impact {impact:g}, and {limit}.")

    return Ticket(_MAKER, request, impact, right_of(impact, grant, held=held), layer=layer)


# --- with provenance and clearance ------------------------------------------------------------------------

ASK_FROM: Final = 2
"""The impact from which arguments and agents that untrusted content has touched need clearance."""


@dataclass(frozen=True, slots=True)
class Question:
    """No rule denies the call, but an authority must say yes. A question is valid for one answer."""

    request: CallRequest
    impact: float
    by: Literal["provenance", "clearance"]
    """The rule that asks."""
    reason: str
    """For that authority."""
    right: Right = field(default="look", compare=False)
    """What the ticket allows that a yes makes of this."""
    layer: bool = field(default=False, compare=False)
    """Whether that ticket is for the layer alone."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A clearance authority's answer."""

    allow: bool
    reason: str
    """For people only."""


def consider(
    request: CallRequest,
    impact: float,
    grant: Grant,
    policy: Policy,
    *,
    arguments: Mapping[str, JSON],
    provenance: Provenance,
    known: Mapping[str, frozenset[str]] | None = None,
    over: CallRate | None = None,
    clearance: bool = False,
    held: bool = False,
    layer: bool = False,
    carries: str = "",
    packages: str = "",
) -> Ticket | Denial | Question:
    """Decide one call, except for its clearance.

    `known`: named sets of values for `Require.within`. `over`: the rate that this call would exceed, if any
    (`core.gate.rate`). `clearance`: an authority wants to be asked about every call that nothing cheaper denies.
    `held`: see `right_of`. `layer`: see `decide`. `carries`: the sentence about what the call carries out, if somebody
    must let it go (`core.gate.carried`). `packages`: the same for packages that it asks an index for.
    """
    if policy.lockdown:
        return Denial("lockdown", impact, "Everything is locked down.")

    decision = decide(request, impact, grant, held=held, layer=layer)
    if isinstance(decision, Denial):
        return decision
    right = decision.right

    # All that denies comes before all that asks: nobody is asked about a call that can't be made anyway.
    if grant.intent > 0 and policy.for_readers(request.function):
        return Denial("provenance", impact, f"{request.function} is for agents of intent 0 alone.")
    if over is not None:
        return Denial("rate", impact, f"More than {over.calls} calls of {over.function} in {over.per:g} s.")

    broken = _broken(request, arguments, provenance, policy, known or {})
    if broken is not None:
        rule, reason = broken
        if rule.otherwise == "deny":
            return Denial("provenance", impact, reason)
        return Question(request, impact, "provenance", reason, right, layer)

    touched = _touched(request, impact, provenance, policy)
    if touched:
        return Question(request, impact, "provenance", touched, right, layer)
    if carries:
        return Question(request, impact, "provenance", carries, right, layer)

    if packages:
        return Question(request, impact, "clearance", packages, right, layer)
    if clearance or policy.clears(request.function):
        needed = f"Clearance is needed for {request.function}."
        return Question(request, impact, "clearance", needed, right, layer)

    return decision


def _touched(request: CallRequest, impact: float, provenance: Provenance, policy: Policy) -> str:
    """Why somebody must be asked about a call that untrusted content has touched; empty if nobody must."""
    reaches_others = policy.meets_others(request.function)
    if not reaches_others and impact < ASK_FROM:
        return ""

    strange = provenance.strange(provenance.all(), policy.trusted)
    if not strange:
        return ""

    names = ", ".join(sorted(strange))
    if reaches_others:
        return f"Other people meet what the call does, and it is touched by {names}."
    return f"The call has impact {impact:g} and is touched by {names}."


def settle(question: Question, answer: Answer) -> Ticket | Denial:
    """Return the decision, once a clearance authority has answered."""
    if answer.allow:
        return Ticket(_MAKER, question.request, question.impact, question.right, layer=question.layer)
    return Denial("clearance", question.impact, f"{question.reason} Clearance was denied: {answer.reason}")


def _broken(
    request: CallRequest,
    arguments: Mapping[str, JSON],
    provenance: Provenance,
    policy: Policy,
    known: Mapping[str, frozenset[str]],
) -> tuple[Require, str] | None:
    """The broken rule about an argument that decides against a call, and its reason for people.

    Rules that deny come before rules that ask; among these, the most decisive argument comes first.
    """
    broken: list[tuple[Require, str]] = []
    for rule in policy.requires_of(request.function):
        if rule.parameter not in arguments:
            continue
        uncovered = _unmet(rule, arguments[rule.parameter], provenance, policy, known)
        if uncovered is not None:
            broken.append((rule, uncovered))
    if not broken:
        return None

    # Journals of the first version name the first rule, and say less about it.
    if policy.questions == 0:
        rule, uncovered = broken[0]
        return rule, _uncovered(rule.parameter, request.function, uncovered)

    rule, uncovered = min(broken, key=lambda pair: _rank(pair[0], arguments[pair[0].parameter]))
    kind = kind_of(rule.parameter, arguments[rule.parameter])
    labels = provenance.of(rule.parameter)
    return rule, _unsaid(kind, rule.parameter, request.function, uncovered, labels)


def _rank(rule: Require, value: JSON) -> tuple[bool, int, int, Require]:
    """The order of broken rules. The rule itself comes last, so that no two are alike."""
    asks = rule.otherwise != "deny"
    return asks, rule.rank or _UNRANKED, kind_of(rule.parameter, value), rule


COMPOSED: Final = 2
"""The version of the gate's questions from which values composed of covered values are covered."""
_UNRANKED: Final = 1_000
"""The rank of arguments that the policy does not rank: after all that it ranks."""


def _uncovered(parameter: str, function: str, uncovered: str) -> str:
    return f"The argument {parameter} of {function} is not covered: {uncovered[:120]!r}."


def _unsaid(kind: Kind, parameter: str, function: str, uncovered: str, labels: Labels) -> str:
    """The argument that decides, its sources, and what is unusual: neither the user nor the policy named its value."""
    value = uncovered[:120]
    origins = ", ".join(sorted(labels)) or "nothing that was read"

    match kind:
        case Kind.WHO:
            return f"Neither the user nor the policy named who gets it: {value!r}, {parameter} of {function}, from {origins}."
        case Kind.WHERE:
            return f"Neither the user nor the policy named where it goes: {value!r}, {parameter} of {function}, from {origins}."
        case Kind.HOW_MUCH:
            return f"Neither the user nor the policy named how much it is: {value!r}, {parameter} of {function}, from {origins}."
        case Kind.OTHER:
            return f"Neither the user nor the policy named this: {value!r}, {parameter} of {function}, from {origins}."


def _unmet(
    rule: Require,
    value: JSON,
    provenance: Provenance,
    policy: Policy,
    known: Mapping[str, frozenset[str]],
) -> str | None:
    """The first value that a rule does not cover."""
    labels = provenance.of(rule.parameter)
    if USER in rule.within and labels == {USER}:
        return None
    if rule.sources and labels.isdisjoint(provenance.unvouched) and _is_from(labels, rule.sources):
        return None

    # A rule that names nothing is about the sources alone.
    if not rule.within and not rule.hosts and not rule.sources:
        return next(iter(sorted(provenance.strange(labels, policy.trusted))), None)

    composed = policy.questions >= COMPOSED
    for text in texts_of(value):
        pieces = identifiers(text) if rule.links else [text]
        for piece in pieces:
            if not _covered(rule, piece, provenance, known, composed=composed):
                return str(piece)
    return None


def _is_from(labels: Labels, sources: tuple[str, ...]) -> bool:
    """Whether a value comes only from the user and these sources."""
    return bool(labels) and all(
        label == USER or any(fnmatch.fnmatchcase(source_of(label), pattern) for pattern in sources)
        for label in labels
    )


def _covered(
    rule: Require, text: str, provenance: Provenance, known: Mapping[str, frozenset[str]], *, composed: bool
) -> bool:
    """Whether the user or the policy named a value, or (`composed`) everything it is composed of."""
    if rule.hosts and host_allowed(text, rule.hosts):
        return True

    of_user = USER in rule.within
    if of_user and any(wrote(words, text) for words in provenance.said):
        return True

    sets = frozenset[str]().union(*(known.get(name, frozenset()) for name in rule.within))
    if text in sets:
        return True
    return composed and of_user and derived(provenance.said, text, sets)
