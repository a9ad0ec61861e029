"""The token bucket, over made-up time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iact.core.rates import Rate, TokenBucket


def test_a_bucket_gives_a_burst_and_then_what_it_gains() -> None:
    bucket = TokenBucket(Rate(4.0, burst=2))
    assert [bucket.take(10.0), bucket.take(10.0)] == [0.0, 0.0]
    assert bucket.take(10.0) == 0.25
    assert bucket.take(10.125) == 0.125
    assert bucket.take(10.25) == 0.0
    assert [bucket.take(100.0), bucket.take(100.0), bucket.take(100.0)] == [0.0, 0.0, 0.25], (
        "no more than a burst"
    )


@given(st.lists(st.floats(0, 0.5), max_size=200))
def test_never_more_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    bucket, now, taken = TokenBucket(Rate(5, 10)), 0.0, 0
    for pause in pauses:
        now += pause
        taken += bucket.take(now) == 0
    assert taken <= 10 + 5 * now + 1e-6
