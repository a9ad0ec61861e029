"""BM25 over the fragments of one collection, in memory.

Static embeddings blur names, numbers and identifiers; an exact match on a rare word is the cheapest remedy. The index
is a projection of the collection: built when first needed, updated with every write, and discarded with the process.
The texts that contain a word are one sorted array of numbers, 4 bytes per text: Python dictionaries took five times as
much memory.
"""

from __future__ import annotations

import math
import sys
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from iact.hippocampus.words import terms

if TYPE_CHECKING:
    import numpy

_K1: Final = 1.2
_B: Final = 0.5
_COMMON: Final = 2_000
"""With this many texts, a word is too frequent to find texts by; it still counts for texts that were found."""
_COUNT_BITS: Final = 6
_MOST: Final = (1 << _COUNT_BITS) - 1
"""Occurrences of a word in a text are counted up to here; more would change the score by less than 1 %."""


class LexicalIndex:
    """Texts indexed by their words. A text has a number below 2²⁶, which is reused when the text is removed."""

    def __init__(self) -> None:
        self._postings: dict[str, array[int]] = {}
        """Word → the numbers of its texts, sorted, each with the number of occurrences in the lowest bits."""
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        self._terms: list[tuple[str, ...]] = []
        self._sizes = array("I")
        self._free: list[int] = []
        self._total = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, identity: str) -> bool:
        return identity in self._numbers

    def add(self, identity: str, text: str) -> None:
        """Index a text, replacing the previous text of `identity`."""
        self.remove(identity)
        counts = Counter(terms(text))
        number = self._number(identity)
        self._terms[number] = tuple(sys.intern(term) for term in counts)
        self._sizes[number] = size = sum(counts.values())
        self._total += size
        for term in self._terms[number]:
            entry = number << _COUNT_BITS | min(counts[term], _MOST)
            insort(self._postings.setdefault(term, array("I")), entry)

    def remove(self, identity: str) -> None:
        """Remove a text completely."""
        number = self._numbers.pop(identity, None)
        if number is None:
            return
        for term in self._terms[number]:
            posting = self._postings[term]
            del posting[bisect_left(posting, number << _COUNT_BITS)]
            if not posting:
                del self._postings[term]
        self._total -= self._sizes[number]
        self._ids[number], self._terms[number], self._sizes[number] = "", (), 0
        self._free.append(number)

    def idf(self, term: str) -> float:
        """How much a word says about a text; 0 for a word that occurs nowhere."""
        found = len(self._postings.get(term, ()))
        return math.log(1 + (len(self) - found + 0.5) / (found + 0.5)) if found else 0.0

    def scores(self, query: Sequence[str], among: Iterable[str]) -> dict[str, float]:
        """Id → share of the maximum score for the query's words, 0 to 1, for those of `among` that match at all.

        Query words that occur nowhere don't count against a match.
        """
        import numpy

        held = [self._numbers[identity] for identity in among if identity in self._numbers]
        chosen = numpy.unique(numpy.array(held, dtype=numpy.uint32))
        found = self._scored(query, chosen)
        return {
            self._ids[number]: score for number, score in zip(chosen, found.tolist(), strict=True) if score
        }

    def best(self, query: Sequence[str], count: int) -> dict[str, float]:
        """The `count` best among the texts that match a rare word of the query."""
        import numpy

        rare = [
            self._posting(term)[0] for term in set(query) if 0 < len(self._postings.get(term, ())) <= _COMMON
        ]
        if not rare:
            return {}
        chosen = numpy.unique(numpy.concatenate(rare))
        found = self._scored(query, chosen)
        if len(chosen) > count:
            least = numpy.partition(found, -count)[-count]
            chosen, found = chosen[found >= least], found[found >= least]
        by_id = [(-score, self._ids[number]) for number, score in zip(chosen, found.tolist(), strict=True)]
        return {identity: -score for score, identity in sorted(by_id)[:count]}

    def _scored(self, query: Sequence[str], chosen: numpy.ndarray) -> numpy.ndarray:
        """The scores of the texts with these numbers, which must be sorted and unique."""
        import numpy

        found = numpy.zeros(len(chosen))
        weights = {term: weight for term in dict.fromkeys(query) if (weight := self.idf(term))}
        total = sum(weights.values())
        if not total or not len(chosen):
            return found
        mean = self._total / len(self) or 1.0
        sizes = numpy.frombuffer(self._sizes, dtype=numpy.uint32)[chosen]
        for term, weight in weights.items():
            numbers, counts = self._posting(term)
            at = numpy.searchsorted(numbers, chosen).clip(max=len(numbers) - 1)
            count = numpy.where(numbers[at] == chosen, counts[at], 0).astype(float)
            longer = 1 - _B + _B * sizes / mean
            found += weight * (count * (_K1 + 1) / (count + _K1 * longer)) / (total * (_K1 + 1))
        return found

    def _posting(self, term: str) -> tuple[numpy.ndarray, numpy.ndarray]:
        """The numbers of the texts that contain a word, and the counts. Copies, since an array in use can't grow."""
        import numpy

        entries = numpy.frombuffer(self._postings[term], dtype=numpy.uint32)
        return entries >> _COUNT_BITS, entries & _MOST

    def _number(self, identity: str) -> int:
        if self._free:
            number = self._free.pop()
            self._ids[number] = identity
        else:
            number = len(self._ids)
            self._ids.append(identity)
            self._terms.append(())
            self._sizes.append(0)
        self._numbers[identity] = number
        return number
