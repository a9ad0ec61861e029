"""A plan's state, event by event: what each change leaves in the nodes it touches, and what follows from it."""

from __future__ import annotations

import itertools

import pytest

from iact.core.plan.forms import read_plan
from iact.core.plan.model import PlanError, PlanNode, PlanVersion, Ref, make_plan
from iact.core.plan.state import DEFAULT_RETRIES, NodeChange, NodeRecord, PlanState
from iact.core.plan.states import Cause, IllegalTransition
from iact.core.ports import JSON


def begun(*nodes: PlanNode) -> PlanState:
    state = PlanState("p", "a goal")
    state.adopt(PlanVersion.first(make_plan("p", nodes)))
    return state


def tool(id: str, *after: str, retries: int | None = None) -> PlanNode:
    return PlanNode(id, call="f", after=after, retries=retries)


def race(id: str, *after: str, refs: dict[str, Ref] | None = None) -> PlanNode:
    return PlanNode(id, call="f", after=after, join="any_of", refs=refs or {})


def happen(state: PlanState, node: str, *causes: Cause, at: float = 0.0) -> NodeChange:
    changes = [state.happen(node, cause, at) for cause in causes]
    return changes[-1]


def succeed(state: PlanState, node: str, output: JSON = None, labels: tuple[str, ...] = ()) -> NodeChange:
    happen(state, node, "joined", "dispatched")
    change = NodeChange(
        node, 1, "succeeded", "running", "executed", 4.0, 1, "", output, labels, validation="parsed"
    )
    state.apply(change)
    return change


def follow(state: PlanState, change: NodeChange) -> list[tuple[str, Cause]]:
    """What follows from `change`; each is applied before the next is asked for, as the engine does."""
    following = []
    for node, cause in itertools.islice(state.consequences(change), 20):
        following.append((node, cause))
        state.happen(node, cause, 0.0)
    return following


def test_a_plan_before_its_first_version() -> None:
    assert (PlanState().plan.id, PlanState().plan.goal) == ("plan", "")
    state = PlanState("p", "a goal")
    assert (state.plan.id, state.plan.goal, dict(state.plan.nodes)) == ("p", "a goal", {})
    assert (state.versions, state.nodes, state.outputs, state.open) == ([], {}, {}, 0)


def test_a_version_that_does_not_follow_is_told_in_full() -> None:
    state = PlanState()
    with pytest.raises(PlanError) as caught:
        state.adopt(PlanVersion(2, None, "too late"))
    assert str(caught.value) == "version 2 of the plan does not follow on version None"
    with pytest.raises(PlanError, match="version 1 of the plan does not follow on version None"):
        state.adopt(PlanVersion(1, 1, "a parent that never was"))
    state.adopt(PlanVersion(1, None, "first", (tool("a"), tool("b", "a"))))
    with pytest.raises(PlanError) as caught:
        state.adopt(PlanVersion(2, None, "an orphan"))
    assert str(caught.value) == "version 2 of the plan does not follow on version 1"
    with pytest.raises(PlanError) as caught:
        state.adopt(PlanVersion(2, 1, "drop", drop=("b",)))
    assert str(caught.value) == "version 2 drops 'b', which is pending"
    happen(state, "a", "joined", "dispatched")
    with pytest.raises(PlanError) as caught:
        state.adopt(PlanVersion(2, 1, "rewire", rewire=(tool("a"),)))
    assert str(caught.value) == "version 2 rewires 'a', which has started"
    with pytest.raises(PlanError) as caught:
        state.adopt(PlanVersion(2, 1, "again", (tool("a"),)))
    assert str(caught.value) == "version 2 adds 'a', an id that was used before"
    assert [one.reason for one in state.versions] == ["first"]


def test_what_a_version_adds_drops_and_rewires() -> None:
    state = begun(tool("a"), tool("b", "a"), tool("c", "b"))
    assert state.nodes["a"] == NodeRecord(tool("a"), serves=["b"])
    assert [state.nodes[one].serves for one in "abc"] == [["b"], ["c"], []]
    assert state.open == 3
    succeed(state, "a")
    happen(state, "b", "dropped")
    state.adopt(PlanVersion(2, 1, "patched", (tool("d", "a"),), ("b",), (tool("c", "a", "d"),)))
    assert list(state.plan.nodes) == ["a", "c", "d"]
    assert [state.nodes[one].serves for one in "abcd"] == [["b", "c", "d"], [], [], ["c"]]
    assert state.nodes["c"].node == tool("c", "a", "d")
    assert [state.nodes[one].missing for one in "cd"] == [1, 0], "`a` has executed already"
    assert [state.nodes[one].version for one in "abcd"] == [1, 1, 1, 2]
    assert state.open == 2
    assert [one.version for one in state.versions] == [1, 2]


