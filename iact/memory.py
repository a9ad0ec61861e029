"""Commands about what is remembered, and the two seams of memory: where it lies, and what journals give it.

A journal's records become happenings by one pure fold, `Happenings`, which a running session and a
rebuild share; so both leave the same fragments. It also tells which texts came from outside: an agent
that read a tool's output is tainted by that tool, and so is everyone who reads that agent.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, get_args

from core.errors import JournalError, UsageError
from core.journal.file import FILE, read_journal
from core.journal.record import Record
from core.ports import Embedder, FragmentKind, Happening, Recalled
from hippocampus import Hippocampus, OpenAIEmbedder, UserMemory, WordEmbedder, open_hippocampus
from iact.settings import Settings

USER: Final = "local"
"""The one user of an installation without accounts."""

FOLDER: Final = "memory"
_FAILURE: Final = 300
"""Characters of an error that are remembered."""

_OWN: Final = frozenset(
    {"CALL", "CALL_ASYNC", "WAIT", "QUERY", "VAR", "SHOW", "REMEMBER", "RECALL", "COMPRESS", "PLAN"}
)
"""Actions of the core: their results carry no label of their own."""

_LOG: Final = logging.getLogger(__name__)


class Happenings:
    """Turns the records of one session, in order, into what is worth remembering. Pure."""

    def __init__(self, session: str, *, project: str = "") -> None:
        self._session = session
        self._project = project
        self._said = False
        self._labels: dict[str, frozenset[str]] = {}

    def of(self, record: Record) -> Happening | None:
        """What the next record gives; None for most."""
        match record.kind:
            case "open":
                self._session = record.text("session") or self._session
            case "fork":
                self._session = record.text("session") or self._session
            case "say":
                first, self._said = not self._said, True
                return self._made(record, "say", record.body, first=first, labels=frozenset())
            case "control" if record.text("op") == "inject":
                return self._made(record, "correction", record.body, labels=frozenset())
            case "spawn":
                self._taint(record.agent, self._of(record.text("caller")))
            case "result":
                return self._result(record)
            case "reply":
                self._taint(record.text("to"), self._of(record.agent))
                ok = record.text("status") == "ok"
                return self._made(record, "reply" if ok else "failure", record.body)
            case "compress":
                return self._made(record, "cut", record.body)
        return None

    def _result(self, record: Record) -> Happening | None:
        function = record.text("function")
        if function == "REMEMBER" and record.text("status") == "ok":
            wanted = record.text("kind_of")
            kind: FragmentKind | None = next((one for one in get_args(FragmentKind) if one == wanted), None)
            return self._made(record, "remember", record.body, kind=kind)
        if function in _OWN:
            return None
        self._taint(record.agent, frozenset({f"tool:{function}"}))
        if record.text("status") != "error":
            return None
        return self._made(record, "failure", f"{function} failed: {' '.join(record.body.split())[:_FAILURE]}")

    def _made(
        self,
        record: Record,
        occasion: str,
        text: str,
        *,
        first: bool = False,
        kind: FragmentKind | None = None,
        labels: frozenset[str] | None = None,
    ) -> Happening | None:
        if not text.strip():
            return None
        found = sorted(self._of(record.agent) if labels is None else labels)
        for known in ("say", "remember", "reply", "failure", "correction", "cut"):
            if known == occasion:
                return Happening(
                    self._session,
                    record.n,
                    record.agent,
                    record.at,
                    known,
                    text,
                    first,
                    kind,
                    tuple(found),
                    self._project,
                )
        raise AssertionError(occasion)

    def _of(self, agent: str) -> frozenset[str]:
        return self._labels.get(agent, frozenset())

    def _taint(self, agent: str, labels: frozenset[str]) -> None:
        self._labels[agent] = self._of(agent) | labels


def happenings(records: Iterable[Record], session: str) -> Iterator[Happening]:
    """Everything worth remembering of one journal."""
    fold = Happenings(session)
    for record in records:
        found = fold.of(record)
        if found is not None:
            yield found


def journals(data: Path) -> Iterator[tuple[str, Happening]]:
    """The same of every journal of a data directory, with its user. Unreadable ones are left out, and logged."""
    for path in sorted((data / "sessions").glob(f"*/{FILE}")):
        try:
            records = read_journal(path).records
        except (JournalError, OSError) as error:
            _LOG.warning("not remembered: %s: %s", path, error)
            continue
        for happening in happenings(records, path.parent.name):
            yield USER, happening


def choose_embedder(model: str | None, *, base_url: str | None, api_key: str | None) -> Embedder:
    """The embedded model, or `model` at an endpoint that speaks OpenAI's protocol."""
    if not model:
        return WordEmbedder()
    from openai import AsyncOpenAI

    return OpenAIEmbedder(
        AsyncOpenAI(base_url=base_url, api_key=api_key or "none", max_retries=1, timeout=10), model
    )


class _Clock:
    """The machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        import time

        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def open_memory(settings: Settings, *, embedder: Embedder | None = None) -> AsyncIterator[Hippocampus]:
    """The memory of a data directory; catches up from its journals where it lacks something."""
    async with open_hippocampus(
        settings.data / FOLDER,
        embedder or WordEmbedder(),
        clock=_Clock(),
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
