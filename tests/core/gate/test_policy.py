"""Policy files, impact rules, rates, provenance and the delay of denials."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import UsageError
from iact.core.gate.delay import Delays
from iact.core.gate.gate import CallRequest, Denial, Question, Ticket, consider, decide
from iact.core.gate.grant import Grant
from iact.core.gate.policy import CallRate, ImpactRule, Policy
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json
from iact.core.gate.provenance import Provenance, declassify, join, untrusted
from iact.core.gate.rate import Tally
from iact.core.gate.rules import call_impact, host_allowed, inside, sql_impact
from iact.core.ports import JSON

TEXT = """
[scope.office]
functions = ["mail.*", "files.read"]
caps = { "mail.*" = 2, "files.*" = 0.5 }
trusted = ["tool:files.*"]
[[scope.office.require]]
function = "mail.send"
parameter = "recipients"
within = ["user", "address-book"]
otherwise = "deny"
[[scope.office.impact]]
function = "http.request"
parameter = "method"
kind = "method"
[[scope.office.rate]]
function = "mail.*"
calls = 10
per = 60.0
[scope.web]
functions = ["web.*"]
caps = { "mail.*" = 1 }
"""


def test_a_policy_file_is_read_and_its_scopes_merge() -> None:
    policy = Policies.from_toml(TEXT).named(["office", "web"])
    scope = policy.scope()
    assert scope.name == "office+web"
    assert [scope.contains(one) for one in ("mail.send", "files.read", "web.get", "files.write")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert (scope.cap("mail.send"), scope.cap("files.read"), scope.cap("web.get")) == (1, 0.5, 2)
    assert policy.requires_of("mail.send")[0].otherwise == "deny"
    assert policy.rates_of("mail.send")[0].calls == 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[scope", "not valid TOML"),
        ("[scope.a]\nfunctions = 1", "scope.a.functions"),
        ("[scope.a]\nfunctions = ['x']\ncaps = { x = 9 }", "caps"),
        ("[scope.a]\nfunctions = ['x']\ncaps = { x = nan }", "caps"),
        ("[scope.a]\nfunctions = ['x']\nallow_all = true", "allow_all"),
        ("[scope.A]\nfunctions = ['x']", "scope"),
        ("lockdown = 'maybe'", "lockdown"),
        (
            "[scope.a]\nfunctions = ['x']\n[[scope.a.plan]]\nfunction = 'x'\nset = { y = 1 }",
            "one of `error`, `when` and `auto`",
        ),
        (
            "[scope.a]\nfunctions = ['x']\n[[scope.a.plan]]\nfunction = 'x'\nerror = 'e'\nskip = true",
            "`skip` goes with `when`",
        ),
        (
            "[scope.a]\nfunctions = ['x']\n[[scope.a.plan]]\nfunction = 'x'\nwhen = 'true'",
            "has `set`, or `skip`",
        ),
    ],
)
def test_a_wrong_policy_file_is_refused_with_the_place(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Policies.from_toml(text)


def test_an_unknown_scope_is_refused() -> None:
    with pytest.raises(UsageError, match="office, web"):
        Policies.from_toml(TEXT).named(["officer"])


@pytest.mark.parametrize(
    ("statement", "impact"),
    [
        ("SELECT * FROM t", 0),
        ("select a, b from t where c = 'drop table x'", 0),
        ("SELECT 1; SELECT 2", 0),
        ("explain select 1", 0),
        ("INSERT INTO t VALUES (1, 'x')", 1),
        ("insert into t select * from u", 1),
        ("", 2),
        ("UPDATE t SET a = 1", 2),
        ("DELETE FROM t", 2),
        ("SELECT 1; DROP TABLE t", 2),
        ("SELECT * INTO u FROM t", 2),
        ("select pg_terminate_backend(1)", 2),
        ("select load_file('x')", 2),
        ("WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x", 2),
        ("EXPLAIN ANALYZE DELETE FROM t", 2),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO UPDATE SET a = 1", 2),
        ("INSERT OR REPLACE INTO t VALUES (1)", 2),
        ("SELECT /*!50000 1 */", 2),
        ("SELECT 'a\\'; DROP TABLE t; --'", 2),
        ("SELECT $$x$$", 2),
        ("SELECT '' -- '\n; DROP TABLE t", 2),
        ("SELECT 'x", 2),
        ("PRAGMA writable_schema = 1", 2),
        ("COPY t TO PROGRAM 'sh'", 2),
        ("GRANT ALL ON t TO u", 2),
        ('SELECT "x"', 2),
    ],
)
def test_sql(statement: str, impact: float) -> None:
    assert sql_impact(statement) == impact


@given(st.text(max_size=40), st.sampled_from(["drop table t", "delete from t", "update t set a=1"]))
def test_no_text_before_it_hides_a_statement(text: str, statement: str) -> None:
    if "'" not in text and "--" not in text and "/*" not in text:
        assert sql_impact(f"select 1 {text}; {statement}") == 2


@pytest.mark.parametrize(
    ("path", "low"),
    [
        ("/workspace/a.txt", True),
        ("/workspace", True),
        ("/workspace/../etc/passwd", False),
        ("/workspacex", False),
        ("//workspace/a", True),
        ("a/b", True),
        ("../a", False),
        ("a/../../b", False),
        ("~/.ssh", False),
        ("/etc/passwd", False),
        ("a\0b", False),
    ],
)
def test_paths(path: str, low: bool) -> None:
    assert inside(path, ("/workspace", ".")) is low


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        ("https://example.com/x", True),
        ("https://EXAMPLE.com:8443/x", True),
        ("https://a.example.org", True),
        ("https://example.org", False),
        ("https://example.com.evil.net", False),
        ("https://example.com@evil.net/", False),
        ("https://evil.net/#@example.com", False),
        ("https://evil.net\\@example.com", False),
        ("https://exаmple.com", False),
        ("file:///etc/passwd", False),
        ("javascript://example.com/", False),
        ("ann@example.com", True),
        ("ann@example.com@evil.net", False),
        ("example.com.", True),
        ("https://[::1]/", False),
        ("", False),
        ("https://example.com /", False),
    ],
)
def test_hosts(value: str, allowed: bool) -> None:
    assert host_allowed(value, ("example.com", "*.example.org")) is allowed


@pytest.mark.parametrize(
    ("rule", "value", "impact"),
    [
        (ImpactRule("f", "x", "method"), "get", 0.5),
        (ImpactRule("f", "x", "method"), "POST", 2),
        (ImpactRule("f", "x", "sql"), "drop table t", 2),
        (ImpactRule("f", "x", "path", ("/workspace",)), "/etc/x", 2),
        (ImpactRule("f", "x", "host", ("example.com",), 1.5), ["https://example.com", "https://x.org"], 1.5),
        (ImpactRule("f", "x", "equals", ("adm*",)), "admin", 2),
        (ImpactRule("f", "x", "equals", ("adm*",)), "user", 0.5),
        (ImpactRule("f", "x", "shell"), "rm x", 2),
        (ImpactRule("f", "x", "shell"), "ls", 0.5),
        (ImpactRule("g", "x", "method"), "POST", 0.5),
    ],
)
def test_rules_raise_what_is_declared_and_never_lower_it(
    rule: ImpactRule, value: JSON, impact: float
) -> None:
    policy = Policy(impacts=frozenset({rule}))
    assert call_impact(policy, "f", 0.5, {"x": value}) == impact
    assert call_impact(policy, "f", 2, {"x": value}) == 2


def test_a_rate_refuses_the_call_after_the_last_and_refills_with_time() -> None:
    rate = CallRate("*", 3, 6.0)
    tally, refused = Tally(), None
    for _ in range(3):
        tally, refused = tally.take((rate,), 100.0)
        assert refused is None
    tally, refused = tally.take((rate,), 100.0)
    assert refused is rate
    assert tally.take((rate,), 101.9)[1] is rate
    assert tally.take((rate,), 102.1)[1] is None
    assert tally.take((rate,), 0.0)[1] is rate


@given(st.lists(st.floats(0, 1000), max_size=60), st.integers(0, 8), st.floats(0.5, 100))
def test_no_window_of_time_sees_more_than_a_burst_and_the_rate(
    times: list[float], calls: int, per: float
) -> None:
    rate, tally, passed = CallRate("*", calls, per), Tally(), []
    for now in sorted(times):
        tally, refused = tally.take((rate,), now)
        if refused is None:
            passed.append(now)
    for i, start in enumerate(passed):
        for count, end in enumerate(passed[i:], start=1):
            assert count <= calls + calls * (end - start) / per + 1e-6


labels = st.frozensets(st.sampled_from(["user", "model", "memory", "tool:a.b", "tool:c.d"]))


@given(labels, labels, labels)
def test_labels_are_a_lattice_and_trust_only_shrinks_what_is_untrusted(
    a: frozenset[str], b: frozenset[str], c: frozenset[str]
) -> None:
    assert join([a, b]) == join([b, a])
    assert join([a, join([b, c])]) == join([join([a, b]), c])
    assert untrusted(a) <= untrusted(join([a, b]))
    assert untrusted(a, ["tool:a.*"]) <= untrusted(a)


def test_only_a_person_takes_labels_away() -> None:
    assert untrusted(declassify(frozenset({"memory"}), frozenset({"memory"}), by="person:ann")) == frozenset()
    with pytest.raises(ValueError, match="Only a person"):
        declassify(frozenset({"memory"}), frozenset({"memory"}), by="model")
    some = frozenset({"memory", "tool:a", "tool:b"})
    assert declassify(some, frozenset({"memory", "tool:a"}), by="person:ann") == {"tool:b", "user"}


def test_what_a_tainted_agent_writes_is_tainted() -> None:
    provenance = Provenance({"a": frozenset({"user"})}, agent=frozenset({"tool:web.fetch"}))
    assert provenance.of("a") == {"user"}
    assert "tool:web.fetch" in provenance.of("b")


def _ks(a: list[float], b: list[float]) -> float:
    """The Kolmogorov–Smirnov distance of two samples."""
    a, b = sorted(a), sorted(b)
    points = sorted({*a, *b})
    return max(
        abs(sum(x <= point for x in a) / len(a) - sum(x <= point for x in b) / len(b))
        for point in points[::7]
    )


def test_delays_of_denials_look_like_those_of_failures() -> None:
    source = random.Random(7)
    real = [source.lognormvariate(-5, 0.7) for _ in range(1000)]
    delays = Delays()
    for one in real[:500]:
        delays.record("t.f", one, lost=True)
        delays.record("t.f", 5.0, lost=False)
        delays.record("t.other", 9.0, lost=True)
    drawn = [delays.draw("t.f", source) for _ in range(500)]
    assert _ks(drawn, real[500:]) < 1.63 * (2 / 500) ** 0.5  # the 1 % level
    constant = [0.005] * 500
    assert _ks(constant, real[500:]) > 1.63 * (2 / 500) ** 0.5


@given(st.lists(st.floats(-1, 100), max_size=20), st.integers(0, 1000))
def test_a_delay_is_bounded(seen: list[float], seed: int) -> None:
    delays = Delays()
    for number, one in enumerate(seen):
        delays.record(f"t.{number % 3}", one, lost=number % 2 == 0)
    for function in ("t.0", "t.1", "t.never"):
        assert 0 <= delays.draw(function, random.Random(seed)) <= 10


def test_a_denial_takes_what_calls_of_its_function_take() -> None:
    """Losses, once there are enough; until then what completed; then what others took; and a prior at the very first."""
    chance, delays = random.Random(3), Delays()

    def drawn(function: str) -> list[float]:
        return [delays.draw(function, chance) for _ in range(400)]

    assert all(0.04 < one < 0.16 for one in drawn("t.a"))
    for _ in range(30):
        delays.record("t.b", 2.0, lost=False)
    assert all(1.9 < one < 2.1 for one in drawn("t.a"))
    for _ in range(30):
        delays.record("t.a", 0.5, lost=False)
    assert all(0.4 < one < 0.6 for one in drawn("t.a"))
    for _ in range(4):
        delays.record("t.a", 1.0, lost=True)
    half = drawn("t.a")
    assert 120 < sum(one < 0.6 for one in half) < 280
    assert all(0.4 < one < 0.6 or 0.9 < one < 1.1 for one in half)
    for _ in range(4):
        delays.record("t.a", 1.0, lost=True)
    assert all(0.9 < one < 1.1 for one in drawn("t.a"))
    assert all(1.9 < one < 2.1 for one in drawn("t.b"))


def test_only_so_many_functions_are_remembered() -> None:
    delays, chance = Delays(), random.Random(4)
    delays.record("t.first", 3.0, lost=False)
    for number in range(300):
        delays.record(f"t.{number}", 1.0, lost=False)
    assert all(delays.draw("t.first", chance) < 1.1 for _ in range(100))


@given(st.sampled_from([0, 1, 2]), st.booleans(), st.booleans())
def test_what_other_people_meet_needs_a_known_origin_whatever_its_impact(
    declared: int, others: bool, strange: bool
) -> None:
    """An invitation can be taken back, and has been read by then: who owns a page must not send one."""
    policy = Policy(functions=frozenset({"*"}), others=frozenset({"calendar.*"} if others else ()))
    impact = call_impact(policy, "calendar.invite", declared, {})
    assert impact == (max(declared, 1) if others else declared)
    read = frozenset({"tool:web.fetch"}) if strange else frozenset[str]()
    decision = consider(
        CallRequest("/", "calendar.invite", "d"), impact, Grant(policy.scope(), 2), policy,
        arguments={}, provenance=Provenance(agent=read),
    )  # fmt: skip
    assert isinstance(decision, Question if strange and (others or declared == 2) else Ticket)
    if others:
        looks = decide(CallRequest("/", "calendar.invite", "d"), impact, Grant(policy.scope(), 0))
        assert isinstance(looks, Denial)


def test_what_other_people_meet_is_read_from_a_file_and_kept_by_a_merge() -> None:
    head = "[scope.{}]\nfunctions = ['*']\n"
    text = head.format("a") + "others = ['git.star']\n" + head.format("b") + "trusted = ['tool:web.*']\n"
    merged = Policies.from_toml(text).named(["a", "b"])
    assert merged.meets_others("git.star")
    assert policy_from_json(policy_json(merged)) == merged


def test_rules_for_plans_are_read_from_a_file_and_kept_by_a_merge() -> None:
    text = """
[scope.a]
functions = ["*"]
[[scope.a.plan]]
function = "web.fetch"
error = "timed out"
set = { timeout = 60, raw = true }
[scope.b]
functions = ["*"]
[[scope.b.plan]]
function = "files.write"
when = "empty(before)"
skip = true
[[scope.b.plan]]
function = "web.fetch"
auto = { url = "before.0.url" }
"""
    merged = Policies.from_toml(text).named(["a", "b"])
    assert [one.function for one in sorted(merged.plans)] == ["files.write", "web.fetch", "web.fetch"]
    assert policy_from_json(policy_json(merged)) == merged
