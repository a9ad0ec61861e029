"""What becomes of a question that nobody is there to answer: the strictest rule counts, and no splitting helps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import UsageError
from iact.core.gate.nobody import Spent, spend, unattended
from iact.core.gate.policy import Nobody, Policy, Then
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json
from iact.core.ports import JSON

PAY = Nobody("bank.*", "allow", "amount", 20, "hold")
HEAD = '[scope.default]\nfunctions = ["*"]\n[[scope.default.nobody]]\nfunction = "bank.pay"\n'


def policy(*rules: Nobody) -> Policy:
    return Policy(nobody=frozenset(rules))


def says(rules: Policy, amount: JSON, spent: Spent | None = None) -> Then | None:
    return unattended(rules, "bank.pay", {"amount": amount}, spent or {})


def test_without_a_rule_it_waits_as_ever() -> None:
    assert says(policy(), 1) is None
    assert unattended(policy(PAY), "mail.send", {"amount": 1}, {}) is None


@pytest.mark.parametrize(
    ("amount", "then"),
    [
        (0, "allow"), (19.99, "allow"), (20, "hold"), (1e300, "hold"), (-1, "hold"), (True, "hold"), ("5", "hold"),
        (float("nan"), "hold"), (float("inf"), "hold"), (None, "hold"), ([5], "hold"), ({"amount": 5}, "hold"),
    ],
)  # fmt: skip
def test_only_a_plain_number_below_the_amount_is_allowed(amount: JSON, then: Then) -> None:
    assert says(policy(PAY), amount) == then


def test_an_amount_that_is_not_there_is_not_allowed() -> None:
    assert unattended(policy(PAY), "bank.pay", {"sum": 1}, {}) == "hold"


@given(st.lists(st.floats(min_value=0, max_value=30) | st.integers(0, 30), max_size=40))
def test_an_attacker_who_splits_a_payment_gets_no_more(amounts: Sequence[float]) -> None:
    rules, spent, paid = policy(PAY), dict[Nobody, Fraction](), Fraction(0)
    for amount in amounts:
        if says(rules, amount, spent) == "allow":
            spent = dict(spend(rules, "bank.pay", {"amount": amount}, spent))
            paid += Fraction(amount)
    assert paid < 20


def test_another_function_of_the_same_rule_spends_from_the_same_amount() -> None:
    rules = policy(PAY)
    spent = spend(rules, "bank.transfer", {"amount": 19}, {})
    assert says(rules, 1, spent) == "hold"


@given(st.sets(st.sampled_from([PAY, Nobody("*", "hold"), Nobody("bank.pay", "deny")])), st.integers(0, 40))
def test_the_strictest_rule_counts_and_a_merge_lets_nothing_more_through(
    rules: set[Nobody], amount: int
) -> None:
    order = ("deny", "hold", "allow", None)
    alone = [says(policy(one), amount) for one in rules]
    merged = Policy()
    for one in rules:
        merged = merged.merge(policy(one))
    assert says(merged, amount) == min([*alone, None], key=order.index)


def test_it_is_read_from_a_file_and_from_a_journal() -> None:
    text = f'{HEAD}then = "allow"\nparameter = "amount"\nbelow = 20\notherwise = "hold"\n'
    read = Policies.from_toml(text).chosen("default")
    assert read.nobody == {Nobody("bank.pay", "allow", "amount", 20, "hold")}
    assert policy_from_json(policy_json(read)) == read


@pytest.mark.parametrize(
    "rest",
    [
        'then = "allow"',
        'then = "allow"\nparameter = "amount"',
        'then = "hold"\nbelow = 3',
        'then = "perhaps"',
    ],
)
def test_a_rule_that_says_too_little_or_too_much_is_refused(rest: str) -> None:
    with pytest.raises(UsageError, match=r"scope\.default\.nobody\.0"):
        Policies.from_toml(f"{HEAD}{rest}\n")
