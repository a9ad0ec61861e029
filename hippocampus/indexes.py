"""The lexical indexes of all fragment sets, shared by the thread that writes and the one that reads.

An index is built from its fragment set when it is first needed. The lock is held only for work on indexes, never during
a call to the store. Writes during the build of an index are applied to it afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final

from iact.hippocampus.fragment import Fragment
from iact.hippocampus.lexical import LexicalIndex
from iact.hippocampus.store import FragmentSet, Store
from iact.hippocampus.words import terms

_SLICE: Final = 200
"""Fragments that are indexed each time the lock is held."""


class Indexes:
    """One lexical index for each fragment set that was searched."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._ready: dict[FragmentSet, LexicalIndex] = {}
        self._building: dict[FragmentSet, list[tuple[str, str | None]]] = {}

    def ready(self, fragment_set: FragmentSet) -> bool:
        """Whether the fragment set's index is built."""
        return fragment_set in self._ready

    def build(self, fragment_set: FragmentSet) -> None:
        """Read the whole fragment set into an index, unless that was done."""
        with self._lock:
            if fragment_set in self._ready or fragment_set in self._building:
                return
            self._building[fragment_set] = []
        index = LexicalIndex()
        try:
            for fragment in self._store.fragments(fragment_set):
                if not fragment.superseded_by:
                    index.add(fragment.id, fragment.text)
        finally:
            with self._lock:
                missed = self._building.pop(fragment_set)
        with self._lock:
            for identity, text in missed:
                _apply(index, identity, text)
            self._ready[fragment_set] = index

    def put(self, fragment_set: FragmentSet, fragments: Sequence[Fragment]) -> None:
        """Update the index after a write to a fragment set. Superseded fragments can't be found by words."""
        changes = [(one.id, None if one.superseded_by else one.text) for one in fragments]
        for start in range(0, len(changes), _SLICE):
            self._change(fragment_set, changes[start : start + _SLICE])

    def remove(self, fragment_set: FragmentSet, ids: Iterable[str]) -> None:
        """Update the index after a deletion from a fragment set."""
        self._change(fragment_set, [(identity, None) for identity in ids])

    def drop(self, fragment_set: FragmentSet) -> None:
        """Drop the index of a fragment set that was removed or rewritten."""
        with self._lock:
            self._ready.pop(fragment_set, None)

    def best(self, fragment_set: FragmentSet, query: str, count: int) -> dict[str, float]:
        """The fragments that best match the query's rare words; empty while the index is not built."""
        wanted = terms(query)
        with self._lock:
            index = self._ready.get(fragment_set)
            return index.best(wanted, count) if index is not None else {}

    def scores(self, fragment_set: FragmentSet, query: str, among: Sequence[str]) -> dict[str, float]:
        """How well these fragments match the query's rare words."""
        wanted = terms(query)
        with self._lock:
            index = self._ready.get(fragment_set)
            return index.scores(wanted, among) if index is not None else {}

    def _change(self, fragment_set: FragmentSet, changes: list[tuple[str, str | None]]) -> None:
        with self._lock:
            if fragment_set in self._building:
                self._building[fragment_set].extend(changes)
            index = self._ready.get(fragment_set)
            if index is not None:
                for identity, text in changes:
                    _apply(index, identity, text)


def _apply(index: LexicalIndex, identity: str, text: str | None) -> None:
    if text is None:
        index.remove(identity)
    else:
        index.add(identity, text)
