"""The same questions to a real model, in real time."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from benchmarks.seven_groups.model import Meter
from iact.core.clock import SystemClock
from iact.core.plan.protocol import PlanQuestion
from iact.core.ports import JSON, ChatMessage, Model, ModelProfile, TextDelta


@dataclass
class Real:
    """A `Mind` behind an endpoint that speaks the OpenAI protocol."""

    model: Model
    meter: Meter = field(default_factory=Meter)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Self]:
        """Open the model that the environment names.

        Raises:
            SystemExit: the environment names no model.
        """
        from iact.core.models.openai import ModelEndpoint, OpenAIModel

        url, name = os.environ.get("OPENAI_BASE_URL"), os.environ.get("IACT_MODEL")
        if not url or not name:
            raise SystemExit("benchmarks.seven_groups: --endpoint needs OPENAI_BASE_URL and IACT_MODEL.")
        model = OpenAIModel(
            ModelEndpoint(url=url, key=os.environ.get("OPENAI_API_KEY")),
            profile=ModelProfile(name, 32_768, label=name),
            clock=SystemClock(),
            rng=random.Random(),
        )
        try:
            yield cls(model)
        finally:
            await model.close()

    async def ask(self, question: PlanQuestion) -> AsyncGenerator[str]:
        yield await self._reply(question.text)

    async def decide(self, text: str, *, careful: bool, planned: bool) -> str:
        return await self._reply(text)

    async def amend(self, text: str, failed: JSON, error: str) -> str:
        return await self._reply(text)

    def saw(self, output: str | None, error: str) -> None:
        """Do nothing; the next text contains it."""

    async def _reply(self, text: str) -> str:
        events = self.model.stream([ChatMessage("user", text)], max_tokens=2048)
        said = "".join([event.text async for event in events if isinstance(event, TextDelta)])
        self.meter.count(text, said)
        return said
