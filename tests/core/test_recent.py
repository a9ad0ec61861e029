"""What was made last is found again, and what is kept has a bound."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from iact.core.recent import Recent


def counted(made: list[str], value: str) -> Callable[[], str]:
    def make() -> str:
        made.append(value)
        return value.upper()

    return make


def ask(recent: Recent[str, str], made: list[str], *keys: str) -> list[str]:
    return [recent.get(key, len(key), counted(made, key)) for key in keys]


def test_a_result_is_made_once_for_as_long_as_there_is_room() -> None:
    made: list[str] = []
    recent = Recent[str, str](4)

    assert ask(recent, made, "aa", "bb", "aa", "bb") == ["AA", "BB", "AA", "BB"]
    assert made == ["aa", "bb"]

    ask(recent, made, "aa", "cc")
    made.clear()
    ask(recent, made, "aa", "cc", "bb")
    assert made == ["bb"]


def test_the_newest_is_kept_however_long_it_is() -> None:
    made: list[str] = []
    recent = Recent[str, str](4)

    ask(recent, made, "a", "b" * 10, "b" * 10)
    assert made == ["a", "b" * 10]
    ask(recent, made, "a", "b" * 10)
    assert made == ["a", "b" * 10, "a", "b" * 10]


def test_what_fails_is_not_kept() -> None:
    recent = Recent[str, str](4)

    def fail() -> str:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            recent.get("a", 1, fail)
    assert recent.get("a", 1, lambda: "there") == "there"
