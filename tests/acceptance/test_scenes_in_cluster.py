"""The scenes of one machine again, with a store, on a host, through a gateway: users notice no difference.

At the end of each, the stage checks that contexts only grow (scene 7) and that nothing is left behind. Scene 12 is
`test_a_whole_cluster_on_one_machine_…` in `test_cluster.py`. Short runs have three of the scenes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance import test_browser, test_control, test_kill, test_plans, test_scenes, test_tree
from tests.acceptance.conftest import Stage
from tests.acceptance.product import reap
from tests.rounds import short

Scene = Callable[[Stage, Path], None]


def alone(scene: Callable[[Stage], None]) -> tuple[str, Scene]:
    """A scene that needs nothing but the stage, by its name."""
    return scene.__name__, lambda stage, folder: scene(stage)


IN_EVERY_RUN = (
    alone(test_tree.test_same_name_under_different_callers),  # scene 2
    alone(test_scenes.test_scene_5_a_message_at_depth_five_in_three_ways),
    alone(test_scenes.test_scene_6_cancel_in_the_middle_of_a_tool),
)
ON_LONG_RUNS = (
    alone(test_scenes.test_scene_1_questions_from_three_depths_are_answered_in_any_order),
    alone(test_plans.test_one_step_of_eight_fails),  # 3
    alone(test_control.test_the_rest_runs_on_while_a_subtree_is_paused),  # 4
    alone(test_scenes.test_scene_4_the_clocks_of_a_paused_part_stand_still),
    alone(test_control.test_cancel_in_the_middle_of_a_tool),  # 6
    alone(test_scenes.test_scene_8_a_tree_at_its_budget_still_reports),
    alone(test_kill.test_killed_servers),  # 9
    (
        "a_person_steps_in_two_levels_down_and_reloads_without_loss",  # 10
        test_browser.test_a_person_steps_in_two_levels_down_and_reloads_without_loss,
    ),
    alone(test_tree.test_what_a_tool_prints_never_acts),  # 11
    alone(test_scenes.test_scene_13_the_same_denied_call_repeated),
)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, gateway=True)
    yield made
    try:
        made.end()
    finally:
        for data in made.data:
            reap(data)


@pytest.mark.parametrize(
    "scene",
    [pytest.param(scene, id=name) for name, scene in short(IN_EVERY_RUN, of=IN_EVERY_RUN + ON_LONG_RUNS)],
)
def test_as_on_one_machine(scene: Scene, hosted: Stage, tmp_path: Path) -> None:
    scene(hosted, tmp_path)
