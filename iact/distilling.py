"""The model that memory has merge what belongs together: the role "fast", asked one prompt at a time."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from core.models.roles import Models
from core.ports import ChatMessage, StreamRestart, TextDelta
from hippocampus.consolidation import Distill

_WORDS: Final = 400
"""Tokens of an answer; a merged note has a few sentences."""


def distiller(models: Models) -> Distill | None:
    """Asks the role "fast"; None where there is none, as with the embedded model, which is too small for it."""
    if "fast" not in models.roles():
        return None

    async def distill(prompt: str) -> str:
        text = ""
        stream = models.model("fast").stream([ChatMessage("user", prompt)], max_tokens=_WORDS)
        async with aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextDelta(piece):
                        text += piece
                    case StreamRestart():
                        text = ""
        return text

    return distill
