"""From candidates to what an agent reads."""

from __future__ import annotations

from datetime import timedelta

import pytest

from iact.hippocampus import ranking
from iact.hippocampus.ranking import Candidate, Weights, choose, rank
from iact.hippocampus.words import terms
from tests.hippocampus.fakes import NOW, ask, statement

W = Weights()


def order(*candidates: Candidate) -> list[str]:
    return [one.statement.id for one in rank(candidates, W)]


def test_similar_before_dissimilar_and_new_before_old() -> None:
    near, far = (
        Candidate(statement("a b", identity="n/1"), 0.8),
        Candidate(statement("c d", identity="f/1"), 0.3),
    )
    assert order(far, near) == ["n/1", "f/1"]
    new = Candidate(statement("a b", identity="n/1", days=1), 0.5)
    old = Candidate(statement("c d", identity="o/1", days=900), 0.5)
    assert order(old, new) == ["n/1", "o/1"]


def test_near_duplicates_are_merged_but_not_other_figures() -> None:
    texts = [
        "The port of the test server is 80",
        "the port of the test server is 80!",
        "The port of the test server is 81",
    ]
    scored = rank(
        [Candidate(statement(text, identity=f"s{n}/1"), 0.9 - n / 10) for n, text in enumerate(texts)],
        W,
    )
    assert [one.statement.id for one in choose(scored, fits=lambda one: True, limit=9)] == ["s0/1", "s2/1"]


@pytest.mark.parametrize(
    ("similarity", "lexical", "passes"),
    [(0.05, 0.0, False), (0.3, 0.0, True), (0.0, 1.0, False), (0.15, 0.5, True)],
)
def test_what_is_noise_does_not_stand_out(similarity: float, lexical: float, passes: bool) -> None:
    assert ranking.stands_out(Candidate(statement("a"), similarity, lexical), 0.22, W) is passes


@pytest.mark.parametrize(
    ("text", "read", "known"),
    [
        ("The port is 80.", "so:\nthe  port is 80. ok", True),
        (
            "Backups of the shop database run nightly",
            "The shop's database has nightly backups, which run.",
            True,
        ),
        ("The port is 80.", "The port is 81.", False),
        ("Backups run nightly in Oslo", "Backups run", False),
    ],
)
def test_known_is_what_stands_in_the_history(text: str, read: str, known: bool) -> None:
    assert ranking.known(text, [ranking.plain(read)]) is known


def test_a_short_input_is_read_with_what_came_before() -> None:
    from dataclasses import replace

    short = replace(ask("yes, do it"), recent=["Shall I restart the billing server?"])
    assert "billing" in ranking.wanted(short)
    long = replace(ask("restart the search server of the web shop"), recent=["about billing"])
    assert "billing" not in ranking.wanted(long)


@pytest.mark.parametrize(
    ("days", "text"),
    [
        (0, "today"),
        (1.2, "yesterday"),
        (3, "3 days ago"),
        (16, "2 weeks ago"),
        (70, "2 months ago"),
        (800, "2 years ago"),
    ],
)
def test_age(days: float, text: str) -> None:
    assert ranking.age(NOW - timedelta(days=days), NOW) == text


def test_lines_carry_age_origin_and_warnings() -> None:
    one = statement("The\nport is 80", identity="s/1", days=3, untrusted=("tool:web",))
    assert (
        ranking.line(one, "s", NOW) == '[fact, 3 days ago, from /, UNTRUSTED, from tool:web] "The port is 80"'
    )
    assert ranking.line(one, "t", NOW).startswith("[fact, 3 days ago, earlier session, UNTRUSTED")


def test_rare_words_count_more_than_common_ones() -> None:
    texts = {f"c{n}/1": "the server is up" for n in range(50)} | {"rare/1": "the zephyr is up"}
    found = {key: (statement(text, identity=key), 0.5) for key, text in texts.items()}
    shares = {one.statement.id: one.lexical for one in ranking.matched("is the zephyr server up?", found)}
    assert shares["rare/1"] > shares["c0/1"] > 0
    assert ranking.matched("", found)[0].lexical == 0


def test_identifiers_are_found_whole_and_in_parts() -> None:
    assert {"billing_service.py", "bill", "servic", "py"} <= set(terms("see billing_service.py"))
