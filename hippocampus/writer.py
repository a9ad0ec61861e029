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


class MemoryWriter:
    """Writes the statements of one embedder to a store."""

    def __init__(self, store: Store, embedder: str) -> None:
        self._store = store
        self._embedder = embedder

    def statement_set(self, scope: MemoryScope) -> StatementSet:
        """The set of a scope's statements."""
        return StatementSet(scope, self._embedder)

    def statement_sets(self, user: str) -> list[StatementSet]:
        """All statement_sets of a user."""
        found = self._store.statement_sets()
        return [one for one in found if one.scope.user == user and one.embedder == self._embedder]

    def add(self, statements: Sequence[Statement], vectors: Vectors) -> None:
        """Store statements, oldest first. Those that may replace or contradict others are compared with them.

        Statements that are already stored stay unchanged: their marks may contain more by now.
        """
        stored = self.stored(statements)
        pending: dict[str, tuple[Statement, Sequence[float]]] = {}
        for statement, vector in zip(statements, vectors, strict=True):
            if statement.id not in stored:
                asked = self._replacing(statement, pending) if statement.replaces else statement
                settled = self._settled(asked, vector, pending) if _revises(asked) else asked
                pending[statement.id] = (settled, vector)
        self._put(list(pending.values()))

    def stored(self, statements: Sequence[Statement]) -> set[str]:
        """The ids of those that are already stored."""
        by_scope: dict[MemoryScope, list[str]] = {}
        for one in statements:
            by_scope.setdefault(one.scope, []).append(one.id)
        return {
            hit.statement.id
            for scope, ids in by_scope.items()
            for hit in self._store.get(self.statement_set(scope), ids)
        }

    def rewrite(self, user: str, identity: str, text: str, vector: Sequence[float]) -> None:
        """Change a statement's text as if it had always read so, and compare it with the others again.

        A statement that replaced it because an agent said so is written again, and replaces it again.
        """
        stored = {
            hit.statement.id: hit
            for statement_set in self.statement_sets(user)
            for hit in self._store.all(statement_set)
        }
        again = {identity}
        while more := {key for key in stored.keys() - again if _named(stored[key].statement, again)}:
            again |= more
        removed = [stored[key].statement for key in again if key in stored]
        self.remove(user, removed)

        fresh = [_unmarked(one, text if one.id == identity else one.text) for one in removed]
        fresh.sort(key=lambda one: (one.at, one.id))
        self.add(fresh, [vector if one.id == identity else stored[one.id].vector for one in fresh])

    def find(self, user: str, identity: str) -> tuple[StatementSet, StoredHit] | None:
        """A statement of the user by its id."""
        for statement_set in self.statement_sets(user):
            for hit in self._store.get(statement_set, [identity]):
                return statement_set, hit
        return None

    def with_ids(self, user: str, ids: Iterable[str]) -> list[Statement]:
        """The user's statements with these ids."""
        found = [self.find(user, identity) for identity in dict.fromkeys(ids)]
        return [one[1].statement for one in found if one is not None]

    def of_sessions(self, user: str, sessions: Sequence[str]) -> list[Statement]:
        """The statements that came from these sessions."""
        return [one for one in self.everything(user) if one.session in sessions]

    def everything(self, user: str) -> list[Statement]:
        """All statements of a user."""
        return [
            one
            for statement_set in self.statement_sets(user)
            for one in self._store.statements(statement_set)
        ]

    def remove(self, user: str, statements: Sequence[Statement]) -> None:
        """Delete statements, and remove all marks that refer to them from others, so that no byte of them is left."""
        gone = {one.id for one in statements}
        touched: list[StatementSet] = []
        for statement_set in self.statement_sets(user):
            here = [one.id for one in statements if one.scope == statement_set.scope]
            if here:
                self._store.delete(statement_set, here)
            left = [_without(hit, gone) for hit in self._store.all(statement_set)]
            changed = [hit for hit in left if hit is not None]
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
        return [one for one in self._store.statement_sets() if one.embedder != self._embedder]

    def texts(self, statement_set: StatementSet) -> list[Statement]:
        """Everything in a statement set."""
        return list(self._store.statements(statement_set))

    def carry(self, statements: Sequence[Statement], vectors: Vectors) -> None:
        """Store statements with the marks that they have."""
        self._put(list(zip(statements, vectors, strict=True)))

    def drop(self, statement_set: StatementSet) -> None:
        """Remove a whole statement set."""
        self._store.drop(statement_set)

    def _put(self, given: Sequence[tuple[Statement, Sequence[float]]]) -> None:
        by_scope: dict[MemoryScope, list[tuple[Statement, Sequence[float]]]] = {}
        for one in given:
            by_scope.setdefault(one[0].scope, []).append(one)
        for scope, several in by_scope.items():
            statements = [statement for statement, _ in several]
            self._store.put(self.statement_set(scope), statements, [vector for _, vector in several])

    def _settled(
        self,
        statement: Statement,
        vector: Sequence[float],
        pending: dict[str, tuple[Statement, Sequence[float]]],
    ) -> Statement:
        """Mark, in `pending`, what the statement replaces or contradicts. Return the statement with its own marks."""
        scopes = {statement.scope, MemoryScope(statement.scope.user, "person")}
        others = [(one, dot(vector, its)) for one, its in pending.values() if one.scope in scopes]
        for scope in sorted(scopes, key=lambda one: one.key):
            hits = self._store.nearest(self.statement_set(scope), [vector], _REVISED)[0]
            others.extend((hit.statement, hit.similarity) for hit in hits if hit.statement.id not in pending)
        for other, near in others:
            statement, changed = settle(statement, other, near)
            if changed is not None:
                self._mark(changed, pending)
        return statement

    def _replacing(
        self, statement: Statement, pending: dict[str, tuple[Statement, Sequence[float]]]
    ) -> Statement:
        """Mark the statements that this one replaces according to an agent. Untrusted ones replace no trusted ones."""
        done: list[str] = []
        for identity in statement.replaces:
            held = pending.get(identity)
            found = self.find(statement.scope.user, identity)
            other = held[0] if held else found[1].statement if found else None
            if other is None or other.replaced_by or (statement.untrusted and not other.untrusted):
                continue
            self._mark(replace(other, replaced_by=statement.id), pending)
            done.append(identity)
        return replace(statement, replaces=tuple(done))

    def _mark(self, changed: Statement, pending: dict[str, tuple[Statement, Sequence[float]]]) -> None:
        """Keep a stored or pending statement's new marks."""
        if changed.id in pending:
            pending[changed.id] = (changed, pending[changed.id][1])
            return
        for hit in self._store.get(self.statement_set(changed.scope), [changed.id]):
            pending[changed.id] = (changed, hit.vector)


