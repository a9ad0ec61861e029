"""The small parts of a plan's engine: changes as a journal has them, rates, queues, and the diagram of states."""

from __future__ import annotations

import json

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError, PlanVersion
from iact.core.plan.schedule import ReadyQueue, Resources
from iact.core.plan.state import NodeChange, PlanState
from iact.core.plan.states import diagram
from iact.core.ports import JSON

CHANGE = NodeChange(
    "a", 2, "succeeded", "running", "executed", 1.25, 3, "why", {"x": 1}, ("tool:f",), "parsed"
)
FIELDS: dict[str, JSON] = {
    "node": "a",
    "version": 2,
    "cause": "succeeded",
    "from": "running",
    "to": "executed",
    "at": 1.25,
    "attempt": 3,
    "detail": "why",
    "output": {"x": 1},
    "labels": ["tool:f"],
    "validation": "parsed",
}


def test_a_change_as_a_journal_has_it() -> None:
    assert CHANGE.to_json() == FIELDS
    assert NodeChange.from_json(json.loads(json.dumps(FIELDS))) == CHANGE


def test_a_change_without_an_outcome_says_no_more_than_it_must() -> None:
    started = NodeChange("a", 1, "dispatched", "ready", "running", 0.12345678, 1)
    fields = started.to_json()
    assert list(fields) == ["node", "version", "cause", "from", "to", "at", "attempt"]
    assert fields["at"] == 0.123457
    assert NodeChange.from_json(fields) == NodeChange("a", 1, "dispatched", "ready", "running", 0.123457, 1)


@pytest.mark.parametrize(
    "damage",
    [{"cause": "wished"}, {"cause": None}, {"version": "x"}, {"at": None}, {"attempt": []}, {"labels": 3}],
)
def test_a_damaged_change_is_told(damage: dict[str, JSON]) -> None:
    with pytest.raises(PlanError, match="the journal holds a node change that can't be read"):
        NodeChange.from_json({**FIELDS, **damage})


def test_an_unknown_cause_is_named() -> None:
    with pytest.raises(PlanError, match="'wished'"):
        NodeChange.from_json({**FIELDS, "cause": "wished"})


@pytest.mark.parametrize("name", ["node", "version", "cause", "from", "to", "at", "attempt"])
def test_a_change_without_what_it_needs_is_told(name: str) -> None:
    with pytest.raises(PlanError, match=f"can't be read .*{name}"):
        NodeChange.from_json({one: value for one, value in FIELDS.items() if one != name})


def test_a_queue_gives_the_smallest_once_and_not_what_was_removed() -> None:
    queue = ReadyQueue()
    for node in ("b", "a", "c", "a"):
        queue.add(node)
    queue.remove("c")
    queue.remove("none")
    assert len(queue) == 2
    assert [queue.pop(), queue.pop(), queue.pop()] == ["a", "b", None]
    queue.add("c")
    assert queue.pop() == "c"


def test_a_resource_is_its_holders_until_that_lets_it_go() -> None:
    held = Resources()
    held.take(("x", "y"), "a")
    assert held.free("z")
    assert not held.free("x")
    held.release(("x",), "b")
    assert not held.free("x"), "it is another's"
    held.release(("x", "z"), "a")
    assert held.free("x")
    assert not held.free("y")


def test_those_that_share_a_resource_keep_others_from_it() -> None:
    held = Resources()
    held.take(("x",), "a", shared=True)
    assert not held.free("x")
    assert held.free("x", shared=True)
    held.take(("x",), "b", shared=True)
    held.release(("x",), "a")
    assert not held.free("x"), "the other has it still"
    held.release(("x",), "b")
    assert held.free("x")
    held.take(("x",), "c")
    assert not held.free("x", shared=True)


def test_what_a_node_waits_for_and_what_may_begin() -> None:
    state = PlanState()
    plan = read_plan("steps: [{id: b, call: f}, {id: a, call: f}, {id: c, call: f, after: [a, b]}]", id="p")
    state.adopt(PlanVersion.first(plan))
    assert list(state.entries()) == ["a", "b"]
    assert state.waits_for("c") == ["a is pending", "b is pending"]
    for cause in ("joined", "dispatched"):
        state.happen("a", cause, 0.0)
    assert list(state.entries()) == ["b"]
    change = NodeChange("a", 1, "succeeded", "running", "executed", 1.0, 1, validation="syntactic")
    state.apply(change)
    assert state.waits_for("c") == ["b is pending"]
    assert state.waits_for("a") == []


def test_the_diagram_line_by_line() -> None:
    lines = diagram().split("\n")
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> pending"]
    assert "    pending --> ready: joined [its join holds]" in lines
    assert "    pending --> blocked: gated" in lines
    ends = [f"    {state} --> [*]" for state in ("executed", "failed", "cancelled", "skipped")]
    assert lines[-5:] == [*ends, ""]
