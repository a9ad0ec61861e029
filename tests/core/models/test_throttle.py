"""An endpoint that may be asked only so often, in made-up time."""

from __future__ import annotations

from core.models.throttle import Throttle
from core.rates import Rate
from tests.core.models.clock import VirtualClock


def test_requests_wait_for_their_turn_in_the_order_in_which_they_come() -> None:
    throttle = Throttle("models.example", Rate(2.0, burst=2), VirtualClock())
    held = [throttle.enter() for _ in "abcd"]
    assert [one and one.seconds for one in held] == [None, None, 0.5, 1.0]
    assert held[3] is not None
    assert held[3].reason == "Your settings let models.example be asked 2 times a second."
    assert held[3].limited
