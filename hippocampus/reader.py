"""Looking things up: candidates by meaning and by words from each scope, ranked, and cut to what is asked for.

Blocking; runs in a thread of its own, so that what is written never makes a turn wait.
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
    """What is looked for, with its vector (empty: nothing is), where, and when."""

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
        """What could help, current or not, from every scope; each with its similarity to what is asked for."""
        found: list[Candidate] = []
        for scope in asked.scopes:
            found.extend(self._on(FragmentSet(scope, self._embedder), asked))
        return found

    def search(self, asked: Wanted, limit: int, session: str) -> list[Recalled]:
        """What a person is told of, the best first, superseded ones behind the current; `session`: the one asked from.

        Not what only noise brings near: none of its words were asked for, and its meaning is no nearer than any.
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
        """What was remembered last, without a question."""
        every = (one for scope in scopes for one in self._store.fragments(FragmentSet(scope, self._embedder)))
        found = heapq.nlargest(limit, every, key=lambda one: (one.at, one.record))
        return [ranking.recalled(Scored(Candidate(one, 0.0), 0.0, 0.0, ""), "", now) for one in found]

    def recall(self, ask: MemoryQuestion, asked: Wanted, goals: Sequence[Fragment]) -> list[Recalled]:
        """What an agent is shown: the goal for the deep ones, then what is relevant, within the budget."""
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
        """Candidates that are current and stand out from noise."""
        return [
            one
            for one in candidates
            if not one.fragment.superseded_by and ranking.stands_out(one, self._floor, self._weights)
        ]

    def _on(self, shelf: FragmentSet, asked: Wanted) -> list[Candidate]:
        if not asked.vector:
            return []
        hits = {hit.fragment.id: hit for hit in self._store.nearest(shelf, [asked.vector], _CANDIDATES)[0]}
        words = self._indexes.best(shelf, asked.text, _LEXICAL)
        for hit in self._store.get(shelf, [identity for identity in words if identity not in hits]):
            near = ranking.dot(hit.vector, asked.vector)
            hits[hit.fragment.id] = StoredHit(hit.fragment, (), near)
        rest = self._indexes.scores(shelf, asked.text, [one for one in hits if one not in words])
        return [
            Candidate(hit.fragment, hit.similarity, words.get(identity, rest.get(identity, 0.0)))
            for identity, hit in hits.items()
        ]
