"""An endpoint that may be asked only so often, in made-up time."""

from __future__ import annotations

import asyncio
import random

from iact.core.models.openai import ModelEndpoint, OpenAIModel
from iact.core.models.throttle import Throttle, ThrottledModel
from iact.core.ports import ChatMessage, ModelProfile, StreamRestart
from iact.core.rates import Rate
from tests.core.models.clock import VirtualClock


def test_requests_wait_for_their_turn_in_the_order_in_which_they_come() -> None:
    throttle = Throttle("models.example", Rate(2.0, burst=2), VirtualClock())
    held = [throttle.enter() for _ in "abcd"]
    assert [one and one.seconds for one in held] == [None, None, 0.5, 1.0]
    assert held[3] is not None
    assert held[3].reason == "Your settings allow 2 requests a second to models.example."
    assert held[3].limited


def test_who_is_stopped_while_waiting_keeps_nobody_else_waiting() -> None:
    throttle = Throttle("models.example", Rate(2.0), VirtualClock())
    assert throttle.enter() is None
    asked = OpenAIModel(
        ModelEndpoint(url="http://127.0.0.1:9/v1", key=None),
        profile=ModelProfile("m", 1000),
        clock=VirtualClock(),
        rng=random.Random(1),
    )
    model = ThrottledModel(asked, throttle)

    async def scene() -> None:
        waiting = model.stream([ChatMessage("user", "Hello?")])
        assert isinstance(await anext(waiting), StreamRestart)
        await waiting.aclose()

    asyncio.run(scene())
    held = throttle.enter()
    assert held is not None
    assert held.seconds == 0.5
