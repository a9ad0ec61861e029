"""The whole gate: every combination of its variables, the order of its questions, and its laws."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate.gate import (
    Answer,
    CallRequest,
    Denial,
    Question,
    Ticket,
    arguments_digest,
    consider,
    settle,
)
from iact.core.gate.grant import Grant, Scope
from iact.core.gate.policy import CallRate, ImpactRule, Policy, Require, merged
from iact.core.gate.policy_file import policy_from_json, policy_json
from iact.core.gate.provenance import Provenance
from iact.core.ports import JSON

USER = Provenance({"to": frozenset({"user"})})
CLEAN_MODEL = Provenance({"to": frozenset({"model"})})
STRANGE = Provenance({"to": frozenset({"tool:web.fetch"})})
TAINTED = Provenance({"to": frozenset({"user"})}, agent=frozenset({"tool:web.fetch"}))
UNKNOWN = Provenance({"to": frozenset({"no such source"})})
ORIGINS = {"user": USER, "model": CLEAN_MODEL, "tool": STRANGE, "tainted": TAINTED, "unknown": UNKNOWN}
Asked = Literal["not asked", "yes", "no"]


def call(
    *,
    inside: bool = True,
    impact: float = 0,
    intent: int = 2,
    cap: float | None = None,
    provenance: Provenance = USER,
    policy: Policy | None = None,
    arguments: dict[str, JSON] | None = None,
    clearance: bool = False,
) -> Ticket | Denial | Question:
    """One call of `mail.send`."""
    given_arguments: dict[str, JSON] = {"to": "bob"} if arguments is None else arguments
    scope = Scope("s", (("mail.*",) if inside else ("other.*",),), {} if cap is None else {"mail.*": cap})
    return consider(
        CallRequest("/a", "mail.send", arguments_digest(given_arguments, {})),
        impact,
        Grant(scope, intent),
        policy or Policy(),
        arguments=given_arguments,
        provenance=provenance,
        known={"book": frozenset({"ann@example.com"})},
        clearance=clearance,
    )


def expected(
    inside: bool, impact: float, intent: int, cap: float | None, origin: str, clearance: bool, answer: bool
) -> str:
    """The table, written a second time in another way: the first authority that says no, or "allow"."""
    if not inside:
        return "scope"
    if impact > intent or (cap is not None and impact > cap):
        return "impact"
    asks = clearance or (impact >= 2 and origin in ("tool", "tainted", "unknown"))
    return "clearance" if asks and not answer else "allow"


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("intent", range(3))
@pytest.mark.parametrize("cap", [None, 0, 0.5, 1, 1.5, 2])
@pytest.mark.parametrize("origin", ORIGINS)
def test_the_table(inside: bool, intent: int, cap: float | None, origin: str) -> None:
    for impact, clearance, answer in product((0, 0.7, 1, 1.2, 2), (False, True), (True, False)):
        decision = call(
            inside=inside,
            impact=impact,
            intent=intent,
            cap=cap,
            provenance=ORIGINS[origin],
            clearance=clearance,
        )
        if isinstance(decision, Question):
            decision = settle(decision, Answer(answer, "said so"))
        got = decision.by if isinstance(decision, Denial) else "allow"
        assert got == expected(inside, impact, intent, cap, origin, clearance, answer)


@pytest.mark.parametrize("over", [None, CallRate("mail.*", 3, 60)])
@pytest.mark.parametrize("needed", [False, True])
def test_rates_and_functions_that_always_need_clearance(over: CallRate | None, needed: bool) -> None:
    policy = Policy(clearance=frozenset({"mail.*"}) if needed else frozenset())
    decision = consider(
        CallRequest("/a", "mail.send", "d"), 1, Grant(Scope("s", (("mail.*",),)), 1), policy,
        arguments={"to": "bob"}, provenance=CLEAN_MODEL, over=over,
    )  # fmt: skip
    if over is not None:
        assert decision == Denial("rate", 1, "More than 3 calls of mail.* in 60 s.")
    else:
        assert isinstance(decision, Question if needed else Ticket)


@pytest.mark.parametrize(
    ("inside", "impact", "by"), [(False, 1, "scope"), (True, 2, "impact"), (True, 1, "rate")]
)
def test_the_questions_are_asked_in_their_order(inside: bool, impact: float, by: str) -> None:
    """Everything is wrong with the call: the cheapest authority that denies has the word."""
    policy = Policy(requires=frozenset({Require("mail.*", "to", ("book",), otherwise="deny")}))
    decision = consider(
        CallRequest("/a", "mail.send", "d"), impact, Grant(Scope("s", (("mail.*" if inside else "x",),)), 1),
        policy, arguments={"to": "eve"}, provenance=STRANGE, over=CallRate("*", 0, 1), clearance=True,
    )  # fmt: skip
    assert isinstance(decision, Denial)
    assert decision.by == by


@pytest.mark.parametrize("intent", range(3))
def test_functions_for_readers_are_for_agents_of_intent_0(intent: int) -> None:
    decision = call(impact=0, intent=intent, policy=Policy(readers=frozenset({"mail.*"})))
    if intent == 0:
        assert isinstance(decision, Ticket)
    else:
        assert isinstance(decision, Denial)
        assert decision.by == "provenance"


def test_lockdown_comes_first() -> None:
    for inside, impact in product((True, False), range(3)):
        decision = call(inside=inside, impact=impact, policy=Policy(lockdown=True), clearance=True)
        assert isinstance(decision, Denial)
        assert decision.by == "lockdown"


@pytest.mark.parametrize(("inside", "intent"), [(False, 2), (True, 0)])
def test_nobody_is_asked_once_something_cheaper_denies(inside: bool, intent: int) -> None:
    policy = Policy(requires=frozenset({Require("mail.*", "to", within=("book",))}))
    assert isinstance(
        call(inside=inside, impact=1, intent=intent, provenance=STRANGE, policy=policy, clearance=True),
        Denial,
    )


REQUEST = CallRequest("/a", "mail.send", arguments_digest({"to": "bob"}, {}))


def sentences() -> dict[str, tuple[Ticket | Denial | Question, Denial | Question]]:
    """What comes of a call, and what should. Decided within a test, so that it is the test that fails."""
    strict = Policy(requires=frozenset({Require("mail.*", "to", ("book",), otherwise="deny")}))
    asking = Policy(requires=frozenset({Require("mail.*", "to", ("book",))}))
    bare = Policy(requires=frozenset({Require("mail.*", "to")}))
    touched = Provenance({"to": frozenset({"tool:b", "agent:/a", "user"})})
    uncovered = "The argument to of mail.send is not covered: 'bob'."
    needed = "Clearance is needed for mail.send."
    return {
        "lockdown": (
            call(policy=Policy(lockdown=True), impact=1),
            Denial("lockdown", 1, "Everything is locked down."),
        ),
        "readers": (
            call(policy=Policy(readers=frozenset({"mail.*"})), impact=1),
            Denial("provenance", 1, "mail.send is for agents of intent 0 alone."),
        ),
        "an authority asks": (call(clearance=True), Question(REQUEST, 0, "clearance", needed)),
        "the policy asks": (
            call(policy=Policy(clearance=frozenset({"mail.*"})), impact=1.5),
            Question(REQUEST, 1.5, "clearance", needed),
        ),
        "touched": (
            call(provenance=touched, impact=2),
            Question(REQUEST, 2, "provenance", "The call has impact 2 and is touched by agent:/a, tool:b."),
        ),
        "denied": (
            call(policy=strict, provenance=STRANGE, impact=1),
            Denial("provenance", 1, uncovered),
        ),
        "asked": (
            call(policy=asking, provenance=STRANGE, impact=1),
            Question(REQUEST, 1, "provenance", uncovered),
        ),
        "a source": (
            call(policy=bare, provenance=STRANGE, impact=1),
            Question(
                REQUEST, 1, "provenance", "The argument to of mail.send is not covered: 'tool:web.fetch'."
            ),
        ),
    }


@pytest.mark.parametrize("case", sentences())
def test_what_it_says_to_people_is_a_whole_sentence(case: str) -> None:
    decision, says = sentences()[case]
    assert decision == says


def test_a_long_value_is_quoted_in_part() -> None:
    rule = Require("mail.*", "to", ("book",))
    asked = call(policy=Policy(requires=frozenset({rule})), arguments={"to": "x" * 500})
    assert isinstance(asked, Question)
    assert asked.reason == f"The argument to of mail.send is not covered: '{'x' * 120}'."


def test_an_answer_settles_exactly_the_call_that_was_asked_about() -> None:
    question = Question(REQUEST, 1.5, "clearance", "Clearance is needed for mail.send.")
    ticket = settle(question, Answer(True, "fine"))
    assert isinstance(ticket, Ticket)
    assert (ticket.request, ticket.impact) == (REQUEST, 1.5)
    ticket.redeem(REQUEST)
    denied = "Clearance is needed for mail.send. Clearance was denied: not today"
    assert settle(question, Answer(False, "not today")) == Denial("clearance", 1.5, denied)


def test_a_rule_without_sets_takes_what_comes_from_a_trusted_source() -> None:
    rule = frozenset({Require("mail.*", "to")})
    assert isinstance(call(provenance=STRANGE, policy=Policy(requires=rule)), Question)
    trusting = Policy(requires=rule, trusted=frozenset({"tool:web.*"}))
    assert isinstance(call(provenance=STRANGE, policy=trusting), Ticket)


def with_rule(rule: Require, value: JSON, provenance: Provenance) -> str:
    decision = call(
        impact=1, provenance=provenance, policy=Policy(requires=frozenset({rule})), arguments={"to": value}
    )
    return {Ticket: "allow", Question: "ask", Denial: "deny"}[type(decision)]


@pytest.mark.parametrize(
    ("value", "said", "outcome"),
    [
        ("bob@example.com", "write to bob@example.com please", "allow"),
        ("bob@example.com", "write to Bob@Example.com.", "allow"),
        ("bob@example.com", "write to notbob@example.com", "ask"),
        ("bob@example.com", "write to bob@example.com.evil.org", "ask"),
        ("bob@example.co", "write to bob@example.com", "ask"),
        ("ann@example.com", "nothing", "allow"),
        (["ann@example.com", "bob@example.com"], "bob@example.com", "allow"),
        (["ann@example.com", "eve@evil.org"], "bob@example.com", "ask"),
        ({"deep": ["eve@evil.org"]}, "bob@example.com", "ask"),
        ({"eve@evil.org": 1}, "1", "ask"),
        ("", "anything", "allow"),
        (12, "pay 12 euros", "allow"),
        (1200, "pay 12 euros", "ask"),
    ],
)
def test_values_must_be_the_users_or_in_a_named_set(value: JSON, said: str, outcome: str) -> None:
    rule = Require("mail.*", "to", within=("user", "book"))
    assert with_rule(rule, value, Provenance({"to": frozenset({"model"})}, said=(said,))) == outcome
    strict = Require("mail.*", "to", within=("user", "book"), otherwise="deny")
    denied = {"ask": "deny"}.get(outcome, outcome)
    assert with_rule(strict, value, Provenance({"to": frozenset({"model"})}, said=(said,))) == denied


def test_a_variable_that_the_user_wrote_is_the_users() -> None:
    rule = Require("mail.*", "to", within=("user",))
    assert with_rule(rule, "eve@evil.org", USER) == "allow"
    assert with_rule(rule, "eve@evil.org", Provenance({"to": frozenset({"user", "tool:x"})})) == "ask"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("See you at three.", "allow"),
        ("See www.evil.org for more", "ask"),
        ("See https://example.com/page", "allow"),
        ("See https://example.com.evil.org/", "ask"),
        ("Click evil.org/now", "ask"),
        ("Write to eve@evil.org", "ask"),
        ("Pay DE89370400440532013000", "ask"),
    ],
)
def test_links_in_free_text(text: str, outcome: str) -> None:
    rule = Require("mail.*", "to", within=("user",), hosts=("example.com",), links=True)
    assert with_rule(rule, text, CLEAN_MODEL) == outcome


@pytest.mark.parametrize(
    ("labels", "outcome"),
    [
        ({"tool:find"}, "allow"),
        ({"tool:find", "user"}, "allow"),
        ({"user"}, "allow"),
        ({"tool:find", "picked"}, "ask"),
        ({"tool:find", "model"}, "ask"),
        ({"tool:find", "tool:web"}, "ask"),
        ({"model"}, "ask"),
        ({"picked"}, "ask"),
        (set(), "ask"),
    ],
)
def test_values_from_named_sources(labels: set[str], outcome: str) -> None:
    """Found by the user's words alone; not chosen, not read out by a model, and not a literal, though the user wrote it."""
    rule = Require("mail.*", "to", sources=("tool:find",))
    assert with_rule(rule, "13", Provenance({"to": frozenset(labels)}, said=("at 13 o'clock",))) == outcome


