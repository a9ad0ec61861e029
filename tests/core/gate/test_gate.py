"""The gate, over all combinations of its variables, and the laws of grants and tickets."""

from __future__ import annotations

import copy
import json
import pickle
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate import CallRequest, Denial, Grant, Scope, Ticket, TicketError, arguments_digest, decide
from iact.core.ports import JSON

FUNCTIONS = ["files.read", "files.write", "shell.run", "web.fetch", "x.files.read"]
PATTERNS = [
    "*",
    "files.*",
    "files.read",
    "shell.*",
    "*.run",
    "web.fetch",
    "nothing.*",
    "",
    "[fw]*",
    "files.?ead",
]
ARGUMENTS = arguments_digest({}, {})


def request(function: str = "files.read", agent: str = "/a") -> CallRequest:
    return CallRequest(agent, function, ARGUMENTS)


scopes = st.builds(
    Scope,
    st.text(max_size=5),
    st.lists(st.lists(st.sampled_from(PATTERNS), max_size=3).map(tuple), max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(PATTERNS), st.integers(-1, 3), max_size=3),
)
grants = st.builds(Grant, scopes, st.integers(-1, 3), st.text(max_size=5))


def allowed(grant: Grant) -> set[tuple[str, int]]:
    """Every function and impact that `grant` lets through."""
    return {
        (function, impact)
        for function, impact in product(FUNCTIONS, range(3))
        if isinstance(decide(request(function), impact, grant), Ticket)
    }


@pytest.mark.parametrize("impact", range(3))
@pytest.mark.parametrize("intent", range(3))
@pytest.mark.parametrize("cap", [None, 0, 1, 2])
@pytest.mark.parametrize(
    "allow", [("*",), ("files.*",), ("shell.*",), ()], ids=lambda allow: "+".join(allow) or "none"
)
def test_every_combination(allow: tuple[str, ...], cap: int | None, intent: int, impact: int) -> None:
    caps = {} if cap is None else {"files.*": cap}
    answer = decide(request(), impact, Grant(Scope("s", (allow,), caps), intent))
    in_scope = allow in (("*",), ("files.*",))
    limit = min(intent, 2 if cap is None else cap)
    if in_scope and impact <= limit:
        assert isinstance(answer, Ticket)
        assert (answer.request, answer.impact) == (request(), impact)
    else:
        assert isinstance(answer, Denial)
        assert (answer.by, answer.impact) == ("impact" if in_scope else "scope", impact)


@pytest.mark.parametrize(
    ("grant", "impact", "reason"),
    [
        (Grant(Scope("web", (("web.*",),)), 2), 0, "files.read is not in the scope “web”."),
        (Grant(Scope("all", (("*",),)), 0), 1, "The call has impact 1, and the intent is 0."),
        (Grant(Scope("all", (("*",),), {"*": 1}), 2), 2, "The call has impact 2, and its cap is 1."),
        (Grant(Scope("all", (("*",),), {"*": 1}), 1), 2, "The call has impact 2, and the intent is 1."),
    ],
)
def test_a_denial_says_why(grant: Grant, impact: int, reason: str) -> None:
    answer = decide(request(), impact, grant)
    assert isinstance(answer, Denial)
    assert answer.reason == reason


@pytest.mark.parametrize(
    ("patterns", "function", "inside"),
    [
        ((("*",),), "files.read", True),
        ((("files.*",),), "files.read", True),
        ((("files.*",),), "x.files.read", False),
        ((("files.*", "shell.run"),), "shell.run", True),
        ((("files.*",), ("*.read",)), "files.read", True),
        ((("files.*",), ("*.read",)), "files.write", False),
        ((("FILES.*",),), "files.read", False),
        (((),), "files.read", False),
        ((), "files.read", False),
    ],
)
def test_what_a_scope_contains(patterns: tuple[tuple[str, ...], ...], function: str, inside: bool) -> None:
    assert Scope("s", patterns).contains(function) is inside


def test_the_smallest_cap_that_matches_counts() -> None:
    scope = Scope("s", (("*",),), {"*": 2, "files.*": 1, "files.write": 0})
    assert [scope.cap(function) for function in FUNCTIONS] == [1, 0, 2, 2, 2]


@given(grants, st.none() | st.lists(st.sampled_from(PATTERNS), max_size=3), st.none() | st.integers(-5, 5))
def test_a_child_may_do_no_more_than_its_parent(
    grant: Grant, patterns: list[str] | None, intent: int | None
) -> None:
    child = grant.narrow(patterns=patterns, intent=intent)
    assert allowed(child) <= allowed(grant)
    assert child.user == grant.user
    if patterns is not None:
        assert all(any(Scope("", ((one,),)).contains(name) for one in patterns) for name, _ in allowed(child))
    if intent is not None:
        assert all(impact <= intent for _, impact in allowed(child))


