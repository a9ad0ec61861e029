"""The model that memory has merge what belongs together: the role "fast", asked one prompt at a time.

Its answer is asked for as a typed value, so that what a model says around a note never becomes part of it.
"""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from core.models.roles import Models
from core.models.structured import structured
from core.ports import ChatMessage
from hippocampus.consolidation import Distill

_WORDS: Final = 400
"""Tokens of an answer; a merged note has a few sentences."""


class _Merged(BaseModel):
    """What the model answers."""

    model_config = ConfigDict(extra="forbid")

    note: str = Field(description="The merged note.")


def distiller(models: Models) -> Distill | None:
    """Asks the role "fast"; None where there is none, as with the embedded model, which is too small for it."""
    if "fast" not in models.roles():
        return None

    async def distill(prompt: str) -> str:
        asked = [ChatMessage("user", prompt)]
        return (await structured(models.model("fast"), asked, _Merged, max_tokens=_WORDS)).value.note

    return distill
