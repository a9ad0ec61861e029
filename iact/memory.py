"""Commands about what is remembered, and the two seams of memory: where it lies, and what journals give it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from core.errors import JournalError, ReplayMismatch, UsageError
from core.journal.file import FILE, read_blob, read_journal
from core.ports import Embedder, Happening, Recalled
from core.tree.happenings import happenings
from core.tree.runtime import SystemClock
from hippocampus import Hippocampus, OpenAIEmbedder, UserMemory, WordEmbedder, open_hippocampus
from iact.settings import Settings

USER: Final = "local"
"""The one user of an installation without accounts."""

FOLDER: Final = "memory"
_LOG: Final = logging.getLogger(__name__)


def journals(data: Path) -> Iterator[tuple[str, Happening]]:
    """The same of every journal of a data directory, with its user. Unreadable ones are left out, and logged."""
    for path in sorted((data / "sessions").glob(f"*/{FILE}")):
        try:
            found = [*happenings(read_journal(path).records, partial(read_blob, path.parent))]
        except (JournalError, ReplayMismatch, OSError) as error:
            _LOG.warning("not remembered: %s: %s", path, error)
            continue
        for happening in found:
            yield USER, happening


def choose_embedder(settings: Settings) -> Embedder:
    """The embedded model, or the one that the settings name at an endpoint that speaks OpenAI's protocol."""
    if not settings.embeddings:
        return WordEmbedder()
    from openai import AsyncOpenAI  # loaded only where it is used: it takes half a second

    client = AsyncOpenAI(
        base_url=settings.embeddings_url or settings.base_url,
        api_key=settings.embeddings_key or settings.api_key or "none",
        max_retries=1,
        timeout=10,
    )
    return OpenAIEmbedder(client, settings.embeddings)


@asynccontextmanager
async def open_memory(settings: Settings) -> AsyncIterator[Hippocampus]:
    """The memory of a data directory; catches up from its journals where it lacks something."""
    async with open_hippocampus(
        settings.data / FOLDER,
        choose_embedder(settings),
        clock=SystemClock(),
        server=settings.chroma_url or "",
        journals=lambda: journals(settings.data),
    ) as opened:
        yield opened


def search(settings: Settings, query: str, *, limit: int, as_json: bool) -> int:
    """`iact memory search QUERY [--limit N] [--json]`"""
    rows = asyncio.run(_search(settings, query, limit))
    if as_json:
        print(json.dumps([_row(one) for one in rows], ensure_ascii=False, indent=2))
        return 0
    for one in rows:
        print(
            f"{one.score:.2f}  {one.id}  {one.line}" + ("" if one.current else "  (replaced by a newer one)")
        )
    return 0


async def _search(settings: Settings, query: str, limit: int) -> Sequence[Recalled]:
    async with open_memory(settings) as opened:
        await opened.settled()
        return await opened.of(USER).search(query, limit=limit)


def _row(one: Recalled) -> dict[str, object]:
    return {
        "id": one.id,
        "text": one.text,
        "kind": one.kind,
        "score": one.score,
        "at": one.at,
        "session": one.session,
        "agent": one.agent,
        "current": one.current,
        "untrusted": list(one.untrusted),
        "why": one.why,
    }


def show(settings: Settings, identity: str) -> int:
    """`iact memory show ID`: one fragment with all that is known of it, as JSON."""

    async def act() -> dict[str, object] | None:
        async with open_memory(settings) as opened:
            found = await opened.of(USER).show(identity)
            return {"id": found.id, "text": found.text, **_readable(found.metadata())} if found else None

    found = asyncio.run(act())
    if found is None:
        raise UsageError(f"There is no memory {identity!r}; `iact memory search QUERY` lists them.")
    print(json.dumps(found, ensure_ascii=False, indent=2))
    return 0


def _readable(metadata: dict[str, str | int | float | bool]) -> dict[str, object]:
    """Joined lists as lists."""
    lists = ("untrusted", "supersedes", "sources", "contradicts")
    return {
        name: [part for part in str(value).split("\x1f") if part] if name in lists else value
        for name, value in metadata.items()
    }


def forget(settings: Settings, ids: Sequence[str]) -> int:
    """`iact memory forget ID…`: remove them, and all that came from the same records, for good."""

    async def act(memory: UserMemory) -> int:
        return await memory.forget(ids)

    async def opened() -> int:
        async with open_memory(settings) as hippocampus:
            await hippocampus.settled()
            return await act(hippocampus.of(USER))

    gone = asyncio.run(opened())
    if not gone:
        raise UsageError(f"There is no memory {', '.join(ids)}; `iact memory search QUERY` lists them.")
    print(f"{gone} forgotten; the journal of the session keeps its record.")
    return 0


def rebuild(settings: Settings) -> int:
    """`iact memory rebuild`: empty the memory and fill it from all journals."""

    async def act() -> int:
        async with open_memory(settings) as opened:
            found = await asyncio.to_thread(lambda: [one for _, one in journals(settings.data)])
            return await opened.of(USER).rebuild(found)

    print(f"{asyncio.run(act())} memories from the journals in {settings.data / 'sessions'}.")
    return 0
