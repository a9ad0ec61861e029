"""Tokens of addresses, over made-up time."""

from __future__ import annotations

from dataclasses import dataclass

from iact.web.tokens import GRACE, LIFE, MOST, AccessTokens


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_token_of_the_start_waits_for_its_browser_and_is_dead_after_it() -> None:
    clock = Clock()
    tokens = AccessTokens(clock)
    clock.now += 100 * LIFE
    assert tokens.good(tokens.first)
    assert tokens.exchange(tokens.first)
    clock.now += GRACE - 1
    assert tokens.exchange(tokens.first)  # the browser's second try
    clock.now += 1  # counted from the first exchange
    assert not tokens.good(tokens.first)
    assert not tokens.exchange(tokens.first)


def test_in_its_first_ten_minutes_it_lets_several_in() -> None:
    clock = Clock()
    tokens = AccessTokens(clock)
    assert tokens.exchange(tokens.first)
    clock.now += LIFE - 1
    assert tokens.exchange(tokens.first)
    clock.now += 1
    assert not tokens.exchange(tokens.first)


def test_one_that_was_asked_for_does_not_wait_for_ever() -> None:
    clock = Clock()
    tokens = AccessTokens(clock)
    late, used = tokens.issue(), tokens.issue()
    assert late != used != tokens.first
    clock.now += LIFE - 1
    assert tokens.exchange(used)
    clock.now += GRACE - 1
    assert not tokens.good(late)
    assert tokens.good(used)
    clock.now += 1
    assert not tokens.good(used)
    assert tokens.good(tokens.first)


def test_what_is_no_token_lets_nobody_in_and_old_ones_make_way() -> None:
    tokens = AccessTokens(Clock(), "given")
    for wrong in ("", "give", "given ", "\udcff", "x" * 10_000):
        assert not tokens.exchange(wrong)
    issued = [tokens.issue() for _ in range(3 * MOST)]
    good = [one for one in issued if tokens.good(one)]
    assert good == issued[-len(good) :]
    assert len(good) < MOST
    assert tokens.good("given")
