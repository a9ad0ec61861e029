"""`core.records.ways` is the one list of modes: all that is said about one comes from there."""

from __future__ import annotations

import click
import pytest

from iact.cli import program
from iact.core.errors import UsageError
from iact.core.language.actions import PLAN
from iact.core.plan.modes.registry import MODES, make_mode
from iact.core.records.ways import ABOUT, OPTIONS, PLAN_MODES, PLAN_WAYS, WAYS


def test_every_mode_can_run_and_is_told_of() -> None:
    assert [make_mode(name).name for name in PLAN_MODES] == list(PLAN_MODES)
    assert set(MODES) == set(PLAN_MODES)
    assert set(ABOUT) == set(WAYS)


def test_the_documentation_of_plans_says_when_each_pays() -> None:
    assert all(ABOUT[way].pays in PLAN.documentation for way in PLAN_WAYS)
    assert "- nreflect n=4: there are many steps" in PLAN.documentation


def test_an_option_of_a_mode_is_one_of_the_action_and_of_the_command() -> None:
    assert set(OPTIONS) <= set(PLAN.properties)
    plan = program.commands["plan"]
    assert isinstance(plan, click.Group)
    passed = {parameter.name: parameter.opts for parameter in plan.commands["run"].params}
    assert {name: passed[name] for name in OPTIONS} == {
        name: [f"--{option.flag}"] for name, option in OPTIONS.items()
    }


@pytest.mark.parametrize(("mode", "option"), [("nreflect", "n"), ("analyze", "rounds")])
def test_an_option_outside_of_its_bounds_is_refused(mode: str, option: str) -> None:
    for value in (0, 101, "few"):
        with pytest.raises(UsageError):
            make_mode(mode, {option: value})
