"""Token estimates: never far below, and calibrated by what is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iact.core.context.tokens import Calibration, estimate, estimate_messages
from iact.core.ports import ChatMessage

# Real counts of OpenAI's o200k_base and of SmolLM2's tokenizer lie between these bounds.
SAMPLES = [
    ("The quick brown fox jumps over the lazy dog. " * 20, 180, 221),
    ("def add(a: int, b: int) -> int:\n    return a + b\n" * 10, 150, 261),
    ("Привет, как дела? Сегодня хорошая погода. " * 5, 50, 181),
]


@pytest.mark.parametrize(("text", "low", "high"), SAMPLES)
def test_estimates_are_on_the_high_side_but_not_absurd(text: str, low: int, high: int) -> None:
    assert low <= estimate(text) <= 2 * high


@given(st.text(), st.text())
def test_longer_texts_have_more_tokens(one: str, other: str) -> None:
    assert estimate(one) <= estimate(one + other) <= estimate(one) + estimate(other)


def test_nothing_is_nothing() -> None:
    assert estimate("") == 0
    assert estimate("a") == 1
    assert estimate_messages([]) == 0
    assert estimate_messages([ChatMessage("user", "")]) > 0


def test_calibration_rises_at_once_and_falls_slowly() -> None:
    start = Calibration()
    high = start.observe(1000, 2000)
    assert high.apply(1000) == 2000
    lower = high.observe(1000, 1000)
    assert 1000 < lower.apply(1000) < 2000


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6))))
def test_calibration_stays_sane(samples: list[tuple[int, int]]) -> None:
    found = Calibration()
    for estimated, reported in samples:
        found = found.observe(estimated, reported)
    assert 0.25 <= found.factor <= 4.0


def test_small_samples_say_nothing() -> None:
    assert Calibration().observe(10, 40) == Calibration()
