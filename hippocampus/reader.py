"""Finds statements: candidates by meaning from each scope, ranked, and cut to the requested size.

Blocking; runs in its own thread, so that writes never make a turn wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from iact.core.ports import MemoryQuestion, Recalled, StandingQuestion
from iact.hippocampus import ranking
from iact.hippocampus.ranking import Candidate, Scored, Weights
from iact.hippocampus.standing import standing
from iact.hippocampus.statement import MemoryScope, Statement
from iact.hippocampus.store import StatementSet, Store

_CANDIDATES: Final = 60
_ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query, with its vector (empty: search for nothing), scopes, and time."""

    text: str
    vector: Sequence[float]
    scopes: tuple[MemoryScope, ...]
    now: datetime


class MemoryReader:
    """Reads the statements of one embedder from a store. `floor`: similarity that unrelated texts stay below."""

    def __init__(self, store: Store, embedder: str, *, weights: Weights, floor: float) -> None:
        self._store = store
        self._embedder = embedder
        self._weights = weights
        self._floor = floor

    def search(
        self, asked: Wanted, limit: int, session: str, *, with_neighbours: bool = False
    ) -> list[Recalled]:
        """The results of a search, best first, those that hold no longer after the others. `session`: the asking one.

        Leaves out noise: statements that match no word of the query and are no nearer in meaning than unrelated texts.
        `with_neighbours`: with what was stated just before or after the best ones, for an agent, which can't look.
        """
        near = [
            candidate
            for candidate in self._candidates(asked)
            if candidate.lexical or ranking.stands_out(candidate, self._floor, self._weights)
        ]
        if with_neighbours:
            scored = ranking.rank_beside(self._joined_by_neighbours(asked, near), self._weights)
        else:
            scored = ranking.rank(near, self._weights)
        scored.sort(key=lambda one: not one.statement.holds)
        chosen = ranking.choose(scored, fits=lambda one: True, limit=limit)
        return [ranking.recalled(one, session, asked.now) for one in chosen]

    def _joined_by_neighbours(self, asked: Wanted, near: Sequence[Candidate]) -> list[Candidate]:
        """These candidates, and what was stated beside the best of them and still holds."""
        hits = {one.statement.id: (one.statement, one.similarity) for one in near}
        best = [one.statement for one in ranking.rank(near, self._weights)[:_ROWS]]
        for scope, session in {(one.scope, one.session): None for one in best}:
            for statement in self._store.of_session(self._set(scope), session):
                is_beside = any(ranking.are_beside(statement, one) for one in best)
                if statement.holds and is_beside:
                    hits.setdefault(statement.id, (statement, 0.0))
        return ranking.matched(asked.text, hits)

    def newest(self, scopes: Sequence[MemoryScope], limit: int, now: datetime) -> list[Recalled]:
        """The most recent statements, without a query."""
        every = (one for scope in scopes for one in self._store.statements(self._set(scope)))
        found = heapq.nlargest(limit, every, key=lambda one: (one.at, one.record, one.id))
        return [ranking.recalled(Scored(Candidate(one, 0.0), 0.0, ""), "", now) for one in found]

    def recall(self, ask: MemoryQuestion, asked: Wanted) -> list[Recalled]:
        """The statements that an agent is shown: relevant ones that it does not have, within the budget."""
        room = ask.tokens
        read = [ranking.plain(text) for text in (*ask.history, ask.input)]

        def fits(one: Scored) -> bool:
            nonlocal room
            cost = ranking.cost(one, ask)
            if cost > room or ranking.known(one.statement.text, read):
                return False
            room -= cost
            return True

        relevant = [
            candidate
            for candidate in self._candidates(asked)
            if candidate.statement.holds and ranking.stands_out(candidate, self._floor, self._weights)
        ]
        chosen = ranking.choose(ranking.rank(relevant, self._weights), fits=fits, limit=_ROWS)
        return [ranking.recalled(one, ask.session, ask.now) for one in chosen]

    def standing(self, user: str, ask: StandingQuestion) -> list[Recalled]:
        """What every agent of a new session is told."""
        wishes = self._store.of_kind(self._set(MemoryScope(user, "person")), "preference")
        decisions: list[Statement] = []
        if ask.project:
            project = self._set(MemoryScope(user, "project", ask.project))
            decisions = self._store.of_kind(project, "decision")
            wishes = [*wishes, *self._store.of_kind(project, "preference")]
        return standing(wishes, decisions, ask.tokens)

    def _set(self, scope: MemoryScope) -> StatementSet:
        return StatementSet(scope, self._embedder)

    def _candidates(self, asked: Wanted) -> list[Candidate]:
        """The nearest statements of every scope, with their signs."""
        if not asked.vector:
            return []
        hits = {
            hit.statement.id: (hit.statement, hit.similarity)
            for scope in asked.scopes
            for hit in self._store.nearest(self._set(scope), [asked.vector], _CANDIDATES)[0]
        }
        return ranking.matched(asked.text, hits)
