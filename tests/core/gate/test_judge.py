"""The impact of one call, and the sentence that says why."""

from __future__ import annotations

import pytest

from iact.core.gate.judge import Impact, judge_call
from iact.core.gate.policy import ImpactRule, Policy
from iact.core.ports import JSON


@pytest.mark.parametrize(("declared", "live", "level"), [
    (0, False, 0), (0, True, 0), (1, False, 1), (1, True, 2), (2, False, 2), (2, True, 2),
])  # fmt: skip
def test_what_a_function_declares_counts_more_where_something_is_at_stake(
    declared: int, live: bool, level: int
) -> None:
    why = f"t.write declares impact {declared}; here that is {level}."
    assert judge_call("t.write", declared, {}, live=live) == Impact(level, why)


@pytest.mark.parametrize("declared", range(3))
@pytest.mark.parametrize("function", ["t.write", "shell.run"])
@pytest.mark.parametrize(("live", "level"), [(False, 1), (True, 2)])
def test_what_nobody_approved_is_not_understood(declared: int, function: str, live: bool, level: int) -> None:
    got = judge_call(function, declared, {"command": "ls"}, live=live, believed=False)
    assert got == Impact(level, f"Nobody approved the manifest of {function}.")


@pytest.mark.parametrize(
    ("arguments", "live", "level", "why"),
    [
        ({"command": "ls"}, True, 0, "observe: only looks."),
        ({"command": "ls", "language": "bash"}, True, 0, "observe: only looks."),
        ({"command": "rm -rf x"}, False, 1, "destroy: rm -rf x."),
        ({"command": "rm -rf x"}, True, 2, "destroy: rm -rf x."),
        ({"command": "ls", "language": "python"}, False, 1, "unknown: runs python code."),
        ({"command": "ls", "language": "python"}, True, 2, "unknown: runs python code."),
        ({}, False, 1, "The command is no text."),
        ({"command": ["ls"]}, True, 2, "The command is no text."),
        ({"command": "ls", "language": 4}, False, 1, "The command is no text."),
    ],
)
def test_the_shell_is_judged_by_its_script(
    arguments: dict[str, JSON], live: bool, level: int, why: str
) -> None:
    for declared in range(3):
        assert judge_call("shell.run", declared, arguments, live=live) == Impact(level, why)


def test_a_rule_of_the_policy_raises_and_says_so() -> None:
    policy = Policy(impacts=frozenset({
        ImpactRule("t.write", "to", "equals", ("bob",), 1.5),
        ImpactRule("shell.run", "command", "equals", ("ls secret",), 2),
    }))  # fmt: skip
    why = "t.write declares impact 1; here that is 1, raised to 1.5 by a rule of the policy."
    assert judge_call("t.write", 1, {"to": "bob"}, live=False, policy=policy) == Impact(1.5, why)
    assert judge_call("t.write", 1, {"to": "ann"}, live=False, policy=policy).level == 1
    assert judge_call("shell.run", 0, {"command": "ls secret"}, live=False, policy=policy).level == 2
    assert judge_call("shell.run", 0, {"command": "ls other"}, live=False, policy=policy).level == 0


def test_a_rule_about_a_script_knows_what_is_in_reach() -> None:
    rules = frozenset({ImpactRule("t.run", "text", "shell"), ImpactRule("shell.run", "command", "shell")})
    for live, level in ((False, 1), (True, 2)):
        policy = Policy(impacts=rules)
        assert judge_call("t.run", 0, {"text": "rm x"}, live=live, policy=policy).level == level
        assert judge_call("shell.run", 0, {"command": "rm x"}, live=live, policy=policy).level == level


@pytest.mark.parametrize(
    ("background", "impact"),
    [(False, 0), (None, 1), (True, 1), ("false", 1), (0, 1), ("", 1)],
)
@pytest.mark.parametrize("live", [False, True])
def test_a_script_that_runs_on_is_never_a_look(background: JSON, impact: int, live: bool) -> None:
    look = {"command": "ls"}
    assert judge_call("shell.run", 1, look, live=live).level == 0
    assert judge_call("shell.run", 1, {**look, "background": background}, live=live).level == impact