@given(
    grants,
    st.lists(st.tuples(st.lists(st.sampled_from(PATTERNS), max_size=2), st.integers(0, 2)), max_size=4),
)
def test_grandchildren_shrink_in_any_order(grant: Grant, steps: list[tuple[list[str], int]]) -> None:
    there, back = grant, grant
    for patterns, intent in steps:
        there = there.narrow(patterns=patterns, intent=intent)
    for patterns, intent in reversed(steps):
        back = back.narrow(patterns=patterns, intent=intent)
    assert allowed(there) == allowed(back) <= allowed(grant)


@given(grants, st.sampled_from(PATTERNS), st.integers(-1, 2))
def test_a_further_cap_never_allows_more(grant: Grant, pattern: str, cap: int) -> None:
    caps = dict(grant.scope.caps)
    caps[pattern] = min(cap, caps.get(pattern, cap))
    assert allowed(Grant(Scope(grant.scope.name, grant.scope.allow, caps), grant.intent)) <= allowed(grant)


@given(grants)
def test_more_impact_is_never_easier(grant: Grant) -> None:
    for function in FUNCTIONS:
        answers = [isinstance(decide(request(function), impact, grant), Ticket) for impact in range(3)]
        assert answers == sorted(answers, reverse=True)


@given(grants)
def test_a_grant_comes_back_from_a_journal_as_it_was(grant: Grant) -> None:
    assert Grant.of(grant.terms()) == grant


def test_nothing_granted_allows_nothing() -> None:
    assert allowed(Grant.none()) == set()


def test_a_grant_without_anything_has_the_names_of_nothing() -> None:
    assert Grant.none() == Grant(Scope("none", ((),)), 0, "local")


def test_a_single_pattern_given_as_text_is_one_pattern() -> None:
    grant = Grant(Scope("s", (("*",),)), 2).narrow(patterns="files.*")
    assert {function for function, _ in allowed(grant)} == {"files.read", "files.write"}


def ticket() -> Ticket:
    found = decide(request(), 0, Grant(Scope("s", (("*",),)), 0))
    assert isinstance(found, Ticket)
    return found


def test_a_ticket_is_good_once() -> None:
    one = ticket()
    one.redeem(request())
    with pytest.raises(TicketError, match="used before"):
        one.redeem(request())


@pytest.mark.parametrize(
    "other",
    [
        request("files.write"),
        request(agent="/b"),
        CallRequest("/a", "files.read", arguments_digest({"x": 1}, {})),
    ],
    ids=["function", "agent", "arguments"],
)
def test_a_ticket_is_good_for_its_call_only(other: CallRequest) -> None:
    one = ticket()
    with pytest.raises(TicketError, match="another call"):
        one.redeem(other)
    one.redeem(request())


def test_only_the_gate_makes_tickets() -> None:
    with pytest.raises(TicketError, match=r"^Only the gate makes tickets\.$"):
        Ticket(object(), request(), 0, "work", layer=False)
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TicketError, match="can't be copied"):
            again(ticket())


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.dictionaries(st.text(max_size=2), values, max_size=2),
    st.dictionaries(st.text(max_size=2), values, max_size=2),
)
def test_different_arguments_have_different_digests(one: dict[str, JSON], other: dict[str, JSON]) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (arguments_digest(one, {}) == arguments_digest(other, {})) is same


def test_the_digest_ignores_order_and_tells_values_from_variables() -> None:
    assert arguments_digest({"a": 1, "b": 2}, {}) == arguments_digest({"b": 2, "a": 1}, {})
    assert arguments_digest({"a": "x"}, {}) != arguments_digest({}, {"a": "x"})
    assert arguments_digest({"a": 1}, {}) != arguments_digest({"a": True}, {})
    assert arguments_digest({"a": "\ud800"}, {})


def test_the_digest_of_a_call_is_the_same_for_ever() -> None:
    digest = "b037e754c9296b2eb6d2d942b1411e8fa7910e4d531618506a3b886fadcaa942"
    assert arguments_digest({"b": "é", "a": [1, {"c": None}]}, {"x": "0000"}) == digest


@pytest.mark.parametrize(
    ("impact", "intent", "held", "right"),
    [
        (0, 0, False, "look"), (0, 0, True, "look"), (0, 2, False, "look"), (0, 1, True, "work"), (0, 0.5, True, "work"),
        (0.1, 1, False, "work"), (1, 1, False, "work"), (1, 1, True, "work"), (2, 2, False, "work"),
    ],
)  # fmt: skip
def test_a_ticket_says_whether_the_call_may_write(
    impact: float, intent: float, held: bool, right: str
) -> None:
    grant = Grant(Scope("s", (("*",),)), intent)
    ticket = decide(request(), impact, grant, held=held)
    assert isinstance(ticket, Ticket)
    assert ticket.right == right
