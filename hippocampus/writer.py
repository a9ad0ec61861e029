"""Everything that changes the store. Blocking; runs in one thread, one call after another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from iact.hippocampus.ranking import dot
from iact.hippocampus.revision import comparable, negative, relation, slot
from iact.hippocampus.statement import MemoryScope, Statement
from iact.hippocampus.store import StatementSet, Store, StoredHit

_REVISED: Final = 16
"""Nearest statements that a new statement is compared with."""

_FAR: Final = 0.3
"""The cosine below which two texts are not about one thing, with the built-in model. Comparing texts costs more."""

Vectors = Sequence[Sequence[float]]

_Pending = dict[str, tuple[Statement, Sequence[float]]]
"""Statements that are about to be written, with their vectors, by id."""


class MemoryWriter:
    """Writes the statements of one embedder to a store."""

    def __init__(self, store: Store, embedder: str) -> None:
        self._store = store
        self._embedder = embedder

    def statement_set(self, scope: MemoryScope) -> StatementSet:
        """The set of a scope's statements."""
        return StatementSet(scope, self._embedder)

    def statement_sets(self, user: str) -> list[StatementSet]:
        """All sets of a user."""
        every = self._store.statement_sets()
        return [
            statement_set
            for statement_set in every
            if statement_set.scope.user == user and statement_set.embedder == self._embedder
        ]

    def add(self, statements: Sequence[Statement], vectors: Vectors) -> None:
        """Store statements, oldest first. Those that may replace or contradict others are compared with them.

        Statements that are already stored stay unchanged: their marks may contain more by now.
        """
        stored = self.stored(statements)
        pending: _Pending = {}
        for statement, vector in zip(statements, vectors, strict=True):
            if statement.id in stored:
                continue
            marked = self._replacing(statement, pending) if statement.replaces else statement
            if _revises(marked):
                marked = self._settled(marked, vector, pending)
            pending[statement.id] = (marked, vector)
        self._put(list(pending.values()))

    def stored(self, statements: Sequence[Statement]) -> set[str]:
        """The ids of those that are already stored."""
        by_scope: dict[MemoryScope, list[str]] = {}
        for statement in statements:
            by_scope.setdefault(statement.scope, []).append(statement.id)

        stored: set[str] = set()
        for scope, ids in by_scope.items():
            stored |= {hit.statement.id for hit in self._store.get(self.statement_set(scope), ids)}
        return stored

    def rewrite(self, user: str, identity: str, text: str, vector: Sequence[float]) -> None:
        """Change a statement's text as if it had always read so, and compare it with the others again.

        A statement that replaced it because an agent said so is written again, and replaces it again.
        """
        hits: dict[str, StoredHit] = {}
        for statement_set in self.statement_sets(user):
            hits |= {hit.statement.id: hit for hit in self._store.all(statement_set)}

        # It, what replaced it, what replaced that, and so on.
        again = {identity}
        while more := {key for key in hits.keys() - again if _named(hits[key].statement, again)}:
            again |= more
        removed = [hits[key].statement for key in again if key in hits]
        self.remove(user, removed)

        texts = {statement.id: statement.text for statement in removed} | {identity: text}
        vectors = {statement.id: hits[statement.id].vector for statement in removed} | {identity: vector}
        fresh = [_unmarked(statement, texts[statement.id]) for statement in removed]
        fresh.sort(key=lambda statement: (statement.at, statement.id))
        self.add(fresh, [vectors[statement.id] for statement in fresh])

    def find(self, user: str, identity: str) -> tuple[StatementSet, StoredHit] | None:
        """A statement of the user by its id."""
        for statement_set in self.statement_sets(user):
            for hit in self._store.get(statement_set, [identity]):
                return statement_set, hit
        return None

    def with_ids(self, user: str, ids: Iterable[str]) -> list[Statement]:
        """The user's statements with these ids."""
        places = [self.find(user, identity) for identity in dict.fromkeys(ids)]
        return [place[1].statement for place in places if place is not None]

    def of_sessions(self, user: str, sessions: Sequence[str]) -> list[Statement]:
        """The statements that came from these sessions."""
        return [statement for statement in self.everything(user) if statement.session in sessions]

    def everything(self, user: str) -> list[Statement]:
        """All statements of a user."""
        return [
            statement
            for statement_set in self.statement_sets(user)
            for statement in self._store.statements(statement_set)
        ]

    def remove(self, user: str, statements: Sequence[Statement]) -> None:
        """Delete statements, and remove all marks that refer to them from others, so that no byte of them is left."""
        gone = {statement.id for statement in statements}
        touched: list[StatementSet] = []
        for statement_set in self.statement_sets(user):
            here = [statement.id for statement in statements if statement.scope == statement_set.scope]
            if here:
                self._store.delete(statement_set, here)

            unmarked = [_without(hit, gone) for hit in self._store.all(statement_set)]
            changed = [hit for hit in unmarked if hit is not None]
            self._put([(hit.statement, hit.vector) for hit in changed])
            if here or changed:
                touched.append(statement_set)

        if touched:
            self._store.purge(touched)

    def clear(self, user: str, *, for_good: bool = False) -> None:
        """Empty the user's memory: before a rebuild, or `for_good`, so that no byte of it is left."""
        for statement_set in self._store.statement_sets():
            if statement_set.scope.user == user:
                self._store.drop(statement_set)
        if for_good:
            self._store.purge(())

    def foreign(self) -> list[StatementSet]:
        """Sets with another embedder's vectors, to be embedded again."""
        every = self._store.statement_sets()
        return [statement_set for statement_set in every if statement_set.embedder != self._embedder]

    def texts(self, statement_set: StatementSet) -> list[Statement]:
        """Everything in a statement set."""
        return list(self._store.statements(statement_set))

    def carry(self, statements: Sequence[Statement], vectors: Vectors) -> None:
        """Store statements with the marks that they have."""
        self._put(list(zip(statements, vectors, strict=True)))

    def drop(self, statement_set: StatementSet) -> None:
        """Remove a whole statement set."""
        self._store.drop(statement_set)

    def _put(self, rows: Iterable[tuple[Statement, Sequence[float]]]) -> None:
        """Write statements with their vectors, each to the set of its scope."""
        by_scope: dict[MemoryScope, list[tuple[Statement, Sequence[float]]]] = {}
        for statement, vector in rows:
            by_scope.setdefault(statement.scope, []).append((statement, vector))

        for scope, in_scope in by_scope.items():
            statements = [statement for statement, _ in in_scope]
            vectors = [vector for _, vector in in_scope]
            self._store.put(self.statement_set(scope), statements, vectors)

    def _settled(self, statement: Statement, vector: Sequence[float], pending: _Pending) -> Statement:
        """Mark, in `pending`, what the statement replaces or contradicts. Return the statement with its own marks."""
        scopes = {statement.scope, MemoryScope(statement.scope.user, "person")}
        others = [
            (other, dot(vector, its_vector))
            for other, its_vector in pending.values()
            if other.scope in scopes
        ]
        for scope in sorted(scopes, key=lambda scope: scope.key):
            (hits,) = self._store.nearest(self.statement_set(scope), [vector], _REVISED)
            others += [(hit.statement, hit.similarity) for hit in hits if hit.statement.id not in pending]

        for other, near in others:
            statement, changed = settle(statement, other, near)
            if changed is not None:
                self._mark(changed, pending)
        return statement

    def _replacing(self, statement: Statement, pending: _Pending) -> Statement:
        """Mark the statements that this one replaces according to an agent. Untrusted ones replace no trusted ones."""
        replaced: list[str] = []
        for identity in statement.replaces:
            other = self._known(statement.scope.user, identity, pending)
            if other is None or other.replaced_by:
                continue
            is_less_trusted = bool(statement.untrusted) and not other.untrusted
            if is_less_trusted:
                continue

            self._mark(replace(other, replaced_by=statement.id), pending)
            replaced.append(identity)
        return replace(statement, replaces=tuple(replaced))

    def _known(self, user: str, identity: str, pending: _Pending) -> Statement | None:
        """A pending or stored statement."""
        if identity in pending:
            return pending[identity][0]
        place = self.find(user, identity)
        return None if place is None else place[1].statement

    def _mark(self, changed: Statement, pending: _Pending) -> None:
        """Keep a stored or pending statement's new marks."""
        if changed.id in pending:
            _, vector = pending[changed.id]
            pending[changed.id] = (changed, vector)
            return
        for hit in self._store.get(self.statement_set(changed.scope), [changed.id]):
            pending[changed.id] = (changed, hit.vector)


