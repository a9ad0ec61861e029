"""Finds fragments: candidates by meaning and by words from each scope, ranked, and cut to the requested size.

Blocking; runs in its own thread, so that writes never make a turn wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from iact.core.ports import MemoryQuestion, Recalled
from iact.hippocampus import ranking
from iact.hippocampus.fragment import Fragment, MemoryScope
from iact.hippocampus.indexes import Indexes
from iact.hippocampus.ranking import Candidate, Query, Scored, Weights
from iact.hippocampus.store import FragmentSet, Store, StoredHit

_CANDIDATES: Final = 40
_LEXICAL: Final = 20
_ROWS: Final = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query, with its vector (empty: search for nothing), scopes, and time."""

    text: str
    vector: Sequence[float]
    scopes: tuple[MemoryScope, ...]
    now: datetime


class MemoryReader:
    """Reads the fragments of one embedder from a store. `floor`: similarity that unrelated texts stay below."""

    def __init__(
        self, store: Store, indexes: Indexes, embedder: str, *, weights: Weights, floor: float
    ) -> None:
        self._store = store
        self._indexes = indexes
        self._embedder = embedder
        self._weights = weights
        self._floor = floor

    def candidates(self, asked: Wanted) -> list[Candidate]:
        """All candidates from every scope, current or superseded, each with its similarity to the query."""
        found: list[Candidate] = []
        for scope in asked.scopes:
            found.extend(self._on(FragmentSet(scope, self._embedder), asked))
        return found

    def search(self, asked: Wanted, limit: int, session: str) -> list[Recalled]:
        """The results for a person, best first, superseded ones after current ones. `session`: the asking session.

        Leaves out noise: fragments that match no word of the query and are no nearer in meaning than unrelated texts.
        """
        query = Query.of(asked.text, asked.now)
        near = [
            one
            for one in self.candidates(asked)
            if one.lexical or ranking.stands_out(one, self._floor, self._weights)
        ]
        scored = ranking.rank(near, query, self._weights)
        scored.sort(key=lambda one: bool(one.fragment.superseded_by))
        chosen = ranking.choose(scored, self._weights, fits=lambda one: True, limit=limit)
        return [ranking.recalled(one, session, asked.now) for one in chosen]

    def newest(self, scopes: Sequence[MemoryScope], limit: int, now: datetime) -> list[Recalled]:
        """The most recent fragments, without a query."""
        every = (one for scope in scopes for one in self._store.fragments(FragmentSet(scope, self._embedder)))
        found = heapq.nlargest(limit, every, key=lambda one: (one.at, one.record))
        return [ranking.recalled(Scored(Candidate(one, 0.0), 0.0, 0.0, ""), "", now) for one in found]

    def recall(self, ask: MemoryQuestion, asked: Wanted, goals: Sequence[Fragment]) -> list[Recalled]:
        """The fragments that an agent is shown: the goal for deep agents, then relevant ones, within the budget."""
        chosen = ranking.pinned(goals, ask)
        room = ask.tokens - sum(ranking.cost(one, ask) for one in chosen)
        hidden = {one.id for one in goals}
        read = [ranking.plain(one) for one in (*ask.history, ask.input)]

        def fits(one: Scored) -> bool:
            nonlocal room
            cost = ranking.cost(one, ask)
            if cost > room or one.fragment.id in hidden:
                return False
            if ranking.known(one.fragment.text, read):
                return False
            room -= cost
            return True

        query = Query.of(asked.text, ask.now)
        scored = ranking.rank(self._relevant(self.candidates(asked)), query, self._weights)
        chosen.extend(ranking.choose(scored, self._weights, fits=fits, limit=_ROWS))
        return [ranking.recalled(one, ask.session, ask.now) for one in chosen]

    def goal(self, user: str, session: str) -> Fragment | None:
        """The goal of a session, from the store."""
        return self._store.goal(FragmentSet(MemoryScope(user, "user"), self._embedder), session)

    def _relevant(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Candidates that are current and more than noise."""
        return [
            one
            for one in candidates
            if not one.fragment.superseded_by and ranking.stands_out(one, self._floor, self._weights)
        ]

    def _on(self, fragment_set: FragmentSet, asked: Wanted) -> list[Candidate]:
        if not asked.vector:
            return []
        hits = {
            hit.fragment.id: hit for hit in self._store.nearest(fragment_set, [asked.vector], _CANDIDATES)[0]
        }
        words = self._indexes.best(fragment_set, asked.text, _LEXICAL)
        for hit in self._store.get(fragment_set, [identity for identity in words if identity not in hits]):
            near = ranking.dot(hit.vector, asked.vector)
            hits[hit.fragment.id] = StoredHit(hit.fragment, (), near)
        rest = self._indexes.scores(fragment_set, asked.text, [one for one in hits if one not in words])
        return [
            Candidate(hit.fragment, hit.similarity, words.get(identity, rest.get(identity, 0.0)))
            for identity, hit in hits.items()
        ]
