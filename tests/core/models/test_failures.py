"""What HTTP failures mean, how long to wait, and what is fit to be quoted: pure."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.errors import ModelOverloaded, ModelRefused
from iact.core.models.failures import (
    Retries,
    endpoint_name,
    from_status,
    message_of,
    retry_after,
    unreachable,
    words,
)

NOW = datetime(2026, 11, 21, 2, 30, tzinfo=UTC)


@given(st.text())
def test_words_are_one_short_printable_line(text: str) -> None:
    said = words(text)
    assert len(said) <= 200
    assert "\n" not in said
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in said)


def test_words_hold_no_keys() -> None:
    assert words("bad key sk-abc123def456 (abcdef)", "abcdef") == "bad key … (…)"
    assert words("Bearer abc.def.ghi") == "…"
    assert words("a short secret", "a") == "a short secret"


def test_a_page_is_not_quoted() -> None:
    assert words("\n<!DOCTYPE html><html>…") == "an HTML page"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "one"}}, "one"),
        ({"error": "two"}, "two"),
        ({"detail": "three"}, "three"),
        ({"message": "four"}, "four"),
        ("five", "five"),
        (None, ""),
        ({}, ""),
        ([6], "[6]"),
    ],
)
def test_the_message_of_a_body(body: object, message: str) -> None:
    assert message_of(body) == message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Sat, 21 Nov 2026 02:31:00 GMT"}, 60.0),
        ({"retry-after": "Sat, 21 Nov 2026 02:29:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(attempt=st.integers(1, 60), seed=st.integers(), after=st.none() | st.floats(0, 1e9))
def test_waits_are_bounded(attempt: int, seed: int, after: float | None) -> None:
    plan = Retries(attempts=100, seconds=1e12)
    failure = from_status(
        429, None, {} if after is None else {"retry-after": str(after)}, model="m", now=NOW, secret=None
    )
    wait = plan.wait(failure, attempt=attempt, elapsed=0, rng=random.Random(seed))
    assert wait is not None
    assert plan.base <= wait <= max(plan.cap * 1.25, plan.longest)


def test_waits_are_spread() -> None:
    waits = {
        Retries().wait(unreachable("x"), attempt=3, elapsed=0, rng=random.Random(seed)) for seed in range(50)
    }
    assert len(waits) == 50


def test_kinds() -> None:
    assert from_status(500, None, {}, model="m", now=NOW, secret=None).kind is ModelOverloaded
    assert from_status(418, None, {}, model="m", now=NOW, secret=None).kind is ModelRefused


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1"),
        ("https://me:pass@api.example.org/v1?key=1#x", "https://api.example.org/v1"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1"),
    ],
)
def test_an_address_without_secrets(url: str, name: str) -> None:
    assert endpoint_name(url) == name
