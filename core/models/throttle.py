"""Limits how often an endpoint may be asked, across all models that use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from iact.core.ports import ChatMessage, Clock, Model, ModelEvent, ModelProfile, StreamRestart, StreamRetry
from iact.core.rates import Rate, TokenBucket


class Throttle:
    """The requests to the endpoint `host`, in order of arrival."""

    def __init__(self, host: str, rate: Rate, clock: Clock) -> None:
        self.clock = clock
        self._why = f"Your settings allow {rate.per_second:g} requests a second to {host}."
        self._bucket = TokenBucket(rate)

    def leave(self) -> None:
        """Take back the count of a request that is not made after all."""
        self._bucket.give_back()

    def enter(self) -> StreamRestart | None:
        """Count one more request. Returns the event that reports its wait, or None if it may be made at once."""
        seconds = self._bucket.reserve(self.clock.monotonic())
        return StreamRestart(self._why, 0, 0, seconds, limited=True) if seconds else None


class ThrottledModel:
    """A model at an endpoint with a rate limit."""

    def __init__(self, model: Model, throttle: Throttle) -> None:
        self._model = model
        self._throttle = throttle

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        wait = self._throttle.enter()
        if wait is not None:
            try:
                yield wait
                await self._throttle.clock.sleep(wait.seconds)
            except BaseException:
                # Stopped while it waited: the next in line need not wait for it.
                self._throttle.leave()
                raise
            yield StreamRetry()

        async with aclosing(self._model.stream(messages, max_tokens=max_tokens)) as events:
            async for event in events:
                yield event

    async def warm(self) -> None:
        await self._model.warm()

    async def close(self) -> None:
        await self._model.close()
