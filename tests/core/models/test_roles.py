"""Roles fall back to "smart", and every model is closed once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from iact.core.errors import UsageError
from iact.core.models.roles import Models
from iact.core.ports import ChatMessage, ModelEvent, ModelProfile, StreamEnd


class Silent:
    """A model that says nothing and counts how often it is closed."""

    def __init__(self, name: str) -> None:
        self.profile = ModelProfile(name, 100)
        self.closed = 0

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent]:
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        self.closed += 1


def test_roles() -> None:
    big, small = Silent("big"), Silent("small")
    models = Models({"smart": big, "fast": small, "judge": big})
    assert models.model("smart") is big
    assert models.model("fast") is small
    assert models.model("painter") is big
    assert models.profile("fast").name == "small"
    assert models.roles() == ("smart", "fast", "judge")
    asyncio.run(models.close())
    assert (big.closed, small.closed) == (1, 1)


def test_somebody_must_be_smart() -> None:
    with pytest.raises(UsageError, match="IACT_MODEL"):
        Models({"fast": Silent("small")})
