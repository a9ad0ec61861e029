"""What tests of memory share: a clock that stands, a store in a dictionary that can fail or hang, builders."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from iact.core.ports import MemoryQuestion, NewStatement, StatementKind, StatementScope
from iact.core.tree.statements import statements_in
from iact.hippocampus.ranking import dot
from iact.hippocampus.statement import MemoryScope, Statement
from iact.hippocampus.store import StatementSet, StoredHit

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
        self.held: dict[StatementSet, dict[str, StoredHit]] = {}
        self.fail: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False
        self.outdated = False

    def _check(self) -> None:
        if self.fail is not None:
            raise self.fail

    def statement_sets(self) -> list[StatementSet]:
        self._check()
        return list(self.held)

    def put(
        self, statement_set: StatementSet, statements: Sequence[Statement], vectors: Sequence[Sequence[float]]
    ) -> None:
        self._check()
        for statement, vector in zip(statements, vectors, strict=True):
            self.held.setdefault(statement_set, {})[statement.id] = StoredHit(statement, vector)

    def nearest(
        self, statement_set: StatementSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        self._check()
        self.gate.wait()
        here = self.held.get(statement_set, {}).values()
        columns = [
            [StoredHit(hit.statement, (), dot(hit.vector, vector)) for hit in here] for vector in vectors
        ]
        return [sorted(column, key=lambda hit: -hit.similarity)[:count] for column in columns]

    def get(self, statement_set: StatementSet, ids: Sequence[str]) -> list[StoredHit]:
        self._check()
        here = self.held.get(statement_set, {})
        return [here[identity] for identity in ids if identity in here]

    def all(self, statement_set: StatementSet) -> Iterator[StoredHit]:
        self._check()
        return iter(list(self.held.get(statement_set, {}).values()))

    def statements(self, statement_set: StatementSet) -> Iterator[Statement]:
        return (hit.statement for hit in self.all(statement_set))

    def count(self, statement_set: StatementSet) -> int:
        return len(self.held.get(statement_set, {}))

    def of_kind(self, statement_set: StatementSet, kind: StatementKind) -> list[Statement]:
        return [hit.statement for hit in self.all(statement_set) if hit.statement.kind == kind]

    def of_session(self, statement_set: StatementSet, session: str) -> list[Statement]:
        return [hit.statement for hit in self.all(statement_set) if hit.statement.session == session]

    def delete(self, statement_set: StatementSet, ids: Sequence[str]) -> None:
        self._check()
        for identity in ids:
            self.held.get(statement_set, {}).pop(identity, None)

    def drop(self, statement_set: StatementSet) -> None:
        self._check()
        self.held.pop(statement_set, None)

    def purge(self, statement_sets: Sequence[StatementSet]) -> None:
        self._check()

    def close(self) -> None:
        self.closed = True


def opener(store: DictStore) -> Callable[[Path | None, str], DictStore]:
    """Opens always the same store; fails as it does."""

    def open_store(place: Path | None, server: str) -> DictStore:
        store.statement_sets()
        return store

    return open_store


def say(
    session: str, record: int, text: str, *, days: float = 1, agent: str = "/", project: str = ""
) -> NewStatement:
    """A statement of the user, `days` ago."""
    clauses = statements_in(text)
    kind: StatementKind = clauses[0].kind if clauses else "fact"
    withdraws = bool(clauses) and clauses[0].withdraws
    return NewStatement(
        session, record, agent, ago(days), text, kind, "person", "said", withdraws=withdraws, project=project
    )


def told(
    session: str,
    record: int,
    text: str,
    *,
    agent: str = "/a",
    days: float = 1,
    kind: StatementKind = "fact",
    untrusted: tuple[str, ...] = (),
    project: str = "",
    scope: StatementScope = "person",
    replaces: str = "",
) -> NewStatement:
    """A statement that an agent kept, `days` ago."""
    return NewStatement(
        session, record, agent, ago(days), text, kind, scope, "remembered",
        untrusted=untrusted, project=project, replaces=replaces,
    )  # fmt: skip


def ago(days: float) -> str:
    return (NOW - timedelta(days=days)).isoformat().replace("+00:00", "Z")


def ask(
    text: str, *, session: str = "now", agent: str = "/a/b", history: Sequence[str] = ()
) -> MemoryQuestion:
    """What an agent reads."""
    return MemoryQuestion(session, agent, text, NOW, history=history)


def statement(
    text: str,
    *,
    identity: str = "s/1",
    kind: StatementKind = "fact",
    days: float = 1,
    untrusted: tuple[str, ...] = (),
) -> Statement:
    """A statement of the user's own."""
    session, _, record = identity.rpartition("/")
    number = int(record.split(".")[0])
    return Statement(
        identity, text, kind, MemoryScope("u", "person"), session, "/", ago(days), number, untrusted=untrusted
    )
