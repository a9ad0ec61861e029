"""Reserves room in the quotas before each call of a model, and reports its real usage afterwards.

The maximum usage of a call is known in advance: its messages, and the reply's limit. So concurrent calls never exceed a
quota. A call that would exceed it only if the running calls used their maximum waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final

from iact.core.context.tokens import estimate, estimate_messages
from iact.core.errors import ModelError, QuotaExceeded
from iact.core.ports import (
    ChatMessage,
    Model,
    ModelEvent,
    ModelProfile,
    ModelQuota,
    ReasoningDelta,
    Reservation,
    Spending,
    StreamRestart,
    StreamRetry,
    TextDelta,
    Usage,
    UsageReport,
)

_SOON: Final = 0.2
"""After how many seconds people are told that a call waits for others."""

_REPLY: Final = 4096
"""The assumed length of an unlimited reply, in tokens."""


class QuotaModel:
    """A model that is asked only if all `quotas` have room."""

    def __init__(self, model: Model, quotas: Sequence[ModelQuota]) -> None:
        self._model = model
        self._quotas = quotas

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        prompt = estimate_messages(messages)
        most = self._spending(Usage(prompt, 0, max_tokens or _REPLY))
        reserving = asyncio.ensure_future(_reserve(self._quotas, most))
        try:
            await asyncio.wait({reserving}, timeout=_SOON)
            if not reserving.done():
                why = "Running model calls may use the rest of the quota."
                yield StreamRestart(why, 0, limited=True)
                await asyncio.wait({reserving})
                yield StreamRetry()
        except BaseException:
            await _withdraw(reserving)
            raise
        reservations = reserving.result()

        written = ""
        reported: Usage | None = None
        is_free = False
        try:
            async with aclosing(self._model.stream(messages, max_tokens=max_tokens)) as events:
                async for event in events:
                    match event:
                        case TextDelta(text) | ReasoningDelta(text):
                            written += text
                        case UsageReport(usage):
                            reported = usage
                    yield event
        except ModelError:
            # A request that failed before its first word is not paid for.
            is_free = not written
            raise
        finally:
            # Estimated only where it is needed: `estimate` walks through the whole reply.
            if reported is None:
                reported = Usage() if is_free else Usage(prompt, 0, estimate(written))
            await _settle(reservations, self._spending(reported))

    def _spending(self, usage: Usage) -> Spending:
        """What a call with this usage takes from a quota."""
        tokens = usage.prompt_tokens + usage.completion_tokens
        price = self._model.profile.price
        if price is None:
            return Spending(tokens, 0.0)
        return Spending(tokens, price.of(usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens))

    async def warm(self) -> None:
        await self._model.warm()

    async def close(self) -> None:
        await self._model.close()


async def _reserve(quotas: Sequence[ModelQuota], most: Spending) -> list[Reservation]:
    """Reserve room in each of the quotas, or in none.

    Raises:
        QuotaExceeded: a quota has no room.
    """
    reservations: list[Reservation] = []
    try:
        for quota in quotas:
            reservations.append(await quota.reserve(most))  # noqa: PERF401  # those so far are returned
    except BaseException:
        await _settle(reservations, Spending())
        raise
    return reservations


async def _settle(reservations: Sequence[Reservation], used: Spending) -> None:
    """Report the usage even if the call is cancelled."""
    settling = (reservation.settle(used) for reservation in reservations)
    await asyncio.shield(asyncio.gather(*settling))


async def _withdraw(reserving: asyncio.Future[list[Reservation]]) -> None:
    """Release a reservation that is no longer wanted."""
    reserving.cancel()
    try:
        reservations = await reserving
    except (asyncio.CancelledError, QuotaExceeded):
        return
    await _settle(reservations, Spending())
