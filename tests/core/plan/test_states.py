"""The table of node states, exhaustively."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Final

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError, PlanVersion
from iact.core.plan.state import NodeChange, PlanState
from iact.core.plan.states import (
    ARROWS,
    CAUSES,
    STATES,
    TABLE,
    TERMINAL,
    Cause,
    IllegalTransition,
    JoinState,
    State,
    diagram,
    step,
)


@dataclass
class Says:
    """A situation in which every guard's answer is chosen."""

    joined: JoinState = "holds"
    left: int = 1
    useless: bool = True
    raced: bool = True

    def join(self, node: str) -> JoinState:
        return self.joined

    def retries_left(self, node: str) -> int:
        return self.left

    def superfluous(self, node: str) -> bool:
        return self.useless

    def any_of(self, node: str) -> bool:
        return self.raced

    def contract_passed(self, node: str, validation: str) -> bool:
        return bool(validation) and node == "n"


@pytest.mark.parametrize(("source", "cause"), list(itertools.product(STATES, CAUSES)))
def test_every_pair_is_an_arrow_or_raises(source: State, cause: Cause) -> None:
    arrow = TABLE.get((source, cause))
    at = Says("lost" if cause in ("join_failed", "dependency_failed") else "holds")
    if arrow is None:
        with pytest.raises(IllegalTransition, match="leads nowhere"):
            step(source, cause, at, "n", "syntactic")
    else:
        assert source not in TERMINAL
        assert step(source, cause, at, "n", "syntactic") == arrow.target


_: Final = None
WHERE_TO = {
    #                    pending      ready     blocked    running             waiting_human       failed_retryable
    "joined":            ("ready",    _,         _,         _,                  _,                  _),
    "join_failed":       ("failed",   _,         _,         _,                  _,                  _),
    "dependency_failed": ("skipped",  _,         "skipped", _,                  _,                  _),
    "gated":             ("blocked",  "blocked", _,         _,                  _,                  _),
    "released":          (_,          _,         "pending", _,                  _,                  _),
    "dispatched":        (_,          "running", _,         _,                  _,                  _),
    "ref_missing":       (_,          "failed",  _,         _,                  _,                  _),
    "needs_human":       (_,          _,         _,         "waiting_human",    _,                  _),
    "approved":          (_,          _,         _,         _,                  "running",          _),
    "denied":            (_,          _,         _,         _,                  "running",          _),
    "expired":           (_,          _,         _,         _,                  "failed",           _),
    "succeeded":         (_,          _,         _,         "executed",         _,                  _),
    "transient":         (_,          _,         _,         "failed_retryable", _,                  _),
    "interrupted":       (_,          _,         _,         "failed_retryable", "failed_retryable", _),
    "broke":             (_,          _,         _,         "failed",           _,                  _),
    "retried":           (_,          _,         _,         _,                  _,                  "ready"),
    "exhausted":         (_,          _,         _,         _,                  _,                  "failed"),
    "lost_race":         ("skipped",) * 6,
    "concluded":         ("skipped",  "skipped", "skipped", _,                  "skipped",          "skipped"),
    "dropped":           ("cancelled",) * 6,
    "cancelled":         ("cancelled",) * 6,
}  # fmt: skip
"""The table, written a second time, the other way round."""
GUARDED = {"joined", "join_failed", "dependency_failed", "dispatched", "succeeded", "retried", "lost_race"}


def test_the_table_is_the_one_that_is_meant() -> None:
    columns = ("pending", "ready", "blocked", "running", "waiting_human", "failed_retryable")
    meant = {
        (source, cause): target
        for cause, row in WHERE_TO.items()
        for source, target in zip(columns, row, strict=True)
        if target is not None
    }
    assert {pair: arrow.target for pair, arrow in TABLE.items()} == meant
    assert {arrow.cause for arrow in ARROWS if arrow.says} == GUARDED


@pytest.mark.parametrize("cause", sorted(set(CAUSES) - GUARDED))
def test_what_has_no_guard_happens_in_any_situation(cause: Cause) -> None:
    for arrow in ARROWS:
        if arrow.cause == cause:
            assert step(arrow.source, cause, Says("open", 0, False, False), "n") == arrow.target