def test_what_was_skipped_may_be_dropped() -> None:
    state = begun(tool("a"), tool("b"))
    happen(state, "a", "concluded")
    state.adopt(PlanVersion(2, 1, "without", drop=("a",)))
    assert list(state.plan.nodes) == ["b"]


def test_a_planner_for_a_failed_node_brings_it_up_the_ladder() -> None:
    state = begun(tool("a"), tool("b"))
    happen(state, "a", "joined", "dispatched", "broke")
    assert state.nodes["a"].rung == "retried"
    patch = PlanNode("m", "micro_planner", spawned_by="a")
    follower = PlanNode("n", "tool", call="f", spawned_by="b")
    stranger = PlanNode("o", "micro_planner", spawned_by="nobody")
    state.adopt(PlanVersion(2, 1, "recovery", (patch, follower, stranger)))
    assert [state.nodes[one].rung for one in "abmno"] == ["patched"] + ["pristine"] * 4


def test_a_change_that_does_not_fit_says_how() -> None:
    state = begun(tool("a"))
    with pytest.raises(IllegalTransition) as caught:
        state.apply(NodeChange("a", 1, "dispatched", "ready", "running"))
    assert str(caught.value) == "node 'a' is pending, not ready"
    with pytest.raises(IllegalTransition) as caught:
        state.apply(NodeChange("a", 1, "joined", "pending", "running"))
    assert str(caught.value) == "'joined' leads node 'a' to ready, not running"
    happen(state, "a", "joined", "dispatched")
    with pytest.raises(IllegalTransition) as caught:
        state.apply(NodeChange("a", 1, "succeeded", "running", "executed"))
    assert str(caught.value) == "node 'a' is running; 'succeeded' needs that its contract holds"
    with pytest.raises(IllegalTransition, match="its contract holds"):
        happen(state, "a", "succeeded")
    with pytest.raises(IllegalTransition) as caught:
        happen(state, "a", "joined")
    assert str(caught.value) == "node 'a' is running; 'joined' leads nowhere from there"


def test_a_change_that_happens_is_given_back_as_the_journal_needs_it() -> None:
    state = begun(tool("a"))
    assert happen(state, "a", "joined", at=1.0) == NodeChange("a", 1, "joined", "pending", "ready", 1.0, 0)
    dispatched = NodeChange("a", 1, "dispatched", "ready", "running", 2.0, 1)
    assert happen(state, "a", "dispatched", at=2.0) == dispatched
    transient = NodeChange("a", 1, "transient", "running", "failed_retryable", 3.0, 1, "a reset")
    assert state.happen("a", "transient", 3.0, "a reset") == transient
    state.adopt(PlanVersion(2, 1, "nothing new"))
    assert happen(state, "a", "retried").version == 2
    assert happen(state, "a", "dispatched", at=5.0).attempt == 2


def test_attempts_retries_and_times_are_counted() -> None:
    state = begun(tool("a"))
    record = state.nodes["a"]
    happen(state, "a", "joined", at=1.0)
    assert (record.state, record.cause, record.attempts, record.started) == ("ready", "joined", 0, None)
    happen(state, "a", "dispatched", at=2.0)
    assert (record.attempts, record.started, record.retries) == (1, 2.0, 0)
    state.happen("a", "transient", 3.0, "a reset")
    assert (record.error, record.ended, state.open) == ("a reset", None, 1)
    happen(state, "a", "retried", "dispatched", at=4.0)
    assert (record.attempts, record.started, record.retries) == (2, 2.0, 1), "it began once"
    assert record.error == "a reset"
    happen(state, "a", "transient", "retried", "dispatched", at=5.0)
    assert (record.attempts, record.retries) == (3, 2)
    state.apply(NodeChange("a", 7, "succeeded", "running", "executed", 6.0, 3, "", "out", ("x",), "parsed"))
    assert record == NodeRecord(
        tool("a"), "executed", 7, 3, 2, 2.0, 6.0, "out", ("x",), "", "parsed", "succeeded", "pristine",
        failures=["a reset"],
    )  # fmt: skip
    assert (state.outputs, state.open) == ({"a": "out"}, 0)


def test_a_failure_ends_a_node_without_an_output() -> None:
    state = begun(tool("a"), tool("b", "a"))
    happen(state, "a", "joined", "dispatched")
    state.happen("a", "broke", 9.0, "no")
    record = state.nodes["a"]
    assert (record.state, record.error, record.ended, record.rung) == ("failed", "no", 9.0, "retried")
    assert (state.outputs, state.open, state.nodes["b"].missing) == ({}, 1, 1)
    happen(state, "b", "dependency_failed")
    assert (state.nodes["b"].rung, state.open) == ("pristine", 0)


