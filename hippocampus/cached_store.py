"""Answers queries on small sets of fragments from memory: a Chroma query takes milliseconds, and a step makes several.

Everything is still stored in Chroma: a set is read from it at its first search, and every write goes there first. So
this is only for a store that no other process writes to. Large sets are left to Chroma's own index.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from iact.hippocampus.fragment import Fragment
from iact.hippocampus.store import FragmentSet, Store, StoredHit

if TYPE_CHECKING:
    import numpy

MOST: Final = 1_000
"""The most fragments of a cached set; a product of so many vectors takes a tenth of a millisecond."""
_ALL: Final = 8_000
"""The most fragments cached in total, for the sets that were searched last."""


class CachedStore:
    """A `Store` that caches another one. Called by the thread that writes and by the one that reads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        """Held only for work in memory, never during a call to the store, so that writes make no reader wait."""
        self._held: OrderedDict[FragmentSet, _HeldSet] = OrderedDict()
        self._large: set[FragmentSet] = set()
        self._writes: Counter[FragmentSet] = Counter()

    def nearest(
        self, shelf: FragmentSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        held = self._set(shelf)
        if held is None:
            return self._store.nearest(shelf, vectors, count)
        with self._lock:
            return [held.nearest(vector, count) for vector in vectors]

    def get(self, shelf: FragmentSet, ids: Sequence[str]) -> list[StoredHit]:
        with self._lock:
            held = self._held.get(shelf)
            if held is not None:
                return [hit for identity in ids if (hit := held.get(identity)) is not None]
        return self._store.get(shelf, ids)

    def put(
        self, shelf: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        try:
            self._store.put(shelf, fragments, vectors)
        except BaseException:
            self._forget(shelf)  # part of it may have been stored
            raise
        with self._lock:
            self._writes[shelf] += 1
            held = self._held.get(shelf)
            if held is not None:
                held.put(fragments, vectors)
                self._make_room(shelf)

    def delete(self, shelf: FragmentSet, ids: Sequence[str]) -> None:
        self._forget(shelf)
        try:
            self._store.delete(shelf, ids)
        finally:
            self._forget(shelf)

    def drop(self, shelf: FragmentSet) -> None:
        self._forget(shelf)
        try:
            self._store.drop(shelf)
        finally:
            self._forget(shelf)

    def scrub(self, shelves: Sequence[FragmentSet]) -> None:
        self._store.scrub(shelves)

    def shelves(self) -> list[FragmentSet]:
        return self._store.shelves()

    def all(self, shelf: FragmentSet) -> Iterator[StoredHit]:
        return self._store.all(shelf)

    def fragments(self, shelf: FragmentSet) -> Iterator[Fragment]:
        return self._store.fragments(shelf)

    def count(self, shelf: FragmentSet) -> int:
        return self._store.count(shelf)

    def goal(self, shelf: FragmentSet, session: str) -> Fragment | None:
        return self._store.goal(shelf, session)

    def close(self) -> None:
        with self._lock:
            self._held.clear()
        self._store.close()

    def _set(self, shelf: FragmentSet) -> _HeldSet | None:
        """A set that is cached or can be. If it is written to while being read, the next search reads it again."""
        with self._lock:
            held = self._held.get(shelf)
            if held is not None:
                self._held.move_to_end(shelf)
                return held
            if shelf in self._large:
                return None
            writes = self._writes[shelf]
        hits = list(islice(self._store.all(shelf), MOST + 1))
        with self._lock:
            if len(hits) > MOST:
                self._large.add(shelf)
                return None
            held = _HeldSet(hits)
            if hits and writes == self._writes[shelf]:
                self._held[shelf] = held
                self._make_room(shelf)
            return held

    def _make_room(self, shelf: FragmentSet) -> None:
        """Evict sets after the set `shelf` has grown."""
        if len(self._held[shelf]) > MOST:
            del self._held[shelf]
            self._large.add(shelf)
        while sum(map(len, self._held.values())) > _ALL:
            self._held.popitem(last=False)

    def _forget(self, shelf: FragmentSet) -> None:
        with self._lock:
            self._writes[shelf] += 1
            self._held.pop(shelf, None)
            self._large.discard(shelf)


class _HeldSet:
    """Fragments with their vectors, one row each."""

    def __init__(self, hits: Sequence[StoredHit]) -> None:
        self._fragments: list[Fragment] = []
        self._rows: dict[str, int] = {}
        self._vectors: numpy.ndarray | None = None
        """(room, dimensions); rows after the last fragment are unused."""
        self.put([hit.fragment for hit in hits], [hit.vector for hit in hits])

    def __len__(self) -> int:
        return len(self._fragments)

    def get(self, identity: str) -> StoredHit | None:
        row = self._rows.get(identity)
        if row is None or self._vectors is None:
            return None
        return StoredHit(self._fragments[row], self._vectors[row].copy())

    def put(self, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]) -> None:
        for fragment, vector in zip(fragments, vectors, strict=True):
            row = self._rows.setdefault(fragment.id, len(self._fragments))
            if row == len(self._fragments):
                self._fragments.append(fragment)
            else:
                self._fragments[row] = fragment
            self._room(len(vector))[row] = vector

    def nearest(self, vector: Sequence[float], count: int) -> list[StoredHit]:
        if self._vectors is None:
            return []
        import numpy

        found = self._vectors[: len(self)] @ numpy.asarray(vector, dtype=numpy.float32)
        best = numpy.argsort(-found, kind="stable")[:count]
        return [StoredHit(self._fragments[row], (), float(found[row])) for row in best.tolist()]

    def _room(self, dimensions: int) -> numpy.ndarray:
        """The vectors, with room for every fragment."""
        import numpy

        if self._vectors is None:
            self._vectors = numpy.zeros((max(16, len(self)), dimensions), dtype=numpy.float32)
        elif len(self._vectors) < len(self):
            more = numpy.zeros_like(self._vectors)
            self._vectors = numpy.concatenate([self._vectors, more])
        return self._vectors
