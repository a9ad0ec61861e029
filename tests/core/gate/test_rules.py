"""What the impact rules make of arguments at their edges, each in one line."""

from __future__ import annotations

import pytest

from iact.core.gate.policy import ImpactRule, Policy, RuleKind
from iact.core.gate.rules import call_impact, host_of, inside, method_impact, sql_impact, texts_of
from iact.core.ports import JSON


@pytest.mark.parametrize(
    ("statement", "impact"),
    [
        ("select'a'", 0),
        ("select/* x */1", 0),
        ("select 1 -- what it is for", 0),
        ("SELECT 'a' -- x", 2),
        ("SELECT 'a' /* x */", 2),
        ("select 1 -- '", 2),
        ("select 'it''s'", 0),
        ("select 1; frobnicate t", 2),
        (";;", 2),
        ("insert into t values (1) on conflict nothing", 2),
        ("INSERT INTO t VALUES (1) ON DUPLICATE KEY", 2),
        ("insert into t select a from u where b or c", 2),
        ("insert into t values ('on conflict')", 1),
    ],
)
def test_sql(statement: str, impact: float) -> None:
    assert sql_impact(statement) == impact


@pytest.mark.parametrize("method", ["GET", "head", "Options"])
def test_methods_that_only_read(method: str) -> None:
    assert method_impact(method) == 0


@pytest.mark.parametrize("method", ["POST", "delete", "TRACE", "", "GET "])
def test_all_other_methods(method: str) -> None:
    assert method_impact(method) == 2


@pytest.mark.parametrize(
    ("path", "roots", "low"),
    [
        ("//workspace/a", ("/workspace",), True),
        ("..", (".",), False),
        ("../", (".",), False),
        ("..a", (".",), True),
        ("/workspace", ("/workspace/",), True),
        ("/workspace/a", ("/workspace/",), True),
        ("/workspaces", ("/workspace/",), False),
        ("/etc", ("/",), True),
        ("/data", ("/dataX",), False),
        ("/data/a", ("/dataX/",), False),
        ("a", ("/workspace",), False),
        ("a", (), False),
    ],
)
def test_paths(path: str, roots: tuple[str, ...], low: bool) -> None:
    assert inside(path, roots) is low


@pytest.mark.parametrize("scheme", ["http", "https", "ws", "wss", "ftp", "ssh"])
def test_schemes_with_a_host(scheme: str) -> None:
    assert host_of(f"{scheme}://a.example/x") == "a.example"


@pytest.mark.parametrize(
    ("value", "host"),
    [
        ("https://A.Example./", "a.example"),
        ("https://a.example/~ann", "a.example"),
        ("https://a.example:1/", "a.example"),
        ("https://a.example:65535/", "a.example"),
        ("https://a.example:0/", None),
        ("https://a.example:65536/", None),
        ("https://a.example:x/", None),
        ("https://ann@a.example/", None),
        ("gopher://a.example/", None),
        ("https:///x", None),
        ("https://a.example/x y", None),
        ("https://a.example/x\ty", None),
        ("https://a.example/x\\y", None),
        ("https://a.example/\0", None),
        ("https://a.example/\x7f", None),
        ("https://a.example/é", None),
        ("Ann@Example.COM", "example.com"),
        ("Example.COM", "example.com"),
        ("a", "a"),
        ("-a.example", None),
        ("a.example/x", None),
        ("ann@", None),
    ],
)
def test_hosts(value: str, host: str | None) -> None:
    assert host_of(value) == host


def test_every_text_of_a_value_is_found_at_any_depth() -> None:
    value: JSON = {"a": ["x", None, {"b": [True, 2, 1.5, ["y"]]}], "c": "z"}
    assert sorted(texts_of(value)) == ["1.5", "2", "a", "b", "c", "x", "y", "z"]
    assert texts_of(None) == texts_of(True) == texts_of([]) == []


KINDS: dict[RuleKind, tuple[tuple[str, ...], JSON]] = {
    "method": ((), "GET"),
    "sql": ((), "select 1"),
    "shell": ((), "ls"),
    "path": (("/workspace",), ["/workspace/a", "/workspace/b"]),
    "host": (("a.example",), "https://a.example/"),
    "equals": (("adm*",), "user"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_harmless_or_empty_raises_nothing(kind: RuleKind) -> None:
    values, harmless = KINDS[kind]
    policy = Policy(impacts=frozenset({ImpactRule("f", "x", kind, values)}))
    for value in (harmless, None, []):
        assert call_impact(policy, "f", 0, {"x": value}) == 0
    assert call_impact(policy, "f", 0, {"y": "other"}) == 0


@pytest.mark.parametrize(("live", "impact"), [(False, 1), (True, 2)])
def test_a_script_counts_by_what_is_in_its_reach(live: bool, impact: float) -> None:
    policy = Policy(impacts=frozenset({ImpactRule("f", "x", "shell")}))
    assert call_impact(policy, "f", 0, {"x": ["ls", "rm -r x"]}, live=live) == impact