def test_a_policy_can_let_the_agent_choose_and_a_tainted_one_still_may_not() -> None:
    rule = Require("mail.*", "to", sources=("tool:find", "picked"))
    chosen = Provenance({"to": frozenset({"tool:find", "picked"})})
    assert with_rule(rule, "13", chosen) == "allow"
    assert with_rule(rule, "13", replace(chosen, agent=frozenset({"tool:web"}))) == "ask"


def test_tools_that_add_nothing_are_not_strange_and_are_not_the_user() -> None:
    found = Provenance({"to": frozenset({"inside:files.read", "user"})})
    assert isinstance(call(impact=2, provenance=found), Ticket)
    assert with_rule(Require("mail.*", "to", within=("user",)), "eve", found) == "ask"


def test_a_policy_names_a_source_whether_or_not_it_reached_anything() -> None:
    rule = Require("mail.*", "to", sources=("tool:files.read",))
    assert with_rule(rule, "eve", Provenance({"to": frozenset({"inside:files.read"})})) == "allow"
    assert with_rule(rule, "eve", Provenance({"to": frozenset({"inside:files.list"})})) == "ask"
    assert with_rule(rule, "eve", Provenance({"to": frozenset({"tool:files.list"})})) == "ask"


def test_trusted_sources_count_as_the_users() -> None:
    policy = Policy(trusted=frozenset({"tool:web.*"}))
    assert isinstance(call(impact=2, provenance=STRANGE, policy=policy), Ticket)
    assert isinstance(call(impact=2, provenance=STRANGE), Question)


