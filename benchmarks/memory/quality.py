"""Measures recall@5, recall@10 and MRR of both ways on the same conversations, by type of question."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Final, Protocol

import anyio
import chromadb
import numpy
from chromadb.config import Settings

from benchmarks.memory.locomo import Conversation, Turn
from iact.core.ports import NewStatement
from iact.hippocampus import UserMemory, WordEmbedder, open_hippocampus
from iact.hippocampus.ranking import Weights

DEPTH: Final = 10

_RECORDS: Final = 4
"""The records that a message of a dialogue has in a journal: what was said, what was recalled, the turn and the reply."""


@dataclass(frozen=True, slots=True)
class Score:
    """Means over `count` questions."""

    count: int
    recall5: float
    recall10: float
    mrr: float


class Way(Protocol):
    """A way to find turns. Returns ids in the form `conversation/turn`, best first."""

    async def find(self, question: str) -> list[str]: ...


class FixedClock:
    """A clock that stands at the day after the last turn."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return monotonic()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


class Plain:
    """Chroma's nearest ten."""

    def __init__(self, collection: chromadb.Collection, embedder: WordEmbedder) -> None:
        self._collection = collection
        self._embedder = embedder

    async def find(self, question: str) -> list[str]:
        vectors = numpy.asarray(await self._embedder.embed([question]), dtype=numpy.float32)
        return self._collection.query(query_embeddings=vectors, n_results=DEPTH, include=[])["ids"][0]


class Ours:
    """The Hippocampus, filled turn by turn and queried as by an agent's RECALL. `names`: turns by their records."""

    def __init__(self, memory: UserMemory, names: dict[str, str]) -> None:
        self.memory = memory
        self.names = names

    async def find(self, question: str) -> list[str]:
        rows = await self.memory.search(question, limit=2 * DEPTH, project="", session="now")
        found = dict.fromkeys(self.names[row.id.split(".")[0]] for row in rows)
        return list(found)[:DEPTH]


@asynccontextmanager
async def plain(conversations: Sequence[Conversation]) -> AsyncIterator[Plain]:
    """All turns in one collection."""
    embedder = WordEmbedder()
    with tempfile.TemporaryDirectory() as place:
        client = chromadb.PersistentClient(place, settings=Settings(anonymized_telemetry=False))
        collection = client.create_collection(
            "plain", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )
        turns = [(f"{one.name}/{turn.id}", turn) for one in conversations for turn in one.turns]
        vectors = numpy.asarray(await embedder.embed([turn.text for _, turn in turns]), dtype=numpy.float32)
        for start in range(0, len(turns), 1000):
            part = turns[start : start + 1000]
            collection.add(
                ids=[name for name, _ in part],
                embeddings=vectors[start : start + 1000],
                documents=[turn.text for _, turn in part],
            )
        yield Plain(collection, embedder)


@asynccontextmanager
async def ours(conversations: Sequence[Conversation], weights: Weights) -> AsyncIterator[Ours]:
    """Remember every turn as one statement."""
    now = max(turn.at for one in conversations for turn in one.turns) + timedelta(days=1)
    names: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        async with open_hippocampus(
            Path(place), WordEmbedder(), clock=FixedClock(now), weights=weights, budget=5.0
        ) as opened:
            memory = opened.of("someone")
            for one in conversations:
                for turn in one.turns:
                    statement = _statement(one, turn)
                    names[f"{statement.session}/{statement.record}"] = f"{one.name}/{turn.id}"
                    memory.remember(statement)
            await opened.settled()
            yield Ours(memory, names)


def _statement(one: Conversation, turn: Turn) -> NewStatement:
    session = f"{one.name}-{turn.session}"
    return NewStatement(
        session, _RECORDS * turn.n, "/", turn.at.isoformat(), turn.text, "fact", "person", "remembered"
    )


async def measure(way: Way, conversations: Sequence[Conversation]) -> dict[str, Score]:
    """Scores by type of question, and over all."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for one in conversations:
        for question in one.questions:
            wanted = {f"{one.name}/{identity}" for identity in question.evidence}
            ranked = await way.find(question.text)
            scores = (_recall(ranked[:5], wanted), _recall(ranked[:10], wanted), _mrr(ranked, wanted))
            found[question.type].append(scores)
            found["all"].append(scores)
    return {
        kind: Score(len(rows), *(sum(row[n] for row in rows) / len(rows) for n in range(3)))
        for kind, rows in sorted(found.items())
    }


def _recall(ranked: Sequence[str], wanted: set[str]) -> float:
    return len(wanted.intersection(ranked)) / len(wanted)


def _mrr(ranked: Sequence[str], wanted: set[str]) -> float:
    return next((1 / n for n, name in enumerate(ranked, 1) if name in wanted), 0.0)


def joined(several: Sequence[dict[str, Score]]) -> dict[str, Score]:
    """Scores over several pools. Each question has the same weight."""
    kinds = sorted({kind for one in several for kind in one})
    return {kind: _mean([one[kind] for one in several if kind in one]) for kind in kinds}


def _mean(scores: Sequence[Score]) -> Score:
    count = sum(one.count for one in scores)
    return Score(
        count,
        sum(one.recall5 * one.count for one in scores) / count,
        sum(one.recall10 * one.count for one in scores) / count,
        sum(one.mrr * one.count for one in scores) / count,
    )
