"""The model that memory has merge what belongs together: the role "fast", asked one prompt at a time.

Its answer is asked for as a typed value, so that what a model says around a note never becomes part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from iact.core.ports import ChatMessage, Model
from iact.core.session.models import ask_typed
from iact.hippocampus.consolidation import Distill

_WORDS: Final = 400
"""Tokens of an answer; a merged note has a few sentences."""


class _Merged(BaseModel):
    """What the model answers."""

    model_config = ConfigDict(extra="forbid")

    note: str = Field(description="The merged note.")


def distiller(own: Callable[[], Model | None]) -> Distill | None:
    """Asks the model that has the role "fast" of its own by then; None where none has it at the start, as with the
    embedded one, which is too small for it."""
    first = own()
    if first is None:
        return None

    async def distill(prompt: str) -> str:
        fast = own() or first
        asked = [ChatMessage("user", prompt)]
        return (await ask_typed(fast, asked, _Merged, max_tokens=_WORDS)).note

    return distill
