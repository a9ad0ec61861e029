"""The gate's decision about a call, as a function of the tree: computed when the call is made, and again on replay.

Everything that does not follow from the tree is in the records that the decision goes into: the time (of the record),
whether an endpoint is asked, and what an authority answered. A verification therefore comes to the same decision or
names the record.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from iact.core.context.excerpt import whole
from iact.core.errors import ReplayMismatch
from iact.core.gate.clearance import ClearanceRequest
from iact.core.gate.gate import Answer, Authority, CallRequest, Denial, Question, Ticket, consider, settle
from iact.core.gate.judge import Impact, judge_call
from iact.core.gate.layer import in_layer, runs_in_layer
from iact.core.gate.nobody import unattended
from iact.core.gate.policy import Then
from iact.core.gate.rate import Tally
from iact.core.language.grammar import Bound
from iact.core.language.nested import put_in
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAnswer, ClearanceAsk, Gate
from iact.core.records.parts import AttachedValue, ClearanceRule
from iact.core.records.record import Record
from iact.core.tree import asked_packages
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.carried import Carrying, carries
from iact.core.tree.interpret import kind_digest, whole_digest_of
from iact.core.tree.origin import provenance_of
from iact.core.tree.tree import Tree

Asked = Literal["person", "endpoint"]
"""Who is asked a question."""

_INLINE: Final = 16_384
"""The largest value passed by name, in bytes, that a record holds inline as a parameter; longer ones become blobs."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The gate's decision about a call.

    `tally`: the rates after it. `asked`: the question that an authority must answer or has answered. `carrying`: what a
    yes to that question lets go.
    """

    verdict: Ticket | Denial | Question
    impact: Impact
    tally: Tally
    asked: ClearanceRequest | None = None
    carrying: Carrying | None = None

    @property
    def by(self) -> Authority:
        """Who denied, or which question was asked last."""
        if isinstance(self.verdict, Ticket):
            return "clearance" if self.asked is not None else "impact"
        return self.verdict.by

    @property
    def reason(self) -> str:
        """The reason, for people."""
        return self.impact.why if isinstance(self.verdict, Ticket) else self.verdict.reason


def decide_call(tree: Tree, agent: Agent, pending: Pending, *, at: str, endpoint: bool) -> Decision:
    """Decide the first of an agent's pending actions.

    `at`: time of the record that the decision goes into. `endpoint`: whether an endpoint is asked about every call.
    """
    assert pending.bound is not None
    spec, bound, policy = pending.spec, pending.bound, tree.policy
    if tree.lockdown:
        policy = dataclasses.replace(policy, lockdown=True)
    endpoint = endpoint and not pending.passed
    request = CallRequest(agent.path, spec.name, whole_digest_of(bound))
    grant, arguments = tree.grant_of(agent.path), texts(bound)
    live, believed = tree.at_stake(spec.module), tree.believed(spec)
    impact = judge_call(spec.name, spec.impact, arguments, live=live, believed=believed, policy=policy)

    # A step of a race works in a copy of the workspace, over which there is no layer.
    possible = impact.level > 0 and tree.has_layers and not pending.base
    layer = possible and runs_in_layer(spec.name, arguments, grant, policy, believed=believed)
    if layer:
        impact = in_layer(impact)

    now = datetime.fromisoformat(at).timestamp()
    # A call that waited for clearance was counted when it was asked about.
    counted = pending.asked or pending.passed
    tally, over = (tree.tally, None) if counted else tree.tally.take(policy.rates_of(spec.name), now)
    provenance = provenance_of(tree, agent, bound)
    carrying = carries(tree, agent, spec.name, bound, arguments)
    packages = asked_packages.unnamed(tree, spec.name, arguments)
    verdict = consider(
        request, impact.level, grant, policy, arguments=arguments, provenance=provenance,
        known=policy.known, over=over, clearance=endpoint, held=spec.held, layer=layer,
        carries=carrying.why if carrying is not None else "",
        packages=asked_packages.why_asked(packages),
    )  # fmt: skip
    if isinstance(verdict, Denial):
        return Decision(verdict, impact, tree.tally)
    if isinstance(verdict, Ticket):
        return Decision(verdict, impact, tally)
    origins = {name: sorted(provenance.of(name)) for name in arguments}
    asked = ClearanceRequest(verdict, arguments, grant.user, tree.session, origins)
    if carrying is not None and verdict.reason != carrying.why:
        carrying = None
    return Decision(_settled(tree, pending, asked, endpoint=endpoint), impact, tally, asked, carrying)


def _settled(
    tree: Tree, pending: Pending, asked: ClearanceRequest, *, endpoint: bool
) -> Ticket | Denial | Question:
    question = asked.question
    answer = pending.answer
    if answer is not None and answer.allow and question.impact > pending.asked_impact:
        return Denial("clearance", question.impact, "The call's impact rose while it waited for clearance.")
    if answer is None and not pending.asked and not endpoint:
        answer = tree.remembered.allow(asked) or _said_before(tree, pending)
    return settle(question, answer) if answer is not None else question


def _said_before(tree: Tree, pending: Pending) -> Answer | None:
    """A person's no to a call of this kind, since their last message: they are not asked twice."""
    if not tree.denied or pending.bound is None:
        return None
    denied = kind_digest(pending.spec.name, pending.bound) in tree.denied
    return Answer(False, "You said no to this in this task.") if denied else None