def test_no_two_arrows_share_a_state_and_a_cause_and_every_state_and_cause_is_used() -> None:
    assert len(TABLE) == len(ARROWS)
    assert {a.source for a in ARROWS} | {a.target for a in ARROWS} == set(STATES)
    assert {a.cause for a in ARROWS} == set(CAUSES)


def test_from_every_open_state_a_terminal_one_can_be_reached() -> None:
    for source in STATES:
        seen, todo = {source}, [source]
        while todo:
            here = todo.pop()
            for arrow in ARROWS:
                if arrow.source == here and arrow.target not in seen:
                    seen.add(arrow.target)
                    todo.append(arrow.target)
        assert seen & TERMINAL
        if source in TERMINAL:
            assert seen == {source}


@pytest.mark.parametrize(
    ("source", "cause", "at", "validation"),
    [
        ("pending", "joined", Says("open"), ""),
        ("ready", "dispatched", Says("open"), ""),
        ("running", "succeeded", Says(), ""),
        ("failed_retryable", "retried", Says(left=0), ""),
        ("failed_retryable", "retried", Says("lost"), ""),
        ("pending", "join_failed", Says("open"), ""),
        ("pending", "join_failed", Says("lost", raced=False), ""),
        ("pending", "dependency_failed", Says("holds"), ""),
        ("running", "lost_race", Says(useless=False), ""),
    ],
)
def test_a_guard_that_does_not_hold_raises(source: State, cause: Cause, at: Says, validation: str) -> None:
    with pytest.raises(IllegalTransition, match="needs that"):
        step(source, cause, at, "n", validation)


def test_the_diagram_has_every_arrow() -> None:
    text = diagram()
    for arrow in ARROWS:
        assert f"{arrow.source} --> {arrow.target}: {arrow.cause}" in text
    assert text.startswith("stateDiagram-v2")


def folded(text: str) -> PlanState:
    state = PlanState()
    state.adopt(PlanVersion.first(read_plan(text, id="p")))
    return state


def test_a_change_that_does_not_fit_raises() -> None:
    state = folded("steps: [{id: a, call: f}, {id: b, call: f, after: [a]}]")
    with pytest.raises(IllegalTransition):
        state.apply(NodeChange("b", 1, "joined", "pending", "ready"))
    with pytest.raises(IllegalTransition):
        state.apply(NodeChange("a", 1, "dispatched", "ready", "running"))
    with pytest.raises(IllegalTransition):
        state.apply(NodeChange("a", 1, "joined", "pending", "running"))
    state.apply(NodeChange("a", 1, "joined", "pending", "ready"))
    assert state.nodes["a"].state == "ready"


def test_versions_follow_on_each_other_and_keep_what_is_finished() -> None:
    state = folded("steps: [{id: a, call: f}, {id: b, call: f, after: [a]}]")
    for cause in ("joined", "dispatched"):
        state.happen("a", cause, 0.0)
    plan = state.plan
    with pytest.raises(PlanError, match="follow"):
        state.adopt(PlanVersion(3, 2, "skipping one"))
    with pytest.raises(PlanError, match="drops 'b', which is pending"):
        state.adopt(plan.revise("without cancelling", drop=["b"]))
    with pytest.raises(PlanError, match="has started"):
        plan.revise("rewire", rewire={"a": plan.nodes["a"]}, started=["a"])
    with pytest.raises(PlanError, match="has started"):
        state.adopt(plan.revise("rewire", rewire={"a": plan.nodes["a"]}))
    with pytest.raises(PlanError, match="is finished"):
        plan.revise("drop", drop=["a"], finished=["a"])
    with pytest.raises(PlanError, match="taken"):
        plan.revise("add", add=[plan.nodes["a"]])
    state.happen("b", "dropped", 0.0)
    state.adopt(plan.revise("no b", drop=["b"]))
    assert list(state.plan.nodes) == ["a"]
    assert state.plan.version == 2
    assert state.plan.parent_version == 1
    assert plan.version == 1
    with pytest.raises(PlanError, match="used before"):
        state.adopt(state.plan.revise("again", add=[plan.nodes["b"]]))
