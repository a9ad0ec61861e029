"""Rules about hosts: how they are written, and what they cover."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import UsageError
from iact.core.gate.hosts import allows, covers, host_rule, lists_of, rules_of
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (" Docs.Python.ORG. ", "docs.python.org"), ("*.debian.org", "*.debian.org"), ("*", "*"),
        ("x.example:8443", "x.example:8443"), ("bücher.example", "xn--bcher-kva.example"),
        ("[2001:DB8::1]:443", "[2001:db8::1]:443"), ("93.184.216.34", "93.184.216.34"),
    ],
)  # fmt: skip
def test_a_rule_is_written_in_one_way(text: str, rule: str) -> None:
    assert host_rule(text) == rule
    assert host_rule(rule) == rule


@pytest.mark.parametrize(
    "text",
    ["", "http://x.example", "x.example/path", "a b", "*.*.x", "x*.example", "**", "*:443", "x:0", "x:70000", "-x",
     "x..y", "user@x.example", "x.example:443:443", "[::1", "a" * 300],
)  # fmt: skip
def test_what_is_no_host_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(UsageError, match=r"Write docs\.python\.org"):
        host_rule(text)


@pytest.mark.parametrize(
    ("rule", "host", "port", "does"),
    [
        ("x.example", "x.example", 443, True), ("x.example", "x.example", 80, True),
        ("x.example", "x.example", 22, False), ("x.example", "y.x.example", 443, False),
        ("x.example:22", "x.example", 22, True), ("x.example:22", "x.example", 443, False),
        ("*.x.example", "a.b.x.example", 443, True), ("*.x.example", "x.example", 443, False),
        ("*.x.example", "evilx.example", 443, False), ("*.x.example", ".x.example", 443, False),
        ("*.34", "93.184.216.34", 443, False), ("*", "anything.example", 22, True),
        ("[2001:db8::1]", "2001:db8::1", 443, True), ("10.0.0.1", "10.0.0.1", 80, True),
    ],
)  # fmt: skip
def test_a_rule_covers_what_it_says_and_nothing_else(rule: str, host: str, port: int, does: bool) -> None:
    assert covers(rule, host, port) is does
    assert allows({("web", rule)}, "web", host, port) is does
    assert not allows({("web", rule)}, "shell", host, port)


@given(st.text(max_size=40), st.integers(1, 65535))
def test_a_rule_that_can_be_written_covers_no_other_host(text: str, port: int) -> None:
    try:
        rule = host_rule(text)
    except UsageError:
        return
    assert rule == "*" or not covers(rule, "unlikely.host.example.org", port) or rule.endswith("example.org")


def test_lists_of_a_policy_merge_and_go_through_a_journal() -> None:
    policies = Policies.from_toml(
        '[scope.a]\nfunctions=["*"]\negress={ web=["A.example"] }\n'
        '[scope.b]\nfunctions=["*"]\negress={ web=["*.b.example"], shell=["*"] }\n'
    )
    both = policies.chosen("a+b")
    assert lists_of(both.egress) == {"shell": ("*",), "web": ("*.b.example", "a.example")}
    assert policy_from_json(policy_json(both)) == both
    assert rules_of(lists_of(both.egress)) == both.egress


def test_a_policy_with_what_is_no_host_says_where() -> None:
    with pytest.raises(UsageError, match=r"wrong at scope\.a\.egress\.web\.0: .*is not a host"):
        Policies.from_toml('[scope.a]\nfunctions=["*"]\n[scope.a.egress]\nweb=["https://x"]\n')
