"""What tests of memory share: a clock that stands, a store in a dictionary that can fail or hang, builders."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from iact.core.ports import FragmentKind, MemoryEvent, MemoryQuestion, Occasion, WantedScope
from iact.hippocampus.fragment import Fragment, MemoryScope
from iact.hippocampus.ranking import dot
from iact.hippocampus.store import FragmentSet, StoredHit

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class StandingClock:
    """Time passes only when a test says so."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._moved = asyncio.Event()

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.passed)

    def monotonic(self) -> float:
        return self.passed

    async def sleep(self, seconds: float) -> None:
        due = self.passed + seconds
        while self.passed < due:
            self._moved.clear()
            await self._moved.wait()

    def advance(self, seconds: float) -> None:
        """Let time pass; who sleeps notices."""
        self.passed += seconds
        self._moved.set()


class DictStore:
    """A store in memory. `fail`: raised by every call; `gate`: every reading call waits for it."""

    def __init__(self) -> None:
        self.held: dict[FragmentSet, dict[str, StoredHit]] = {}
        self.fail: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False

    def _check(self) -> None:
        if self.fail is not None:
            raise self.fail

    def fragment_sets(self) -> list[FragmentSet]:
        self._check()
        return list(self.held)

    def put(
        self, fragment_set: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        self._check()
        for fragment, vector in zip(fragments, vectors, strict=True):
            self.held.setdefault(fragment_set, {})[fragment.id] = StoredHit(fragment, vector)

    def nearest(
        self, fragment_set: FragmentSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        self._check()
        self.gate.wait()
        here = self.held.get(fragment_set, {}).values()
        columns = [
            [StoredHit(hit.fragment, (), dot(hit.vector, vector)) for hit in here] for vector in vectors
        ]
        return [sorted(column, key=lambda hit: -hit.similarity)[:count] for column in columns]

    def get(self, fragment_set: FragmentSet, ids: Sequence[str]) -> list[StoredHit]:
        self._check()
        here = self.held.get(fragment_set, {})
        return [here[identity] for identity in ids if identity in here]

    def all(self, fragment_set: FragmentSet) -> Iterator[StoredHit]:
        self._check()
        return iter(list(self.held.get(fragment_set, {}).values()))

    def fragments(self, fragment_set: FragmentSet) -> Iterator[Fragment]:
        return (hit.fragment for hit in self.all(fragment_set))

    def count(self, fragment_set: FragmentSet) -> int:
        return len(self.held.get(fragment_set, {}))

    def goal(self, fragment_set: FragmentSet, session: str) -> Fragment | None:
        self._check()
        found = [hit.fragment for hit in self.all(fragment_set) if hit.fragment.kind == "goal"]
        return next((one for one in found if one.session == session), None)

    def delete(self, fragment_set: FragmentSet, ids: Sequence[str]) -> None:
        self._check()
        for identity in ids:
            self.held.get(fragment_set, {}).pop(identity, None)

    def drop(self, fragment_set: FragmentSet) -> None:
        self._check()
        self.held.pop(fragment_set, None)

    def scrub(self, fragment_sets: Sequence[FragmentSet]) -> None:
        self._check()

    def close(self) -> None:
        self.closed = True


def opener(store: DictStore) -> Callable[[Path | None, str], DictStore]:
    """Opens always the same store; fails as it does."""

    def open_store(place: Path | None, server: str) -> DictStore:
        store.fragment_sets()
        return store

    return open_store


def say(
    session: str, record: int, text: str, *, first: bool = False, days: float = 1, agent: str = "/"
) -> MemoryEvent:
    """A user's message, `days` ago."""
    return MemoryEvent(session, record, agent, ago(days), "say", text, first)


def told(
    session: str,
    record: int,
    text: str,
    *,
    occasion: Occasion = "remember",
    agent: str = "/a",
    days: float = 1,
    kind: FragmentKind | None = None,
    untrusted: tuple[str, ...] = (),
    project: str = "",
    scope: WantedScope = "",
) -> MemoryEvent:
    """Something else that happened, `days` ago."""
    return MemoryEvent(
        session, record, agent, ago(days), occasion, text, False, kind, untrusted, project, scope=scope
    )


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z")


def ask(
    text: str, *, session: str = "now", agent: str = "/a/b", history: Sequence[str] = ()
) -> MemoryQuestion:
    """What an agent reads."""
    return MemoryQuestion(session, agent, text, NOW, history=history)


def fragment(
    text: str,
    *,
    identity: str = "s/1",
    kind: FragmentKind = "fact",
    days: float = 1,
    untrusted: tuple[str, ...] = (),
) -> Fragment:
    """A fragment of the user's scope."""
    session, _, record = identity.rpartition("/")
    number = int(record.split(".")[0])
    return Fragment(
        identity, text, kind, MemoryScope("u", "user"), session, "/", ago(days), number, untrusted=untrusted
    )