# --- laws --------------------------------------------------------------------------------------------------

PATTERNS = st.sampled_from(["*", "mail.*", "mail.send", "files.*", "nothing"])
levels = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0])


def _pairs(pairs: dict[str, float]) -> frozenset[tuple[str, float]]:
    return frozenset(pairs.items())


policies = st.builds(
    Policy,
    names=st.frozensets(st.sampled_from("abc"), max_size=2),
    functions=st.frozensets(PATTERNS, max_size=3),
    caps=st.dictionaries(PATTERNS, levels, max_size=3).map(_pairs),
    trusted=st.frozensets(st.sampled_from(["tool:web.*", "memory"]), max_size=2),
    requires=st.frozensets(
        st.builds(Require, PATTERNS, st.just("to"), st.sampled_from([(), ("user",), ("book",)])), max_size=2
    ),
    impacts=st.frozensets(
        st.builds(ImpactRule, PATTERNS, st.just("to"), st.just("equals"), st.just(("b*",)), levels),
        max_size=2,
    ),
    rates=st.frozensets(st.builds(CallRate, PATTERNS, st.integers(0, 5), st.just(1.0)), max_size=2),
    clearance=st.frozensets(PATTERNS, max_size=2),
    readers=st.frozensets(PATTERNS, max_size=1),
    sets=st.frozensets(st.tuples(st.sampled_from(["book", "list"]), st.sampled_from("xy")), max_size=3),
    remember=st.booleans(),
    lockdown=st.booleans(),
)


