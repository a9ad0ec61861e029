"""How changes in a live directory are rated: a table, and what no policy can change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import UsageError
from iact.core.gate.effects import Effect, highest, leads_out, rate
from iact.core.gate.policy import EffectRule, Policy
from iact.core.gate.policy_file import Policies, policy_from_json, policy_json
from iact.core.ports import ChangeKind, FileChange, FileState

FILE = FileState("file", 0o644, 5, "a" * 64)
OTHER = FileState("file", 0o644, 5, "b" * 64)
FOLDER = FileState("folder", 0o755)
LINK = FileState("link", 0o777, target="notes.txt")
PIPE = FileState("other", 0o644, target="pipe")
OPEN = Policy(frozenset({"default"}), frozenset({"*"}))


def change(path: str, was: FileState | None, now: FileState | None) -> FileChange:
    kind: ChangeKind = "add" if was is None else "delete" if now is None else "modify"
    return FileChange(path, kind, was, now)


TABLE = [
    # path, was, now, own, impact, words
    ("a", None, FILE, None, 1, "It adds a file."),
    ("a", None, FOLDER, None, 1, "It adds a folder."),
    ("bin/tool", None, FileState("file", 0o755, 5, "a" * 64), None, 1, "adds a file"),
    ("a", FILE, OTHER, None, 2, "changes a file that this session did not make"),
    ("a", FILE, None, None, 2, "deletes a file that this session did not make"),
    ("a", FOLDER, None, None, 2, "deletes a folder"),
    ("a", FILE, OTHER, FILE, 1, "that this session had added"),
    ("a", FILE, None, FILE, 1, "that this session had added"),
    ("a", FOLDER, None, FOLDER, 1, "that this session had added"),
    ("a", OTHER, FILE, FILE, 2, "did not make"),
    ("a", FILE, FileState("file", 0o600, 5, "a" * 64), None, 2, "did not make"),
    ("a", FILE, FileState("file", 0o755, 5, "a" * 64), FILE, 2, "can be run as a program"),
    ("a", None, LINK, None, 2, "a link"),
    ("a", FILE, LINK, FILE, 2, "a link"),
    ("a", LINK, None, LINK, 2, "a link"),
    ("a", None, FileState("link", 0o777, target="/etc/passwd"), None, 2, "outside of the directory"),
    ("a/b", None, FileState("link", 0o777, target="../../x"), None, 2, "outside of the directory"),
    (".bashrc", None, FILE, None, 2, "begins with a dot"),
    ("a/.git/hooks/x", None, FILE, None, 2, "begins with a dot"),
    (".env", FILE, OTHER, FILE, 2, "begins with a dot"),
    ("a", None, PIPE, None, 2, "device, pipe or socket"),
    ("a", PIPE, None, None, 2, "device, pipe or socket"),
    ("a", None, FileState("file", 0o4755, 5, "a" * 64), None, 2, "rights of its owner"),
    ("a", FILE, FileState("file", 0o2644, 5, "a" * 64), FILE, 2, "rights of its owner"),
    ("a", None, FileState("folder", 0o2755), None, 1, "It adds a folder."),
    ("../a", None, FILE, None, 2, "leads out"),
    ("/a", None, FILE, None, 2, "leads out"),
    ("", None, FILE, None, 2, "leads out"),
]


@pytest.mark.parametrize(("path", "was", "now", "own", "impact", "words"), TABLE)
def test_a_change_is_rated_by_what_it_does(
    path: str, was: FileState | None, now: FileState | None, own: FileState | None, impact: float, words: str
) -> None:
    found = rate(change(path, was, now), own, OPEN)
    assert found.impact == impact
    assert words in found.why


STATES = st.builds(
    FileState,
    st.sampled_from(["file", "folder", "link", "other"]),
    st.integers(0, 0o7777),
    st.integers(0, 9),
    st.sampled_from(["", "a" * 64, "b" * 64]),
    st.sampled_from(["", "x", "../x", "/x", "a/../../x"]),
)
PATHS = st.lists(st.sampled_from(["a", "b", ".git", "..", "", "docs", "%0A", "x.lock"]), max_size=4).map(
    "/".join
)
PAIRS = st.tuples(st.none() | STATES, st.none() | STATES).filter(lambda pair: pair != (None, None))
CHANGES = st.builds(lambda path, pair: change(path, *pair), PATHS, PAIRS)
RULES = st.builds(
    EffectRule,
    st.sampled_from(["**", "*", "docs/**", "a/*", ".git/**", "**/*.lock", ".*", "**/.*", "/**"]),
    st.sampled_from([(), ("add",), ("modify", "delete")]),
    st.sampled_from([1, 1.5, 2]),
    st.sampled_from(["one", "two"]),
)
POLICIES = st.builds(
    lambda names, rules: Policy(names=names, effects=rules),
    st.frozensets(st.sampled_from(["one", "two"]), min_size=1),
    st.frozensets(RULES, max_size=5),
)


@given(CHANGES, st.none() | STATES, POLICIES)
def test_every_change_has_a_rating_from_1_to_2_with_a_reason(
    one: FileChange, own: FileState | None, policy: Policy
) -> None:
    found = rate(one, own, policy)
    assert 1 <= found.impact <= 2
    assert found.why.endswith(".")


@given(CHANGES, st.none() | STATES, POLICIES)
def test_no_policy_makes_less_of_what_reaches_beyond_the_directory(
    one: FileChange, own: FileState | None, policy: Policy
) -> None:
    plain = rate(one, own, OPEN)
    beyond = one.now is not None and (
        one.now.type == "other"
        or (one.now.type == "file" and one.now.mode & 0o6000)
        or (one.now.type == "link" and leads_out(one.path, one.now.target))
    )
    assert plain.fixed >= bool(beyond)
    if plain.fixed:
        assert rate(one, own, policy) == plain == Effect(2, plain.why, fixed=True, acts=plain.acts)


@given(CHANGES, st.none() | STATES, POLICIES, POLICIES)
def test_two_policies_together_are_no_weaker_than_either(
    one: FileChange, own: FileState | None, first: Policy, second: Policy
) -> None:
    if first.names.isdisjoint(second.names):
        either = max(rate(one, own, first).impact, rate(one, own, second).impact)
        own_rules = [
            Policy(
                names=policy.names,
                effects=frozenset(rule for rule in policy.effects if rule.scope in policy.names),
            )
            for policy in (first, second)
        ]
        assert rate(one, own, own_rules[0].merge(own_rules[1])).impact == either


@pytest.mark.parametrize(
    ("glob", "path", "meets"),
    [
        ("docs/**", "docs/a.md", True),
        ("docs/**", "docs/a/b/c.md", True),
        ("docs/**", "docs", False),
        ("docs/**", "docs/.hidden", False),
        ("docs/**", "docs/.hidden/a", False),
        ("docs/.hidden/**", "docs/.hidden/a", True),
        ("**/*.md", "a.md", True),
        ("**/*.md", "x/y/a.md", True),
        ("*.md", "x/a.md", False),
        ("**", "x/y", True),
        ("**", ".x", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("*", ".x", False),
        ("a.c", "abc", False),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("src/**/test_*.py", "src/x/test_a.py", True),
    ],
)
def test_a_pattern_is_about_names_and_not_about_hidden_ones(glob: str, path: str, meets: bool) -> None:
    policy = Policy(names=frozenset({"s"}), effects=frozenset({EffectRule(glob, (), 1.5, "s")}))
    found = rate(change(path, None, FILE), None, policy)
    assert (found.impact == 1.5) is meets


TEXT = """
[levels]
publish = 1.5
[scope.office]
functions = ["*"]
[[scope.office.effects]]
path = "docs/**"
kinds = ["modify"]
[[scope.office.effects]]
path = "**/*.lock"
impact = "publish"
[scope.other]
functions = ["x"]
"""


def test_rules_come_from_the_policy_file_and_stand_in_journals() -> None:
    policy = Policies.from_toml(TEXT).named(["office"])
    assert rate(change("docs/a", FILE, OTHER), None, policy).impact == 1
    assert rate(change("docs/a", FILE, None), None, policy).impact == 2
    assert rate(change("a/b.lock", None, FILE), None, policy).impact == 1.5
    assert policy_from_json(policy_json(policy)) == policy
    both = Policies.from_toml(TEXT).named(["office", "other"])
    assert rate(change("docs/a", FILE, OTHER), None, both).impact == 2
    assert policy_from_json(policy_json(both)) == both


@pytest.mark.parametrize("line", ["impact = 0", "impact = 3", "kinds = ['rename']", "kind = ['add']"])
def test_a_wrong_rule_is_refused(line: str) -> None:
    text = f"[scope.a]\nfunctions = ['x']\n[[scope.a.effects]]\npath = '**'\n{line}"
    with pytest.raises(UsageError, match=r"effects\.0"):
        Policies.from_toml(text)


def test_the_highest_counts_and_nothing_is_nothing() -> None:
    assert highest([Effect(1, "a"), Effect(2, "b"), Effect(2, "c")]).why == "b"
    assert highest([]).impact == 0
