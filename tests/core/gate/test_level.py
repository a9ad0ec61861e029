"""Intents have room between the three named levels: in the decision, in grants, in policies, and after a restart."""

from __future__ import annotations

import json
import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import UsageError
from iact.core.gate import CallRequest, Denial, Grant, Scope, decide
from iact.core.gate.level import NAMED, level
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json

LEVELS = (0, 0.25, 0.5, 1, 1.4, 1.5, 1.75, 2)
TEXT = """
[levels]
publish = 1.5

[scope.default]
functions = ["*"]
caps = { "mail.send" = "publish", "files.*" = 0.5 }

[[scope.default.impact]]
function = "blog.*"
parameter = "draft"
kind = "equals"
values = ["no"]
impact = "publish"
"""


@pytest.mark.parametrize(
    ("value", "found"), [(0, 0), (1.5, 1.5), ("2", 2), ("1.25", 1.25), ("operate", 1), ("publish", 1.5)]
)
def test_a_level_is_a_number_or_a_name(value: float | str, found: float) -> None:
    assert level(value, {"publish": 1.5}) == found


@pytest.mark.parametrize(
    "value", [-0.1, 2.1, math.nan, math.inf, "nan", "inf", "two", "", "1,5", True, "publish"]
)
def test_nothing_else_is(value: float | str) -> None:
    with pytest.raises(UsageError, match="a number from 0 to 2, or one of observe, operate, override"):
        level(value, {})


@pytest.mark.parametrize("cap", [None, *LEVELS])
def test_the_table_between_the_levels(cap: float | None) -> None:
    scope = Scope("s", (("t.*",),), {} if cap is None else {"t.*": cap})
    for impact, intent in product(LEVELS, LEVELS):
        decision = decide(CallRequest("/", "t.do", "d"), impact, Grant(scope, intent))
        assert isinstance(decision, Denial) == (impact > min(intent, 2 if cap is None else cap))


@given(st.sampled_from(LEVELS), st.sampled_from(LEVELS), st.sampled_from(LEVELS))
def test_a_child_has_no_more_intent_than_its_parent(mine: float, first: float, second: float) -> None:
    grant = Grant(Scope("s", (("*",),)), mine)
    child = grant.narrow(intent=first).narrow(intent=second)
    assert child.intent == min(mine, first, second)


@given(st.sampled_from(LEVELS))
def test_a_grant_between_the_levels_comes_back_from_a_journal(intent: float) -> None:
    grant = Grant(Scope("s", (("*",),)), intent)
    assert Grant.of(grant.terms()) == grant


def test_a_policy_names_levels_for_intents_caps_and_impacts() -> None:
    policy = Policies.from_toml(TEXT).named(["default"])
    assert dict(policy.levels) == {"publish": 1.5}
    assert dict(policy.caps) == {"mail.send": 1.5, "files.*": 0.5}
    assert [one.impact for one in policy.impacts] == [1.5]
    assert policy_from_json(json.loads(json.dumps(policy_json(policy)))) == policy


def test_levels_are_there_where_the_file_has_no_scope() -> None:
    assert dict(Policies.from_toml("[levels]\npublish = 1.5").chosen("default").levels) == {"publish": 1.5}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[levels]\nobserve = 0.5", "levels"),
        ("[levels]\nhuge = 3", "levels.huge"),
        ("[levels]\nnone = 0", "levels.none"),
        ('[levels]\nx = "1"\n[scope.default]\nfunctions = ["*"]\ncaps = { "*" = "y" }', "scope.default.caps"),
        ('[scope.default]\nfunctions = ["*"]\ncaps = { "*" = "publish" }', "scope.default.caps"),
    ],
)
def test_a_wrong_level_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(UsageError, match=place):
        Policies.from_toml(text)


def test_the_three_levels_that_there_always_are() -> None:
    assert dict(NAMED) == {"observe": 0, "operate": 1, "override": 2}
