"""How the gate's records change the tree: its decisions, which it must come to again, and who cleared a call."""

from __future__ import annotations

from core.fold.checking import agent_of, expect, pending_of
from core.fold.decision import decide_again
from core.fold.tree import Tree
from core.gate.clearance import kept
from core.gate.gate import Answer, Question, Ticket
from core.journal.record import Record


def decide(tree: Tree, record: Record) -> None:
    """A decision must be the one that the gate comes to again; what it counts is counted."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    said = (record.fields.get("allow"), record.fields.get("by"), record.fields.get("impact"))
    came = (isinstance(decision.verdict, Ticket), decision.by, decision.impact.level)
    if said != came:
        expect(tree, record, False, f"decides {said}, where the gate says {came}")
    tree.tally = decision.tally


def clear(tree: Tree, record: Record) -> None:
    """Somebody is asked about a call, or answers."""
    agent = agent_of(tree, record)
    pending = pending_of(tree, agent, record)
    if pending is None or pending.bound is None:
        return
    decision = decide_again(tree, agent, pending, record)
    if record.text("op") == "ask":
        asks = isinstance(decision.verdict, Question) and decision.by == record.text("rule")
        expect(tree, record, asks, "asks about a call that needs no clearance")
        tree.tally = decision.tally
        pending.asked, pending.asked_of = record.n, record.text("to")
        pending.asked_impact = decision.impact.level
        return
    open_ = pending.asked == record.number("ask") and pending.answer is None
    expect(tree, record, open_, "answers what was not asked")
    allow = record.fields.get("allow") is True
    if record.fields.get("then") == "person":
        expect(tree, record, allow and pending.asked_of == "endpoint", "passes on what no endpoint allowed")
        pending.passed, pending.asked, pending.asked_of = True, 0, ""
        return
    if decision.asked is not None and "remember" in record.fields and allow:
        question = decision.asked.question
        tree.remembered = tree.remembered.keep(kept(record.fields["remember"], question, decision.asked.user))
    pending.answer = Answer(allow, record.text("reason"))
