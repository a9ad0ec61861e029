"""Connects memory to the product: where it is stored, which journals feed it, and which model embeds it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from iact.core.clock import SystemClock
from iact.core.ports import Embedder, Memory, NewStatement
from iact.core.stored.store import SessionStore
from iact.hippocampus import Hippocampus, OpenAIEmbedder, SwitchFile, WordEmbedder, open_hippocampus
from iact.hippocampus.memory import ATTENDED, OPENING
from iact.settings import Settings

USER: Final = "local"
"""The only user of an installation without accounts."""

FOLDER: Final = "memory"


def journals(data: Path, user: str = USER) -> Iterator[tuple[str, NewStatement]]:
    """The statements of all journals in a data directory, each with its user."""
    for statement in SessionStore(data).statements():
        yield user, statement


def choose_embedder(settings: Settings) -> Embedder:
    """Return the embedded model, or the configured model at an endpoint that speaks OpenAI's protocol."""
    if not settings.embeddings:
        return WordEmbedder()
    from openai import AsyncOpenAI  # imported only when used: it takes half a second

    client = AsyncOpenAI(
        base_url=settings.embeddings_url or settings.base_url,
        api_key=settings.embeddings_key or settings.api_key or "none",
        max_retries=1,
        timeout=10,
    )
    return OpenAIEmbedder(client, settings.embeddings)


def switches_of(settings: Settings) -> SwitchFile:
    """The file that says whose memory is off."""
    return SwitchFile(settings.data, SystemClock())


@asynccontextmanager
async def open_memory(
    settings: Settings, *, user: str = USER, attended: bool = False
) -> AsyncIterator[Hippocampus]:
    """Open the memory of a data directory, and catch up from its journals if something is missing.

    `user`: the owner of the journals. `attended`: whether a person waits for the first turn.
    """
    opening = ATTENDED if attended else OPENING
    async with open_hippocampus(
        settings.data / FOLDER,
        choose_embedder(settings),
        clock=SystemClock(),
        server=settings.chroma_url or "",
        budget=settings.memory_budget,
        opening=opening,
        journals=lambda: journals(settings.data, user),
        beside=settings.data,
    ) as opened:
        yield opened


@asynccontextmanager
async def memory_at_rest(settings: Settings, user: str = USER) -> AsyncIterator[Memory | None]:
    """Open the memory of earlier sessions, whether memory is on or off. Yields None if nothing was ever remembered."""
    if not settings.chroma_url and not (settings.data / FOLDER).is_dir():
        yield None
        return
    async with open_memory(settings, user=user) as opened:
        yield opened.of(user)