def settle(statement: Statement, other: Statement, near: float) -> tuple[Statement, Statement | None]:
    """The new statement and the changed other one (None: unchanged), each with its marks; `near`: their cosine."""
    if (near < _FAR and slot(statement.text) is None) or not comparable(statement, other):
        return statement, None
    late = (statement.at, statement.id) >= (other.at, other.id)
    newer, older = (statement, other) if late else (other, statement)
    said = relation(newer, older, near)
    if said == "none":
        return statement, None
    if said == "contradicts":
        changed = replace(other, contradicts=_with(other.contradicts, statement.id))
        return replace(statement, contradicts=_with(statement.contradicts, other.id)), changed
    if late:
        changed = replace(other, replaced_by=statement.id)
        return replace(statement, replaces=_with(statement.replaces, other.id)), changed
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
    given = statement.replaces if statement.origin == "remembered" else ()
    return replace(statement, text=text, replaces=given, replaced_by="", contradicts=())


def _with(ids: tuple[str, ...], identity: str) -> tuple[str, ...]:
    return ids if identity in ids else (*ids, identity)


def _without(hit: StoredHit, gone: set[str]) -> StoredHit | None:
    """The statement without its marks for removed statements; None if it had none."""
    one = hit.statement
    if one.replaced_by not in gone and gone.isdisjoint((*one.replaces, *one.contradicts)):
        return None
    changed = replace(
        one,
        replaced_by="" if one.replaced_by in gone else one.replaced_by,
        replaces=tuple(other for other in one.replaces if other not in gone),
        contradicts=tuple(other for other in one.contradicts if other not in gone),
    )
    return StoredHit(changed, hit.vector)
