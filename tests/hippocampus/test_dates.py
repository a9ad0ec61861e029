"""Times that people name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from iact.hippocampus.dates import TimeSpan, asks_when, day_of, leaning, spans, tells_when

SAID = datetime(2024, 5, 15, 18, 30, tzinfo=UTC)
"""A Wednesday."""


def days(first: str, last: str) -> TimeSpan:
    """From the first to the last day, both included."""
    end = datetime.fromisoformat(last).replace(tzinfo=UTC) + timedelta(days=1)
    return TimeSpan(datetime.fromisoformat(first).replace(tzinfo=UTC), end)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 8 May 2023", days("2023-05-08", "2023-05-08")),
        ("on May 8th, 2023", days("2023-05-08", "2023-05-08")),
        ("at 2023-05-08 in the log", days("2023-05-08", "2023-05-08")),
        ("in May 2023", days("2023-05-01", "2023-05-31")),
        ("back in December 2023", days("2023-12-01", "2023-12-31")),
        ("in early March", days("2024-03-01", "2024-03-31")),
        ("in September", days("2023-09-01", "2023-09-30")),
        ("on 26 October", days("2023-10-26", "2023-10-26")),
        ("in 2022", days("2022-01-01", "2022-12-31")),
        ("yesterday", days("2024-05-14", "2024-05-14")),
        ("tomorrow at ten", days("2024-05-16", "2024-05-16")),
        ("three days ago", days("2024-05-12", "2024-05-12")),
        ("two weeks ago", days("2024-04-28", "2024-05-04")),
        ("last week", days("2024-05-06", "2024-05-12")),
        ("last weekend", days("2024-05-11", "2024-05-12")),
        ("last month", days("2024-04-01", "2024-04-30")),
        ("next year", days("2025-01-01", "2025-12-31")),
        ("last Monday", days("2024-05-13", "2024-05-13")),
        ("last Wednesday", days("2024-05-08", "2024-05-08")),
        ("next Friday", days("2024-05-17", "2024-05-17")),
        ("last night", days("2024-05-14", "2024-05-14")),
    ],
)
def test_a_time_that_is_named(text: str, expected: TimeSpan) -> None:
    assert spans(text, SAID) == [expected]
    assert tells_when(text)


@pytest.mark.parametrize("text", ["", "I may come", "march on", "99 May", "on 31 February", "version 2023"])
def test_no_time(text: str) -> None:
    assert spans(text, SAID) == []


@given(some.text(alphabet="0123456789 adefgijlmnoprstuvwy-,", max_size=60))
def test_any_text_is_read_without_failing(text: str) -> None:
    assert all(span.start < span.end for span in spans(text, SAID))


def test_nearness_of_spans() -> None:
    may = days("2024-05-01", "2024-05-31")
    assert may.near(day_of(SAID)) == 1.0
    assert may.near(days("2024-06-01", "2024-06-01")) == 1.0
    assert 0 < may.near(days("2024-06-10", "2024-06-10")) < 1
    assert may.near(days("2024-09-01", "2024-09-01")) == 0.0


def test_what_a_question_is_after() -> None:
    assert asks_when("When did it rain?")
    assert asks_when("What year was that?")
    assert not asks_when("What did it cost?")
    assert leaning("What is her latest job?") == "newest"
    assert leaning("What was it called originally?") == "oldest"
    assert leaning("What is it called?") == ""
