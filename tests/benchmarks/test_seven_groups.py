"""The seven-group experiment can succeed and fail. Without mistakes, every group that can repair succeeds."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.seven_groups.__main__ import gain, simulate
from benchmarks.seven_groups.groups import GROUPS
from benchmarks.seven_groups.model import Rates
from iact.evaluation.graph_tasks import tasks

FAULTLESS = replace(Rates().scaled(0), mend_upstream=1.0)


def test_fifty_tasks_in_three_tiers_and_domains() -> None:
    made = tasks()
    assert len({task.id for task in made}) == 50
    assert {task.tier for task in made} == {"simple", "medium", "complex"}
    assert {task.domain for task in made} == {"coding", "data", "operations"}
    assert {trouble.kind for task in made for trouble in task.troubles.values()} == {
        "flaky",
        "moved",
        "upstream",
    }
    for task in made:
        known: set[str] = set()
        for step in task.steps:
            assert known.issuperset(step.inputs)
            known.add(step.id)


def test_without_mistakes_only_unbounded_repair_of_one_call_fails() -> None:
    """G3 and G4 can't go back to an earlier step; all others can, and do."""
    ran = simulate(FAULTLESS, 1)
    assert {(one.group, one.task) for one in ran if not one.success} == {
        (group, task.id)
        for group in ("G3", "G4")
        for task in tasks()
        if any(trouble.kind == "upstream" for trouble in task.troubles.values())
    }
    assert {one.group for one in ran} == set(GROUPS)


def test_mistakes_cost_success_and_gains_have_intervals() -> None:
    ran = simulate(Rates().scaled(3), 1)
    solved = sum(one.success for one in ran if one.group == "G1")
    assert 0 < solved < 50
    mean, low, high = gain(ran, "G1", "G6", lambda one: float(one.success))
    assert low <= mean <= high
