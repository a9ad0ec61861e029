"""Keeps to how often an endpoint may be asked, over all models that are at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from core.ports import ChatMessage, Clock, Model, ModelEvent, ModelProfile
from core.rates import Rate, TokenBucket


class Throttle:
    """The requests to one endpoint, in the order in which they came."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._bucket = TokenBucket(rate)
        self._clock = clock
        self._next = asyncio.Lock()

    async def turn(self) -> None:
        """Wait until one more request may be made."""
        async with self._next:
            while wait := self._bucket.take(self._clock.monotonic()):
                await self._clock.sleep(wait)


class ThrottledModel:
    """A model at an endpoint that may be asked only so often."""

    def __init__(self, model: Model, throttle: Throttle) -> None:
        self._model = model
        self._throttle = throttle

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        await self._throttle.turn()
        async with aclosing(self._model.stream(messages, max_tokens=max_tokens)) as events:
            async for event in events:
                yield event

    async def warm(self) -> None:
        await self._model.warm()

    async def close(self) -> None:
        await self._model.close()
