"""BM25 over the fragments of one collection, in memory.

Static embeddings blur names, numbers and identifiers; an exact match on a rare word is the cheapest cure.
The index is a projection of the collection: built when it is first needed, kept in step with every write,
thrown away with the process.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from iact.hippocampus.words import terms

_K1: Final = 1.2
_B: Final = 0.5
_COMMON: Final = 2_000
"""Texts from which on a word is too frequent to find others by; it still counts for those that are found."""


class LexicalIndex:
    """Texts by the words in them."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, int]] = {}
        self._terms: dict[str, tuple[str, ...]] = {}
        self._sizes: dict[str, int] = {}
        self._total = 0

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, identity: str) -> bool:
        return identity in self._sizes

    def add(self, identity: str, text: str) -> None:
        """Index a text, in place of what `identity` was before."""
        self.remove(identity)
        counts = Counter(terms(text))
        self._terms[identity] = tuple(counts)
        self._sizes[identity] = size = sum(counts.values())
        self._total += size
        for term, count in counts.items():
            self._postings.setdefault(term, {})[identity] = count

    def remove(self, identity: str) -> None:
        """Take a text out; nothing of it is left."""
        for term in self._terms.pop(identity, ()):
            posting = self._postings[term]
            del posting[identity]
            if not posting:
                del self._postings[term]
        self._total -= self._sizes.pop(identity, 0)

    def idf(self, term: str) -> float:
        """How much a word tells, 0 for one that stands nowhere."""
        found = len(self._postings.get(term, ()))
        return math.log(1 + (len(self) - found + 0.5) / (found + 0.5)) if found else 0.0

    def scores(self, query: Sequence[str], among: Iterable[str] | None = None) -> dict[str, float]:
        """Id → share of what the query's words could match, 0 to 1. `among`: only these ids, all if None.

        Words that stand nowhere don't count against a match.
        """
        weights = {term: weight for term in dict.fromkeys(query) if (weight := self.idf(term))}
        total = sum(weights.values())
        if not total:
            return {}
        mean = self._total / len(self) or 1.0
        chosen = None if among is None else [identity for identity in among if identity in self._sizes]
        found: dict[str, float] = {}
        for term, weight in weights.items():
            posting = self._postings[term]
            for identity in posting if chosen is None else chosen:
                count = posting.get(identity, 0)
                if count:
                    longer = 1 - _B + _B * self._sizes[identity] / mean
                    gain = count * (_K1 + 1) / (count + _K1 * longer)
                    found[identity] = found.get(identity, 0.0) + weight * gain / (total * (_K1 + 1))
        return found

    def best(self, query: Sequence[str], count: int) -> dict[str, float]:
        """The `count` best among the texts that match a rare word of the query."""
        rare = [
            self._postings[term] for term in set(query) if 0 < len(self._postings.get(term, ())) <= _COMMON
        ]
        found = self.scores(query, {identity for posting in rare for identity in posting})
        if len(found) <= count:
            return found
        return dict(heapq.nsmallest(count, found.items(), key=lambda item: (-item[1], item[0])))
