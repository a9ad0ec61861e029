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
        self, fragment_set: FragmentSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        held = self._set(fragment_set)
        if held is None:
            return self._store.nearest(fragment_set, vectors, count)
        with self._lock:
            return [held.nearest(vector, count) for vector in vectors]

    def get(self, fragment_set: FragmentSet, ids: Sequence[str]) -> list[StoredHit]:
        with self._lock:
            held = self._held.get(fragment_set)
            if held is not None:
                return [hit for identity in ids if (hit := held.get(identity)) is not None]
        return self._store.get(fragment_set, ids)

    def put(
        self, fragment_set: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        try:
            self._store.put(fragment_set, fragments, vectors)
        except BaseException:
            self._forget(fragment_set)  # part of it may have been stored
            raise
        with self._lock:
            self._writes[fragment_set] += 1
            held = self._held.get(fragment_set)
            if held is not None:
                held.put(fragments, vectors)
                self._make_room(fragment_set)

    def delete(self, fragment_set: FragmentSet, ids: Sequence[str]) -> None:
        self._forget(fragment_set)
        try:
            self._store.delete(fragment_set, ids)
        finally:
            self._forget(fragment_set)

    def drop(self, fragment_set: FragmentSet) -> None:
        self._forget(fragment_set)
        try:
            self._store.drop(fragment_set)
        finally:
            self._forget(fragment_set)

    def scrub(self, fragment_sets: Sequence[FragmentSet]) -> None:
        self._store.scrub(fragment_sets)

    def fragment_sets(self) -> list[FragmentSet]:
        return self._store.fragment_sets()

    def all(self, fragment_set: FragmentSet) -> Iterator[StoredHit]:
        return self._store.all(fragment_set)

    def fragments(self, fragment_set: FragmentSet) -> Iterator[Fragment]:
        return self._store.fragments(fragment_set)

    def count(self, fragment_set: FragmentSet) -> int:
        return self._store.count(fragment_set)

    def goal(self, fragment_set: FragmentSet, session: str) -> Fragment | None:
        return self._store.goal(fragment_set, session)

    def close(self) -> None:
        with self._lock:
            self._held.clear()
        self._store.close()

    def _set(self, fragment_set: FragmentSet) -> _HeldSet | None:
        """A set that is cached or can be. If it is written to while being read, the next search reads it again."""
        with self._lock:
            held = self._held.get(fragment_set)
            if held is not None:
                self._held.move_to_end(fragment_set)
                return held
            if fragment_set in self._large:
                return None
            writes = self._writes[fragment_set]
        hits = list(islice(self._store.all(fragment_set), MOST + 1))
        with self._lock:
            if len(hits) > MOST:
                self._large.add(fragment_set)
                return None
            held = _HeldSet(hits)
            if hits and writes == self._writes[fragment_set]:
                self._held[fragment_set] = held
                self._make_room(fragment_set)
            return held

    def _make_room(self, fragment_set: FragmentSet) -> None:
        """Evict sets after the set `fragment_set` has grown."""
        if len(self._held[fragment_set]) > MOST:
            del self._held[fragment_set]
            self._large.add(fragment_set)
        while sum(map(len, self._held.values())) > _ALL:
            self._held.popitem(last=False)

    def _forget(self, fragment_set: FragmentSet) -> None:
        with self._lock:
            self._writes[fragment_set] += 1
            self._held.pop(fragment_set, None)
            self._large.discard(fragment_set)


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
