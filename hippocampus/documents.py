"""Finds the documents that a text is about, by meaning: for showing documentation just when it is needed.

Documents are few and change rarely, so their vectors are cached, and a query costs one embedding. A document no nearer
than unrelated texts are to one another is not a match.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from iact.core.ports import Embedder
from iact.hippocampus.embedding import noise_floor
from iact.hippocampus.ranking import dot

_KEPT: Final = 4_096
"""The most vectors in the cache; a catalogue has tens or hundreds of functions."""


class Documents:
    """The documents of one embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Sequence[float]] = {}
        self._floor: float | None = None

    async def about(self, text: str, documents: Mapping[str, str]) -> list[str]:
        """Names of the documents that `text` is about, the nearest first.

        Raises:
            MemoryUnavailable: the embedding model can't be reached.
        """
        if not documents or not text.strip():
            return []
        await self.read(list(documents.values()))
        (asked,) = await self._embedder.embed([text])
        near = {name: dot(asked, self._vectors[document]) for name, document in documents.items()}
        floor = self._floor or 0.0
        return sorted((name for name in near if near[name] >= floor), key=lambda name: -near[name])

    async def read(self, documents: Sequence[str]) -> None:
        """Make sure that the vectors of these documents are cached.

        Raises:
            MemoryUnavailable: the embedding model can't be reached.
        """
        if self._floor is None:
            self._floor = await noise_floor(self._embedder)
        fresh = [one for one in dict.fromkeys(documents) if one not in self._vectors]
        if fresh:
            vectors = await self._embedder.embed(fresh)
            if len(self._vectors) + len(fresh) > _KEPT:
                self._vectors = {one: self._vectors[one] for one in documents if one in self._vectors}
            self._vectors.update(zip(fresh, vectors, strict=True))