@given(policies, policies, policies)
def test_merging_is_commutative_associative_and_idempotent(a: Policy, b: Policy, c: Policy) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(a) == a
    assert merged([a, b, c]) == merged([c, a, b, a])


@given(policies)
def test_a_policy_comes_back_from_a_journal_as_it_was(policy: Policy) -> None:
    assert policy_from_json(json.loads(json.dumps(policy_json(policy)))) == policy


@pytest.mark.parametrize("data", [{}, {"names": ["a"]}, {"names": ["a"], "functions": 1}, "all", 3, ["*"]])
def test_a_malformed_policy_in_a_journal_allows_nothing(data: JSON) -> None:
    assert policy_from_json(data).lockdown


def test_no_policy_allows_nothing() -> None:
    assert not merged([]).scope().contains("mail.send")


def _rank(decision: Ticket | Denial | Question) -> int:
    return {Denial: 0, Question: 1, Ticket: 2}[type(decision)]


@given(policies, st.sampled_from(list(ORIGINS.values())), levels, st.integers(0, 2), st.booleans())
def test_adding_a_denial_never_allows(
    policy: Policy, provenance: Provenance, impact: float, intent: int, clearance: bool
) -> None:
    def outcome(one: Policy) -> int:
        request = CallRequest("/a", "mail.send", "d")
        return _rank(
            consider(
                request, impact, Grant(one.scope(), intent), one,
                arguments={"to": "bob"}, provenance=provenance, clearance=clearance,
            )
        )  # fmt: skip

    before = outcome(policy)
    stricter = [
        Policy(policy.names, policy.functions, policy.caps, policy.trusted, policy.requires, lockdown=True),
        policy.merge(Policy(trusted=policy.trusted, caps=frozenset({("*", 0.0)}))),
        policy.merge(Policy(trusted=policy.trusted, requires=frozenset({Require("*", "to", ("book",))}))),
        policy.merge(Policy(trusted=policy.trusted, clearance=frozenset({"mail.*"}))),
        policy.merge(Policy(trusted=policy.trusted, readers=frozenset({"mail.*"}))),
        policy.merge(Policy()),
    ]
    assert all(outcome(one) <= before for one in stricter)


@given(policies, st.lists(PATTERNS, max_size=3), st.integers(0, 2), st.integers(0, 2), levels)
def test_what_a_child_may_its_parent_may(
    policy: Policy, patterns: list[str], intent: int, narrowed: int, impact: float
) -> None:
    """But for what is kept for readers: that a caller must leave to a child of intent 0 is a duty, not a power."""
    policy = replace(policy, readers=frozenset())
    parent = Grant(policy.scope(), intent)
    child = parent.narrow(patterns=patterns, intent=narrowed)

    def outcome(grant: Grant) -> int:
        return _rank(
            consider(
                CallRequest("/a", "mail.send", "d"),
                impact,
                grant,
                policy,
                arguments={},
                provenance=CLEAN_MODEL,
            )
        )

    assert outcome(child) <= outcome(parent)
