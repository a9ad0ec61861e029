"""What the record of a new child must hold: it follows from the action that calls the child."""

from __future__ import annotations

from dataclasses import replace

from iact.core.language.grammar import Bound
from iact.core.records.codec import decode
from iact.core.records.dialogue import Spawn
from iact.core.records.record import Record
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import expect, expect_content
from iact.core.tree.interpret import argument_text
from iact.core.tree.plan_checks import patterns_of, plan_fields
from iact.core.tree.tree import Tree


def child_spawn(caller: Agent, bound: Bound) -> Spawn:
    """Build the record of the child that a CALL creates."""
    model, scope, intent = (bound.arguments.get(name) for name in ("model", "scope", "intent"))
    role = model if isinstance(model, str) else ""
    return Spawn(
        caller=caller.path,
        model=role,
        allow=tuple(patterns_of(scope)) if isinstance(scope, str) else None,
        intent=intent if isinstance(intent, int | float) else None,
        fork=bound.arguments.get("fork") is True and (role or caller.model) == caller.model,
    )


def plan_spawn(caller: Agent, bound: Bound) -> Spawn:
    """Build the record of the plan that a PLAN creates."""
    found, _ = decode("spawn", {"caller": caller.path, **plan_fields(bound, argument_text(bound, "plan"))})
    assert isinstance(found, Spawn)
    return found


def expect_spawn(tree: Tree, record: Record, caller: Agent, spawn: Spawn) -> None:
    """Check that an action of `caller` creates exactly this child, or that a person starts a plan."""
    pending = next((one for one in caller.actions if one.child == record.agent and not one.call), None)
    if pending is None or pending.bound is None:
        persons = caller.caller == "user" and spawn.plan is not None
        plain = (spawn.model, spawn.allow, spawn.intent, spawn.fork) == ("", None, None, False)
        expect(tree, record, persons and plain and not record.body, "creates an agent that nobody called")
        return
    right = right_spawn(caller, pending, pending.bound)
    if right.plan is not None and right.plan.mode == "profile":
        right = replace(right, history=spawn.history)
    if "from" in pending.bound.arguments:  # only the world can say what a kept plan holds
        right = replace(right, template=spawn.template)
    if right.plan is not None:  # and what files there are
        right = replace(right, files=spawn.files)
    expect_content(tree, record, right)
    role = "" if spawn.plan is not None else argument_text(pending.bound, "role")
    expect(tree, record, record.body == role, "gives its child another role than its caller did")


def right_spawn(caller: Agent, pending: Pending, bound: Bound) -> Spawn:
    """Build the record that an action requires for the child that it creates."""
    return plan_spawn(caller, bound) if pending.spec.name == "PLAN" else child_spawn(caller, bound)
