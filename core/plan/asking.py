"""Puts the questions of one plan to its models: within the bound on calls, not while it is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from core.errors import ModelError
from core.plan.seams import Asker, Question

if TYPE_CHECKING:
    from core.plan.engine import PlanEngine

NO_REPLY: Final = "No reply could be had from the model."


class Asking:
    """`calls`: model calls so far. `unpaused`: cleared while nothing may be asked."""

    def __init__(self, engine: PlanEngine, asker: Asker | None) -> None:
        self.calls = 0
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self._engine = engine
        self._asker = asker

    @property
    def possible(self) -> bool:
        """Whether there is anybody to ask."""
        return self._asker is not None

    @property
    def affordable(self) -> bool:
        """Whether one more call is within the plan's bounds and its mode's."""
        engine = self._engine
        bound = engine.limits.model_calls
        if engine.mode.max_calls is not None:
            bound = min(bound, engine.mode.max_calls)
        return self.calls < bound and not engine.bound

    async def ask(self, question: Question, each: Callable[[str], None] | None = None) -> str | None:
        """The reply's text, or None if none can be had or afforded. `each`: takes every piece as it comes."""
        engine = self._engine
        if self._asker is None or not self.affordable:
            return None
        self.calls += 1
        await self.unpaused.wait()
        text: list[str] = []
        try:
            async for piece in self._asker.ask(question):
                text.append(piece)
                if engine.observer is not None:
                    engine.observer.on_text(question, piece)
                if each is not None:
                    each(piece)
        except ModelError as error:
            engine.warn(f"{NO_REPLY} {error}")
            return None
        except Exception as error:
            engine.warn(f"{NO_REPLY} ({type(error).__name__}: {error})")
            return None
        return "".join(text)
