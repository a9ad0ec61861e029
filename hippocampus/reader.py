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
    """A query."""

    text: str
    vector: Sequence[float]
    """Of the text; empty: search for nothing."""
    scopes: tuple[MemoryScope, ...]
    """Where to search."""
    now: datetime
    """When it is asked, for the ages of statements."""


class MemoryReader:
    """Reads the statements of one embedder from a store. `floor`: similarity that unrelated texts stay below."""

    def __init__(self, store: Store, embedder: str, *, weights: Weights, floor: float) -> None:
        self._store = store
        self._embedder = embedder
        self._weights = weights
        self._floor = floor

    def search(
        self, query: Wanted, limit: int, session: str, *, with_neighbours: bool = False
    ) -> list[Recalled]:
        """The results of a search, best first, those that hold no longer after the others. `session`: the asking one.

        Leaves out noise: statements that match no word of the query and are no nearer in meaning than unrelated texts.
        `with_neighbours`: with what was stated just before or after the best ones, for an agent, which can't look.
        """
        relevant = [
            candidate
            for candidate in self._candidates(query)
            if candidate.lexical or ranking.stands_out(candidate, self._floor, self._weights)
        ]
        if with_neighbours:
            joined = self._joined_by_neighbours(query, relevant)
            scored = ranking.rank_beside(joined, self._weights)
        else:
            scored = ranking.rank(relevant, self._weights)

        scored.sort(key=lambda hit: not hit.statement.holds)
        chosen = ranking.choose(scored, fits=lambda hit: True, limit=limit)
        return [ranking.recalled(hit, session, query.now) for hit in chosen]

    def _joined_by_neighbours(self, query: Wanted, relevant: Sequence[Candidate]) -> list[Candidate]:
        """These candidates, and what was stated beside the best of them and still holds."""
        hits = {candidate.statement.id: (candidate.statement, candidate.similarity) for candidate in relevant}
        best = [hit.statement for hit in ranking.rank(relevant, self._weights)[:_ROWS]]

        # Each session once, in the order of its best statement.
        places = dict.fromkeys((statement.scope, statement.session) for statement in best)
        for scope, session in places:
            for statement in self._store.of_session(self._set(scope), session):
                is_beside = any(ranking.are_beside(statement, other) for other in best)
                if statement.holds and is_beside:
                    hits.setdefault(statement.id, (statement, 0.0))
        return ranking.matched(query.text, hits)

    def newest(self, scopes: Sequence[MemoryScope], limit: int, now: datetime) -> list[Recalled]:
        """The most recent statements, without a query."""
        everything = (statement for scope in scopes for statement in self._store.statements(self._set(scope)))
        newest = heapq.nlargest(
            limit, everything, key=lambda statement: (statement.at, statement.record, statement.id)
        )
        unscored = [Scored(Candidate(statement, 0.0), 0.0, "") for statement in newest]
        return [ranking.recalled(hit, "", now) for hit in unscored]

    def recall(self, ask: MemoryQuestion, query: Wanted) -> list[Recalled]:
        """The statements that an agent is shown: relevant ones that it does not have, within the budget."""
        room = ask.tokens
        read = [ranking.plain(text) for text in (*ask.history, ask.input)]

        def fits(hit: Scored) -> bool:
            nonlocal room
            cost = ranking.cost(hit, ask)
            if cost > room or ranking.known(hit.statement.text, read):
                return False
            room -= cost
            return True

        relevant = [
            candidate
            for candidate in self._candidates(query)
            if candidate.statement.holds and ranking.stands_out(candidate, self._floor, self._weights)
        ]
        chosen = ranking.choose(ranking.rank(relevant, self._weights), fits=fits, limit=_ROWS)
        return [ranking.recalled(hit, ask.session, ask.now) for hit in chosen]

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

    def _candidates(self, query: Wanted) -> list[Candidate]:
        """The nearest statements of every scope, with their signs."""
        if not query.vector:
            return []

        hits: dict[str, tuple[Statement, float]] = {}
        for scope in query.scopes:
            (nearest,) = self._store.nearest(self._set(scope), [query.vector], _CANDIDATES)
            for hit in nearest:
                hits[hit.statement.id] = hit.statement, hit.similarity
        return ranking.matched(query.text, hits)