def settle(statement: Statement, other: Statement, near: float) -> tuple[Statement, Statement | None]:
    """The new statement and the changed other one (None: unchanged), each with its marks; `near`: their cosine."""
    may_be_about_one_thing = near >= _FAR or slot(statement.text) is not None
    if not may_be_about_one_thing or not comparable(statement, other):
        return statement, None

    # A rebuild brings statements in another order than that in which they were made.
    is_later = (statement.at, statement.id) >= (other.at, other.id)
    newer, older = (statement, other) if is_later else (other, statement)
    match relation(newer, older, near):
        case "none":
            return statement, None
        case "contradicts":
            changed = replace(other, contradicts=_with(other.contradicts, statement.id))
            return replace(statement, contradicts=_with(statement.contradicts, other.id)), changed
        case "replaces" if is_later:
            changed = replace(other, replaced_by=statement.id)
            return replace(statement, replaces=_with(statement.replaces, other.id)), changed
        case "replaces":
            changed = replace(other, replaces=_with(other.replaces, statement.id))
            return replace(statement, replaced_by=other.id), changed


def _revises(statement: Statement) -> bool:
    """Whether a statement can replace or contradict another; most can't, and comparing costs a query."""
    if statement.kind == "preference" or statement.withdraws:
        return True
    return slot(statement.text) is not None or negative(statement.text)


def _named(statement: Statement, ids: set[str]) -> bool:
    """Whether the statement replaces one of these because an agent said so."""
    return statement.origin == "remembered" and not ids.isdisjoint(statement.replaces)


def _unmarked(statement: Statement, text: str) -> Statement:
    """The statement with this text and only the marks that don't come from comparing texts."""
    by_an_agent = statement.replaces if statement.origin == "remembered" else ()
    return replace(statement, text=text, replaces=by_an_agent, replaced_by="", contradicts=())


def _with(ids: tuple[str, ...], identity: str) -> tuple[str, ...]:
    return ids if identity in ids else (*ids, identity)


def _without(hit: StoredHit, gone: set[str]) -> StoredHit | None:
    """The statement without its marks for removed statements; None if it had none."""
    statement = hit.statement
    marks = {statement.replaced_by, *statement.replaces, *statement.contradicts}
    if gone.isdisjoint(marks):
        return None

    replaced_by = "" if statement.replaced_by in gone else statement.replaced_by
    changed = replace(
        statement,
        replaced_by=replaced_by,
        replaces=tuple(other for other in statement.replaces if other not in gone),
        contradicts=tuple(other for other in statement.contradicts if other not in gone),
    )
    return StoredHit(changed, hit.vector)