def test_a_race_that_fails_has_no_retry_to_try() -> None:
    state = begun(tool("a"), tool("b"), race("z", "a", "b"))
    for one in "ab":
        happen(state, one, "joined", "dispatched", "broke")
    happen(state, "z", "join_failed")
    assert state.nodes["z"].rung == "patched"


def test_the_first_to_succeed_wins_a_race_and_stays_its_winner() -> None:
    state = begun(tool("a"), tool("b"), tool("c"), race("z", "a", "b", "c"))
    happen(state, "a", "joined")
    happen(state, "b", "joined")
    assert state.join("z") == "open"
    assert list(state.entries()) == ["c"]
    happen(state, "b", "dispatched")
    happen(state, "a", "dispatched")
    won = NodeChange("b", 1, "succeeded", "running", "executed", validation="parsed")
    state.apply(won)
    assert (state.nodes["z"].winner, state.join("z")) == ("b", "holds")
    late = NodeChange("a", 1, "succeeded", "running", "executed", validation="parsed")
    state.apply(late)
    assert (state.nodes["z"].winner, state.nodes["z"].missing) == ("b", 0)
    assert follow(state, won) == [("z", "joined"), ("c", "lost_race")]
    assert follow(state, late) == []


def test_the_losers_of_a_race_are_stopped_in_order() -> None:
    state = begun(tool("a"), tool("b"), tool("c"), race("z", "c", "b", "a"))
    happen(state, "a", "joined", "dispatched")
    assert follow(state, succeed(state, "b")) == [("z", "joined"), ("a", "lost_race"), ("c", "lost_race")]


def test_a_loser_takes_with_it_what_served_it_alone() -> None:
    state = begun(tool("a"), tool("b"), tool("c", "b"), race("z", "a", "c"))
    won = succeed(state, "a")
    assert follow(state, won) == [("z", "joined"), ("c", "lost_race")]
    assert state.nodes["b"].state == "pending"
    assert not state.superfluous("b"), "what it serves is skipped, not won by another"


def test_a_loser_that_serves_a_loser_is_stopped_after_it() -> None:
    state = begun(tool("a"), tool("b", "a"), tool("c"), race("z", "a", "b", "c"))
    assert follow(state, succeed(state, "c")) == [("z", "joined"), ("b", "lost_race"), ("a", "lost_race")]


def test_a_later_version_finds_the_winner_that_there_is() -> None:
    state = begun(tool("a"), tool("b"), tool("c"))
    succeed(state, "b")
    succeed(state, "c")
    state.adopt(PlanVersion(2, 1, "a race at last", (race("z", "a", "b", "c"),)))
    assert (state.nodes["z"].winner, state.nodes["z"].missing) == ("b", 0)
    assert [state.nodes[one].serves for one in "abc"] == [["z"]] * 3
    assert list(state.entries()) == ["a", "z"]


def test_a_join_is_lost_with_the_last_hope() -> None:
    plan = "steps: [{id: a, call: f}, {id: b, call: f}, {id: all, call: f, after: [a, b]}, {id: x, call: f}]"
    state = PlanState()
    state.adopt(PlanVersion.first(read_plan(plan, id="p")))
    state.adopt(
        PlanVersion(2, 1, "races", (race("any", "a", "b"), race("both", "a", "b", refs={"v": Ref("x")})))
    )
    joined = ("all", "any", "both")
    assert [state.join(one) for one in joined] == ["open"] * 3
    happen(state, "a", "joined", "dispatched", "broke")
    assert [state.join(one) for one in joined] == ["lost", "open", "open"]
    assert [state.any_of(one) for one in joined] == [False, True, True]
    succeed(state, "b")
    assert [state.join(one) for one in joined] == ["lost", "holds", "open"], "`both` needs `x` too"
    assert state.nodes["both"].missing == 1
    happen(state, "x", "cancelled")
    assert [state.join(one) for one in joined] == ["lost", "holds", "lost"]
    assert state.waits_for("all") == ["a is failed"]


@pytest.mark.parametrize("end", ["broke", "cancelled", "concluded"])
def test_whatever_ends_without_an_output_loses_the_join(end: Cause) -> None:
    state = begun(tool("a"), tool("b", "a"))
    happen(state, "a", *(("joined", "dispatched", "broke") if end == "broke" else (end,)))
    assert state.join("b") == "lost"


def test_a_race_is_lost_when_all_of_its_candidates_are() -> None:
    state = begun(tool("a"), tool("b"), race("z", "a", "b"))
    happen(state, "a", "cancelled")
    assert state.join("z") == "open"
    happen(state, "b", "concluded")
    assert state.join("z") == "lost"


