"""From candidates to what an agent reads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iact.hippocampus import ranking
from iact.hippocampus.lexical import LexicalIndex
from iact.hippocampus.ranking import Candidate, Query, Weights, choose, rank
from iact.hippocampus.words import terms
from tests.hippocampus.fakes import NOW, ask, fragment

W = Weights()


def order(*candidates: Candidate, question: str = "what is it?") -> list[str]:
    return [one.fragment.id for one in rank(candidates, Query.of(question, NOW), W)]


def test_similar_before_dissimilar_and_new_before_old() -> None:
    near, far = (
        Candidate(fragment("a b", identity="n/1"), 0.8),
        Candidate(fragment("c d", identity="f/1"), 0.3),
    )
    assert order(far, near) == ["n/1", "f/1"]
    new = Candidate(fragment("a b", identity="n/1", days=1), 0.5)
    old = Candidate(fragment("c d", identity="o/1", days=900), 0.5)
    assert order(old, new) == ["n/1", "o/1"]


def test_a_preference_counts_more_than_a_result() -> None:
    wish = Candidate(fragment("a", identity="w/1", kind="preference"), 0.5)
    result = Candidate(fragment("b", identity="r/1", kind="result"), 0.5)
    assert order(result, wish) == ["w/1", "r/1"]


def test_a_neighbour_of_a_match_is_lifted() -> None:
    match = Candidate(fragment("a", identity="s/5"), 0.9)
    answer = Candidate(fragment("b", identity="s/6"), 0.2)
    other = Candidate(fragment("c", identity="t/6"), 0.3)
    assert order(match, answer, other) == ["s/5", "s/6", "t/6"]


def test_the_time_that_a_question_names_counts() -> None:
    then = Candidate(fragment("a", identity="t/1", days=60), 0.3)
    now = Candidate(fragment("b", identity="n/1", days=1), 0.35)
    assert order(then, now, question="what was it two months ago?") == ["t/1", "n/1"]
    assert order(then, now, question="what was it?") == ["n/1", "t/1"]


def test_a_question_for_a_time_prefers_what_names_one() -> None:
    tells = Candidate(fragment("moved in May", identity="t/1"), 0.40)
    does_not = Candidate(fragment("moved out", identity="n/1"), 0.42)
    assert order(tells, does_not, question="when did she move?") == ["t/1", "n/1"]


def test_near_duplicates_are_merged_but_not_other_figures() -> None:
    texts = [
        "The port of the test server is 80",
        "the port of the test server is 80!",
        "The port of the test server is 81",
    ]
    scored = rank(
        [Candidate(fragment(text, identity=f"s{n}/1"), 0.9 - n / 10) for n, text in enumerate(texts)],
        Query.of("port", NOW),
        W,
    )
    assert [one.fragment.id for one in choose(scored, W, fits=lambda one: True, limit=9)] == ["s0/1", "s2/1"]


@pytest.mark.parametrize(
    ("similarity", "lexical", "passes"),
    [(0.05, 0.0, False), (0.3, 0.0, True), (0.0, 1.0, False), (0.15, 0.5, True)],
)
def test_what_is_noise_does_not_stand_out(similarity: float, lexical: float, passes: bool) -> None:
    assert ranking.stands_out(Candidate(fragment("a"), similarity, lexical), 0.22, W) is passes


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


@pytest.mark.parametrize("task", ["compute 17+25", "Add 3 and 4", "", "print the sum of 1 and 2"])
def test_closed_tasks(task: str) -> None:
    assert ranking.closed(task)


@pytest.mark.parametrize("task", ["find a florist", "sum the invoices of May", "write the report"])
def test_open_tasks(task: str) -> None:
    assert not ranking.closed(task)


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


def test_goals_take_at_most_half_of_the_budget() -> None:
    goals = [
        fragment("word " * 100, identity="s/1", kind="goal"),
        fragment("other " * 100, identity="s/2", kind="goal"),
    ]
    chosen = ranking.pinned(goals, ask("go on with it"))
    assert len(chosen) == 1
    assert ranking.cost(chosen[0], ask("x")) <= 100


def test_lines_carry_age_origin_and_warnings() -> None:
    one = fragment("The\nport is 80", identity="s/1", days=3, untrusted=("tool:web",))
    assert (
        ranking.line(one, "s", NOW) == '[fact, 3 days ago, from /, UNTRUSTED, from tool:web] "The port is 80"'
    )
    assert ranking.line(one, "t", NOW).startswith("[fact, 3 days ago, earlier session, UNTRUSTED")


@given(
    some.dictionaries(
        some.sampled_from("abcdefgh"), some.text(alphabet="cat dog bird fish ", max_size=30), max_size=8
    ),
    some.data(),
)
def test_an_index_forgets_all_of_what_is_removed(texts: dict[str, str], data: some.DataObject) -> None:
    index, rest = LexicalIndex(), LexicalIndex()
    gone = data.draw(some.sets(some.sampled_from(sorted(texts)))) if texts else set()
    for identity, text in texts.items():
        index.add(identity, text)
        if identity not in gone:
            rest.add(identity, text)
    for identity in gone:
        index.remove(identity)
    query = terms("cats and dogs, birds, fish")
    assert index.scores(query, texts) == rest.scores(query, texts)
    assert len(index) == len(rest)
    assert all(0 <= score <= 1 for score in index.scores(query, texts).values())


def _bm25(texts: Mapping[str, str], query: Sequence[str], identity: str) -> float:
    """The formula as it stands in the literature, over the share of what the query could reach."""
    counts = {one: Counter(terms(text)) for one, text in texts.items()}
    mean = sum(found.total() for found in counts.values()) / len(counts) or 1.0
    reached = possible = 0.0
    for term in set(query):
        holders = sum(term in found for found in counts.values())
        weight = math.log(1 + (len(texts) - holders + 0.5) / (holders + 0.5)) if holders else 0.0
        times = counts[identity][term]
        possible += weight * 2.2
        reached += weight * times * 2.2 / (times + 1.2 * (0.5 + 0.5 * counts[identity].total() / mean))
    return reached / possible if possible else 0.0


@given(
    some.lists(
        some.tuples(
            some.sampled_from("abcdefgh"),
            some.none() | some.text(alphabet="cat dog bird fish ", max_size=30),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_scores_are_those_of_the_formula_whatever_was_written_and_removed_before(
    changes: list[tuple[str, str | None]],
) -> None:
    index = LexicalIndex()
    texts: dict[str, str] = {}
    for identity, text in changes:
        if text is None:
            index.remove(identity)
            texts.pop(identity, None)
        else:
            index.add(identity, text)
            texts[identity] = text
    query = terms("cats and dogs, birds, fish")
    wanted = {one: score for one in texts if (score := _bm25(texts, query, one))}
    assert index.scores(query, texts) == pytest.approx(wanted)
    assert index.best(query, 3) == pytest.approx(
        dict(sorted(wanted.items(), key=lambda item: (-round(item[1], 9), item[0]))[:3])
    )


def test_rare_words_count_more_than_common_ones() -> None:
    index = LexicalIndex()
    for n in range(50):
        index.add(f"c{n}", "the server is up")
    index.add("rare", "the zephyr is up")
    found = index.best(terms("is the zephyr server up?"), 3)
    assert next(iter(found)) == "rare"


def test_identifiers_are_found_whole_and_in_parts() -> None:
    assert {"billing_service.py", "bill", "servic", "py"} <= set(terms("see billing_service.py"))