def texts(bound: Bound) -> dict[str, JSON]:
    """All arguments of a call, including those passed by name, each where it belongs."""
    return put_in(bound.arguments, {name: whole(value) for name, value in bound.attached.items()})


def by_endpoint(pending: Pending) -> bool:
    """Whether an endpoint has answered about a call."""
    return pending.passed or (pending.answer is not None and pending.asked_of == "endpoint")


def gate_content(agent: Agent, pending: Pending, decision: Decision) -> Gate:
    """Build the `gate` record of a decision."""
    return Gate(
        turn=agent.turn,
        action=pending.index,
        function=pending.spec.name,
        allow=isinstance(decision.verdict, Ticket),
        by=decision.by,
        impact=decision.impact.level,
        reason=decision.reason,
        endpoint=by_endpoint(pending),
        ask=pending.asked,
    )


def answer_content(
    agent: Agent,
    pending: Pending,
    answer: Answer,
    by: Literal["user", "endpoint", "time", "policy"],
    *,
    then: Literal["", "person"] = "",
    remember: JSON = None,
) -> ClearanceAnswer:
    """Build the `clearance` record of an answer.

    `by`: who gave it; "time" if the time ran out, "policy" if no person was available. `remember`: as `kept` takes it.
    """
    return ClearanceAnswer(
        turn=agent.turn,
        action=pending.index,
        function=pending.spec.name,
        ask=pending.asked,
        allow=answer.allow,
        by=by,
        reason=answer.reason,
        then=then,
        remember=_remembered(remember),
    )


def _remembered(said: JSON) -> Literal["call"] | ClearanceRule | None:
    """What a person wants remembered, in the form of a record. It was validated before."""
    match said:
        case "call":
            return "call"
        case {"function": str(function), **rest}:
            patterns = rest.get("arguments")
            named = {one: str(each) for one, each in patterns.items()} if isinstance(patterns, dict) else None
            return ClearanceRule(function=function, arguments=named)
    return None


def as_said(remember: Literal["call"] | ClearanceRule) -> JSON:
    """The inverse of `_remembered`."""
    if not isinstance(remember, ClearanceRule):
        return remember
    named: JSON = dict(remember.arguments) if remember.arguments is not None else {}
    return {"function": remember.function, "arguments": named}


def nobody_answered(seconds: float) -> Answer:
    """The answer if a person had this long and did not answer."""
    return Answer(False, f"Nobody answered within {seconds:g} s.")


def without_person(tree: Tree, pending: Pending) -> Then | None:
    """What the policy says about a call's question when no person is available to answer it."""
    assert pending.bound is not None
    return unattended(tree.policy, pending.spec.name, texts(pending.bound), tree.spent)


def by_policy(then: Then) -> Answer:
    """The policy's answer when no person is available to give one."""
    if then == "allow":
        return Answer(True, "Nobody is there to ask, and the policy allows it.")
    return Answer(False, "Nobody is there to ask, and the policy denies it.")


def ask_content(
    agent: Agent,
    pending: Pending,
    asked: ClearanceRequest,
    impact: Impact,
    to: Asked,
    seconds: float | None,
) -> tuple[ClearanceAsk, dict[str, bytes]]:
    """Build the `clearance` record of a question, and the blobs that it names: the whole call.

    `seconds`: how long a person has.
    """
    assert pending.bound is not None
    bound = pending.bound
    inlined: dict[str, JSON] = {}
    attached: dict[str, AttachedValue] = {}
    blobs: dict[str, bytes] = {}
    for name, value in bound.attached.items():
        # What is said of a lost one has not the digest of what was lost.
        inline = (value.is_text and value.size <= _INLINE) or value.may_be_lost
        if inline:
            inlined[name] = value.text()
        else:
            blobs[value.sha256] = value.load()
        attached[name] = AttachedValue(
            media=value.media, size=value.size, sha256="" if inline else value.sha256
        )
    return ClearanceAsk(
        turn=agent.turn,
        action=pending.index,
        function=pending.spec.name,
        to=to,
        rule=asked.question.by,
        impact=impact.level,
        why=impact.why,
        reason=asked.question.reason,
        user=asked.user,
        params=_storable(put_in(bound.arguments, inlined)),
        provenance={name: tuple(labels) for name, labels in asked.provenance.items()},
        read=tuple(sorted(agent.labels)),
        attached=attached or None,
        seconds=seconds,
    ), blobs


def _storable(params: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """The same values as portable JSON: what UTF-8 or JSON can't represent is replaced."""
    text = json.dumps(params, ensure_ascii=False).encode("utf-8", "replace").decode()
    found: dict[str, JSON] = json.loads(text, parse_constant=str)
    return found


def decide_again(tree: Tree, agent: Agent, pending: Pending, record: Record) -> Decision:
    """Decide again the call that a `gate` or `clearance` record is about.

    Raises:
        ReplayMismatch: the record's time is invalid.
    """
    said = record.content
    endpoint = (isinstance(said, ClearanceAsk) and said.to == "endpoint") or by_endpoint(pending)
    try:
        return decide_call(tree, agent, pending, at=record.at, endpoint=endpoint)
    except (ValueError, OverflowError):
        where = f"Record {record.n} ({record.kind}) differs"
        raise ReplayMismatch(f"{where}: {record.at[:40]!r} is not a valid time.", n=record.n) from None