def test_what_follows_from_the_release_of_a_node() -> None:
    state = begun(tool("a"), tool("b", "a"))
    happen(state, "a", "gated")
    happen(state, "b", "gated")
    assert follow(state, happen(state, "a", "released")) == [("a", "joined")]
    assert follow(state, happen(state, "b", "released")) == []
    assert follow(state, happen(state, "a", "dispatched")) == []


def test_what_follows_from_a_success_is_ready_in_order() -> None:
    state = begun(tool("a"), tool("y"), tool("d", "a"), tool("c", "a", "y"), tool("b", "a"), tool("e", "a"))
    happen(state, "e", "gated")
    assert follow(state, succeed(state, "a")) == [("b", "joined"), ("d", "joined")]
    assert [state.nodes[one].missing for one in "bcde"] == [0, 1, 0, 0]
    assert follow(state, succeed(state, "y")) == [("c", "joined")]
    assert state.waits_for("e") == []


def test_a_failure_makes_nothing_ready() -> None:
    state = begun(tool("a"), tool("b", "a"))
    happen(state, "a", "joined", "dispatched")
    assert follow(state, happen(state, "a", "broke")) == []


def test_what_is_superfluous_serves_only_races_that_others_won() -> None:
    state = begun(
        tool("a"), tool("b"), tool("c"), tool("d"), tool("e"),
        race("y", "a", "b", "c", "d"), race("z", "c", "e"), tool("x", "d"), tool("w", "d"),
    )  # fmt: skip
    assert [state.superfluous(one) for one in "abcde"] == [False] * 5
    succeed(state, "a")
    assert [one for one in "abcdex" if state.superfluous(one)] == ["b"], "`c` may win `z` yet, `d` serves `w`"
    happen(state, "w", "cancelled")
    assert not state.superfluous("d"), "it serves `x` too"
    happen(state, "x", "concluded")
    assert state.superfluous("d")
    succeed(state, "e")
    assert state.superfluous("c")
    assert not state.superfluous("e")


def test_a_candidate_whose_output_is_needed_besides_is_not_superfluous() -> None:
    state = begun(tool("a"), tool("b"), tool("c"), race("z", "a", "b", refs={"v": Ref("c")}))
    succeed(state, "a")
    assert state.superfluous("b")
    assert not state.superfluous("c"), "`z` needs it, whoever wins"


def test_a_node_that_states_no_budget_has_the_usual_one() -> None:
    state = begun(tool("a"), tool("b", retries=1), tool("c", retries=0))
    assert DEFAULT_RETRIES == 2
    assert [state.retries_left(one) for one in "abc"] == [2, 1, 0]
    happen(state, "b", "joined", "dispatched", "transient", "retried", "dispatched", "transient")
    assert state.retries_left("b") == 0
    with pytest.raises(IllegalTransition, match="retries are left"):
        happen(state, "b", "retried")


def test_nodes_are_listed_by_state_in_order_of_id() -> None:
    state = begun(
        tool("b"), PlanNode("a", "reflection"), PlanNode("c", "agent", call="x", task="t"), tool("d")
    )
    assert state.in_state("pending") == ["a", "b", "c", "d"]
    assert state.work_in("pending") == ["b", "c", "d"], "a thought is no work"
    happen(state, "d", "joined")
    happen(state, "c", "joined", "dispatched")
    assert state.in_state("ready", "running") == ["c", "d"]
    assert state.work_in("ready") == ["d"]
    assert state.in_state() == []


def test_where_the_data_of_a_node_comes_from() -> None:
    refs = {"x": Ref("b", "0"), "y": Ref("a"), "w": Ref("*", "1"), "n": Ref("b")}
    state = begun(
        tool("a"), tool("b"), tool("c"), tool("d"), PlanNode("e", call="f", after=("a",), refs=refs),
        race("z", "c", "d", refs={"w": Ref("*", "1"), "b": Ref("b", "0")}),
    )  # fmt: skip
    assert state.labels_of("z") == ()
    assert state.labels_of_ref("z", "w") == ()
    assert not state.picks("z", "w")
    assert not state.picks("z", "b")
    succeed(state, "b", ["one", "two"], ("tool:b", "all"))
    succeed(state, "a", {"k": 1}, ("tool:a", "all"))
    assert state.labels_of("e") == ("all", "tool:a", "tool:b")
    assert state.labels_of_ref("e", "y") == ("tool:a", "all")
    assert [state.picks("e", name) for name in ("x", "y", "n", "w")] == [True, False, False, False]
    assert state.labels_of_ref("e", "w") == (), "it is no race"
    succeed(state, "d", ["one", "two"], ("tool:d",))
    assert state.labels_of_ref("z", "w") == ("tool:d",)
    assert state.labels_of("z") == ("all", "tool:b", "tool:d")
    assert state.picks("z", "w")
