"""Which argument a question names: the one that decides, by the policy's rank and else by what the argument says."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.gate.decisive_argument import Kind, kind_of
from iact.core.gate.gate import CallRequest, Denial, Question, Ticket, arguments_digest, consider
from iact.core.gate.grant import Grant
from iact.core.gate.policy import Policy, Require
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json
from iact.core.gate.provenance import Provenance
from iact.core.ports import JSON

PAY: dict[str, JSON] = {"amount": 20, "recipient": "GB11EVIL00000000001", "subject": "rent"}
RULES = frozenset(Require("bank.pay", name, ("user",)) for name in PAY)


@pytest.mark.parametrize(
    ("parameter", "value", "kind"),
    [
        ("recipients", ["x"], Kind.WHO),
        ("new_owner_email", "x", Kind.WHO),
        ("collaboratorEmail", "x", Kind.WHO),
        ("cc", [], Kind.WHO),
        ("url", "bob@example.com", Kind.WHERE),
        ("local_path", "x", Kind.WHERE),
        ("amount", "20", Kind.HOW_MUCH),
        ("x", "bob@example.com", Kind.WHO),
        ("x", "DE89370400440532013000", Kind.WHO),
        ("x", "https://example.com/a", Kind.WHERE),
        ("x", "/etc/passwd", Kind.WHERE),
        ("x", 20.5, Kind.HOW_MUCH),
        ("x", ["words", {"deep": "bob@example.com"}], Kind.WHO),
        ("subject", "rent for May", Kind.OTHER),
        ("x", None, Kind.OTHER),
        ("", "", Kind.OTHER),
    ],
)
def test_an_argument_says_who_where_or_how_much(parameter: str, value: JSON, kind: Kind) -> None:
    assert kind_of(parameter, value) is kind


def pay(
    policy: Policy, said: str = "", arguments: dict[str, JSON] | None = None
) -> Ticket | Denial | Question:
    made: dict[str, JSON] = {**PAY} if arguments is None else arguments
    labels = dict.fromkeys(made, frozenset({"model"}))
    return consider(
        CallRequest("/", "bank.pay", arguments_digest(made, {})), 2, Grant(policy.scope(), 2), policy,
        arguments=made, provenance=Provenance(labels, frozenset({"tool:mail.read"}), said=(said,)),
    )  # fmt: skip


def policy(rules: frozenset[Require] = RULES, questions: int = 1) -> Policy:
    trusted = frozenset({"tool:*"})
    return Policy(frozenset({"s"}), frozenset({"*"}), requires=rules, trusted=trusted, questions=questions)


def test_a_payment_to_a_stranger_names_the_stranger_and_where_the_account_comes_from() -> None:
    asked = pay(policy())
    assert isinstance(asked, Question)
    assert "who gets it: 'GB11EVIL00000000001', recipient of bank.pay" in asked.reason
    assert asked.reason.endswith("from model, tool:mail.read.")


def test_what_the_user_wrote_is_no_longer_named() -> None:
    asked = pay(policy(), said="Pay GB11EVIL00000000001.")
    assert isinstance(asked, Question)
    assert "how much it is: '20', amount of bank.pay" in asked.reason


def test_the_policys_rank_comes_before_what_arguments_say() -> None:
    ranked = frozenset(
        dataclasses.replace(one, rank=1) if one.parameter == "subject" else one for one in RULES
    )
    asked = pay(policy(ranked))
    assert isinstance(asked, Question)
    assert "subject of bank.pay" in asked.reason


def test_a_rule_that_denies_comes_before_all_that_ask() -> None:
    strict = frozenset(
        dataclasses.replace(one, otherwise="deny") if one.parameter == "subject" else one for one in RULES
    )
    assert isinstance(pay(policy(strict)), Denial)


def test_a_journal_from_before_is_asked_again_in_its_own_words() -> None:
    stored = policy_json(policy(questions=0))
    assert isinstance(stored, dict)
    assert "questions" not in stored
    asked = pay(policy_from_json(stored))
    assert isinstance(asked, Question)
    assert asked.reason == "The argument amount of bank.pay is not covered: '20'."


def test_a_file_asks_in_the_newest_words_and_a_journal_keeps_that() -> None:
    text = '[scope.s]\nfunctions = ["*"]\n[[scope.s.require]]\nfunction = "bank.pay"\nparameter = "to"\nrank = 3\n'
    read = Policies.from_toml(text).named(["s"])
    assert read.questions == 2
    assert policy_from_json(policy_json(read)) == read


WORDS = st.sampled_from(["GB11EVIL00000000001", "20", "rent", "eve@evil.example", "/etc", ""])


@given(
    st.dictionaries(st.sampled_from(["amount", "recipient", "subject", "url"]), WORDS),
    st.lists(
        st.tuples(
            st.sampled_from(["amount", "recipient", "subject", "url"]), st.booleans(), st.integers(0, 3)
        )
    ),
    WORDS,
)
def test_the_order_changes_what_is_said_and_never_lets_more_through(
    arguments: dict[str, JSON], rules: list[tuple[str, bool, int]], said: str
) -> None:
    """An attacker who chooses arguments, rules and what the user wrote gains nothing by how questions are ordered."""
    made = frozenset(
        Require("bank.pay", name, ("user",), otherwise="deny" if deny else "ask", rank=rank)
        for name, deny, rank in rules
    )
    before = pay(policy(made, questions=0), said, arguments)
    now = pay(policy(made), said, arguments)
    assert isinstance(before, Ticket) == isinstance(now, Ticket)
    assert not (isinstance(before, Denial) and isinstance(now, Question))
