"""The model that merges related memories: the role "fast", asked one prompt at a time.

Its answer is requested as a typed value, so that text around a note never becomes part of the note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from iact.core.ports import ChatMessage, Model
from iact.core.session.models import ask_typed
from iact.hippocampus.consolidation import Distill

_WORDS: Final = 400
"""The maximum number of tokens in an answer. A merged note has a few sentences."""


class _Merged(BaseModel):
    """The model's answer."""

    model_config = ConfigDict(extra="forbid")

    note: str = Field(description="The merged note.")


def distiller(own: Callable[[], Model | None]) -> Distill | None:
    """Return a function that asks the current model of the role "fast".

    None if no model has that role at the start, as with the embedded model, which is too small for it.
    """
    first = own()
    if first is None:
        return None

    async def distill(prompt: str) -> str:
        fast = own() or first
        asked = [ChatMessage("user", prompt)]
        return (await ask_typed(fast, asked, _Merged, max_tokens=_WORDS)).note

    return distill
