"""How the gate's records change the tree: its decisions, which are derived again, and who cleared a call.

What a decision or a question says follows from the tree, field by field, so a forged one is named. Four facts are
outcomes and are taken as recorded: the time of a record (rates are counted by it); whether a question went to a person
or to an endpoint; how long a person had (both from settings); and what they answered (an endpoint gives its reason in
its own words). An answer must still be one that the person or endpoint asked could give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from iact.core.errors import UsageError
from iact.core.gate.clearance import Keep, kept
from iact.core.gate.gate import Answer, Question, Ticket
from iact.core.gate.nobody import spend
from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result
from iact.core.records.parts import ClearanceRule
from iact.core.records.record import Record
from iact.core.tree import apply_plan, asked_packages
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.ahead import behind
from iact.core.tree.decision import (
    Decision,
    as_said,
    ask_content,
    by_policy,
    decide_again,
    gate_content,
    nobody_answered,
    texts,
    without_person,
)
from iact.core.tree.expectations import NOT_RUN, agent_of, expect, expect_content, pending_of
from iact.core.tree.held import is_held
from iact.core.tree.interpret import kind_digest
from iact.core.tree.tree import Tree


def decide(tree: Tree, record: Record, gate: Gate) -> None:
    """Check that the gate comes to the same decision again, and count what it counts."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record, gate)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    expect(tree, record, not isinstance(decision.verdict, Question), "decides what nobody has cleared yet")
    expect_content(tree, record, gate_content(agent, pending, decision))
    pending.verdict = "allowed" if isinstance(decision.verdict, Ticket) else "denied"
    pending.verdict_impact = decision.impact.level
    tree.tally = decision.tally


def use(tree: Tree, pending: Pending, record: Record, call: Call) -> None:
    """Dispatch a call on a decision that allows it. The decision is valid for this one call."""
    expect(
        tree,
        record,
        pending.verdict == "allowed" and not pending.call,
        "makes a call that the gate did not allow",
    )
    expect(tree, record, _is(call.impact, pending.verdict_impact), "has another impact than the gate said")


def _is(one: float | None, other: float) -> bool:
    """Whether a number is the same and of the same type."""
    return one == other and type(one) is type(other)


def explain(tree: Tree, pending: Pending, record: Record, result: Result) -> None:
    """Check an action's outcome: it was called, or denied, or withdrawn before either."""
    status = result.status
    made = pending.call > 0 and pending.verdict != "denied" and result.call == pending.call
    denied = pending.verdict == "denied" and status == "incomplete"
    expect(tree, record, made or denied or status in NOT_RUN, "is the outcome of a call that was not made")


def ask(tree: Tree, record: Record, said: ClearanceAsk) -> None:
    """Apply a question to a person or an endpoint about a call."""
    agent, to, seconds = agent_of(tree, record), said.to, said.seconds
    _bind_ahead(tree, agent, said)
    pending = pending_of(tree, agent, record, said)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    needed = isinstance(decision.verdict, Question) and pending.asked_of != to
    expect(tree, record, needed, "asks about a call that needs no clearance")
    if tree.strict and decision.asked is not None:
        right, _ = ask_content(agent, pending, decision.asked, decision.impact, to, seconds)
        expect_content(tree, record, right)
        has_time = seconds is not None and seconds > 0
        waits = has_time or (seconds is None and without_person(tree, pending) == "hold")
        expect(tree, record, waits or to == "endpoint", "asks a person who has no time to answer")
        expect(tree, record, seconds is None or to == "person", "gives time to an endpoint")
    tree.tally = decision.tally
    pending.asked, pending.asked_of = record.n, to
    pending.asked_impact = decision.impact.level
    pending.seconds, pending.asked_at = seconds or 0, record.at
    if to == "person":
        _tell_plan(tree, agent, pending, record)


def _bind_ahead(tree: Tree, agent: Agent, said: ClearanceAsk) -> None:
    """Fix the arguments of a call that is asked about together with the first one."""
    if said.to != "person" or not agent.actions or agent.actions[0].asked_of != "person":
        return
    for pending, bound in behind(tree, agent):
        if pending.index == said.action:
            pending.bound, pending.ahead = bound, agent.labels


def answer(tree: Tree, record: Record, said: ClearanceAnswer) -> None:
    """Apply the answer to a question about a call."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record, said)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    open_ = pending.asked > 0 and pending.asked == said.ask and pending.answer is None
    expect(tree, record, open_, "answers what was not asked")
    given = Answer(said.allow, said.reason)
    expect(tree, record, _can_say(tree, pending, given, said), f"is no answer that {said.by} could give")
    if said.by == "policy" and said.allow:
        tree.spent = spend(tree.policy, pending.spec.name, texts(pending.bound), tree.spent)
    if said.then == "person":
        pending.passed, pending.asked, pending.asked_of = True, 0, ""
        return
    if said.remember is not None and said.allow:
        tree.remembered = tree.remembered.keep(_kept(tree, decision, said.remember, record))
    if said.allow and decision.carrying is not None and decision.carrying.sending.destination:
        tree.carried.allowed.add(decision.carrying.sending.place)
    if said.allow:
        tree.packages |= set(asked_packages.unnamed(tree, pending.spec.name, texts(pending.bound)))
    if is_held(tree, pending):
        for path in _above(tree, agent):
            tree.agents[path].guards.stood(pending.asked_at, record.at)
    pending.answer = given
    if said.by == "user" and not said.allow:
        tree.denied.add(kind_digest(pending.spec.name, pending.bound))
    if pending.asked_of == "person":
        _tell_plan(tree, agent, pending, record)


def _tell_plan(tree: Tree, agent: Agent, pending: Pending, record: Record) -> None:
    """Tell the plans above that a person is being asked: the step's time stands still meanwhile."""
    if agent.plan is not None:
        apply_plan.waits(tree, agent, pending, record)
    if tree.follows_1_3:
        apply_plan.waits_below(tree, agent, record)


def _above(tree: Tree, agent: Agent) -> Iterator[str]:
    """Yield an agent and all that wait for it. Their time stands still while no person is there to answer."""
    path = agent.path
    while path != "user":
        yield path
        path = tree.agents[path].caller


def _can_say(tree: Tree, pending: Pending, given: Answer, said: ClearanceAnswer) -> bool:
    """Whether this answer can come from the person or endpoint that was asked."""
    match said.by:
        case "endpoint":
            passes = not said.then or given.allow
            return pending.asked_of == "endpoint" and passes and said.remember is None
        case "user":
            remembers = said.remember is None or given.allow
            return pending.asked_of == "person" and not given.reason and not said.then and remembers
        case "time":
            silent = not said.then and said.remember is None
            return pending.asked_of == "person" and silent and given == nobody_answered(pending.seconds)
        case "policy":
            then = without_person(tree, pending) or "deny"
            settles = then != "hold" and given == by_policy(then)
            return pending.asked_of == "person" and settles and not said.then and said.remember is None


def _kept(
    tree: Tree, decision: Decision, remember: Literal["call"] | ClearanceRule, record: Record
) -> Keep | None:
    if decision.asked is None:
        return None
    try:
        found = kept(as_said(remember), decision.asked.question, decision.asked.user)
    except UsageError:
        found = None
    expect(tree, record, found is not None and tree.policy.remember, "remembers what can't be remembered")
    return found
