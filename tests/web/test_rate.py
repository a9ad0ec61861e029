"""The token bucket, over made-up time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from web.rate import Bucket


def test_a_burst_then_a_steady_rate() -> None:
    bucket = Bucket(per_second=2, burst=3, now=0)
    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert [bucket.take(100) for _ in range(4)] == [True, True, True, False]


@given(st.lists(st.floats(0, 0.5), max_size=200))
def test_never_more_than_the_burst_and_the_rate(pauses: list[float]) -> None:
    bucket, now, taken = Bucket(per_second=5, burst=10, now=0), 0.0, 0
    for pause in pauses:
        now += pause
        taken += bucket.take(now)
    assert taken <= 10 + 5 * now + 1e-6
