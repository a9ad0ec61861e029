"""An endpoint that may be asked only so often, in made-up time."""

from __future__ import annotations

import asyncio

from core.models.throttle import Throttle
from core.rates import Rate
from tests.core.models.clock import VirtualClock


def test_requests_wait_for_their_turn_in_the_order_in_which_they_came() -> None:
    clock, order = VirtualClock(), list[tuple[str, float]]()

    async def ask(throttle: Throttle, name: str) -> None:
        await throttle.turn()
        order.append((name, clock.monotonic()))

    async def scene() -> None:
        throttle = Throttle(Rate(2.0, burst=2), clock)
        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(ask(throttle, name))

    asyncio.run(scene())
    start = order[0][1]
    assert [(name, at - start) for name, at in order] == [("a", 0.0), ("b", 0.0), ("c", 0.5), ("d", 1.0)]
