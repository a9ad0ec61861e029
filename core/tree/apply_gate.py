"""How the gate's records change the tree: its decisions, which it must come to again, and who cleared a call.

What a decision or a question says follows from the tree, field by field, so a forged one is named. Four things are
outcomes and are taken as they stand: the time of a record (rates are counted by it); whether a question went to a
person or to an endpoint, and how long a person had (settings); and what they answered (an endpoint's reason in its
own words). An answer must still be one that whoever was asked could give.
"""

from __future__ import annotations

from core.errors import UsageError
from core.gate.clearance import Keep, kept
from core.gate.gate import Answer, Question, Ticket
from core.ports import JSON
from core.records.record import Record
from core.tree import apply_plan
from core.tree.agent import Agent, Pending
from core.tree.checking import NOT_RUN, agent_of, expect, expect_fields, pending_of
from core.tree.decision import (
    Asked,
    Decision,
    answer_fields,
    ask_fields,
    decide_again,
    gate_fields,
    nobody_answered,
)
from core.tree.tree import Tree


def decide(tree: Tree, record: Record) -> None:
    """A decision must be the one that the gate comes to again; what it counts is counted."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    expect(tree, record, not isinstance(decision.verdict, Question), "decides what nobody has cleared yet")
    expect_fields(tree, record, gate_fields(agent, pending, decision))
    pending.verdict = "allowed" if isinstance(decision.verdict, Ticket) else "denied"
    pending.verdict_impact = decision.impact.level
    tree.tally = decision.tally


def use(tree: Tree, pending: Pending, record: Record) -> None:
    """A call is dispatched: on an allowing decision, which is good for this once."""
    expect(
        tree,
        record,
        pending.verdict == "allowed" and not pending.call,
        "makes a call that the gate did not allow",
    )
    expect_fields(tree, record, {**record.fields, "impact": pending.verdict_impact})


def explain(tree: Tree, pending: Pending, record: Record) -> None:
    """An action has its outcome: that of a call, or that of a denial, or it was withdrawn before."""
    status = record.text("status")
    made = pending.call > 0 and pending.verdict != "denied" and record.number("call") == pending.call
    denied = pending.verdict == "denied" and status == "incomplete"
    expect(tree, record, made or denied or status in NOT_RUN, "is the outcome of a call that was not made")


def clear(tree: Tree, record: Record) -> None:
    """Somebody is asked about a call, or answers."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    if record.text("op") == "ask":
        _ask(tree, agent, pending, decision, record)
    else:
        _answer(tree, agent, pending, decision, record)


def _ask(tree: Tree, agent: Agent, pending: Pending, decision: Decision, record: Record) -> None:
    to: Asked = "endpoint" if record.text("to") == "endpoint" else "person"
    needed = isinstance(decision.verdict, Question) and pending.asked_of != to
    expect(tree, record, needed, "asks about a call that needs no clearance")
    seconds = record.fields.get("seconds")
    if tree.strict and decision.asked is not None:
        fields, _ = ask_fields(agent, pending, decision.asked, decision.impact, to)
        has_time = isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds > 0
        expect_fields(tree, record, {**fields, "seconds": seconds} if to == "person" and has_time else fields)
        expect(tree, record, has_time or to == "endpoint", "asks a person who has no time to answer")
    tree.tally = decision.tally
    pending.asked, pending.asked_of = record.n, to
    pending.asked_impact = decision.impact.level
    pending.seconds = float(seconds) if isinstance(seconds, int | float) else 0
    if to == "person":
        _tell_plan(tree, agent, pending, record)


def _answer(tree: Tree, agent: Agent, pending: Pending, decision: Decision, record: Record) -> None:
    open_ = pending.asked > 0 and pending.asked == record.number("ask") and pending.answer is None
    expect(tree, record, open_, "answers what was not asked")
    answer, by = Answer(record.fields.get("allow") is True, record.text("reason")), record.text("by")
    said: dict[str, JSON] = {
        name: value for name, value in record.fields.items() if name in ("then", "remember")
    }
    expect(
        tree, record, _can_say(pending, answer, by, said), f"is no answer that {by or 'anybody'} could give"
    )
    expect_fields(tree, record, {**answer_fields(agent, pending, answer, by), **said})
    if said.get("then") == "person":
        pending.passed, pending.asked, pending.asked_of = True, 0, ""
        return
    if "remember" in said and answer.allow:
        tree.remembered = tree.remembered.keep(_kept(tree, decision, said["remember"], record))
    pending.answer = answer
    if pending.asked_of == "person":
        _tell_plan(tree, agent, pending, record)


def _tell_plan(tree: Tree, agent: Agent, pending: Pending, record: Record) -> None:
    """A step's time stands still while a person is asked."""
    if agent.plan is not None:
        apply_plan.waits(tree, agent, pending, record)


def _can_say(pending: Pending, answer: Answer, by: str, said: dict[str, JSON]) -> bool:
    """Whether this answer can come from whoever was asked."""
    match by:
        case "endpoint":
            passes = said == {"then": "person"} and answer.allow
            return pending.asked_of == "endpoint" and (passes or not said)
        case "user":
            remembers = set(said) <= {"remember"} and (answer.allow or not said)
            return pending.asked_of == "person" and not answer.reason and remembers
        case "time":
            return pending.asked_of == "person" and not said and answer == nobody_answered(pending.seconds)
        case _:
            return False


def _kept(tree: Tree, decision: Decision, remember: JSON, record: Record) -> Keep | None:
    if decision.asked is None:
        return None
    try:
        found = kept(remember, decision.asked.question, decision.asked.user)
    except UsageError:
        found = None
    expect(tree, record, found is not None and tree.policy.remember, "remembers what can't be remembered")
    return found
