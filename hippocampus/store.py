"""The vector store: a few blocking operations on collections of fragments, implemented with Chroma.

Everything here blocks and is called from a worker's thread. Chroma is imported at the first opening, because that takes
half a second, which no first token should wait for.
"""

from __future__ import annotations

import sqlite3
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import httpx

from iact.core.errors import MemoryUnavailable
from iact.hippocampus.fragment import Fragment, MemoryScope, from_metadata

if TYPE_CHECKING:
    import numpy
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult
    from chromadb.config import Settings

_PAGE: Final = 500

_HEADER: Final = struct.Struct("<iQQQQ")
"""The beginning of a vector file's header: version, offset of level 0, capacity, number of elements, bytes of each."""


@dataclass(frozen=True, slots=True)
class StoredHit:
    """A stored fragment: from a query with its `similarity`, otherwise with its `vector`."""

    fragment: Fragment
    vector: Sequence[float]
    similarity: float = 0.0


@dataclass(frozen=True, slots=True)
class FragmentSet:
    """A collection: the fragments of one scope, with the vectors of one embedder."""

    scope: MemoryScope
    embedder: str


class Store(Protocol):
    """The operations that memory needs of a vector store. Any call may raise anything, which counts as a failure."""

    def fragment_sets(self) -> list[FragmentSet]: ...

    def put(
        self, fragment_set: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        """Write fragments, replacing those with the same ids."""
        ...

    def nearest(
        self, fragment_set: FragmentSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        """For each vector the nearest fragments, nearest first; none for a fragment set that does not exist."""
        ...

    def get(self, fragment_set: FragmentSet, ids: Sequence[str]) -> list[StoredHit]: ...

    def all(self, fragment_set: FragmentSet) -> Iterator[StoredHit]: ...

    def fragments(self, fragment_set: FragmentSet) -> Iterator[Fragment]:
        """As `all`, without the vectors, which take ten times as much memory as the texts."""
        ...

    def count(self, fragment_set: FragmentSet) -> int: ...

    def goal(self, fragment_set: FragmentSet, session: str) -> Fragment | None:
        """The first goal of a session in this fragment set. Slow: it filters."""
        ...

    def delete(self, fragment_set: FragmentSet, ids: Sequence[str]) -> None: ...

    def drop(self, fragment_set: FragmentSet) -> None: ...

    def scrub(self, fragment_sets: Sequence[FragmentSet]) -> None:
        """Rewrite sets after deletions, so that no byte of the deleted fragments is left on the disk."""
        ...

    def close(self) -> None: ...


class ChromaStore:
    """Chroma, embedded in a directory of ours or at a server's address."""

    def __init__(self, directory: Path | None, server: str = "") -> None:
        """Open it.

        Raises:
            Exception: any error of Chroma; the directory may be damaged.
        """
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        self._directory = directory
        self._client: ClientAPI
        if server:
            host, port, secure = _address(server)
            self._client = chromadb.HttpClient(host=host, port=port, ssl=secure, settings=settings)
        elif directory is not None:
            self._client = _persistent(directory, settings)
        else:
            raise MemoryUnavailable("Memory needs a directory or the address of a Chroma server; set one.")
        self._collections: dict[FragmentSet, Collection] = {}
        self._whole = threading.RLock()
        """Held while writing and reading. Chroma changes texts and vectors one after the other.

        A read in between gets an error, or texts without vectors.
        """
        try:
            self.fragment_sets()
        except BaseException:
            self.close()
            raise

    def fragment_sets(self) -> list[FragmentSet]:
        """All collections of ours; others on the same server are ignored."""
        found: list[FragmentSet] = []
        offset = 0
        while page := self._client.list_collections(limit=_PAGE, offset=offset):
            offset += len(page)
            for collection in page:
                fragment_set = _shelf(collection.metadata or {})
                if fragment_set is not None:
                    self._collections[fragment_set] = collection
                    found.append(fragment_set)
        return found

    def put(
        self, fragment_set: FragmentSet, fragments: Sequence[Fragment], vectors: Sequence[Sequence[float]]
    ) -> None:
        size = min(_PAGE, self._client.get_max_batch_size())
        for start in range(0, len(fragments), size):
            part = fragments[start : start + size]
            with self._whole:
                self._made(fragment_set, _name(fragment_set)).upsert(
                    ids=[one.id for one in part],
                    embeddings=_array(vectors[start : start + size]),
                    documents=[one.text for one in part],
                    metadatas=[dict(one.metadata()) for one in part],
                )

    def nearest(
        self, fragment_set: FragmentSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        with self._whole:
            collection = self._collections.get(fragment_set)
            if collection is None or not vectors:
                return [[] for _ in vectors]
            answer = collection.query(
                query_embeddings=_array(vectors),
                n_results=count,
                include=["documents", "metadatas", "distances"],
            )
        columns = zip(
            answer["ids"],
            answer["documents"] or [],
            answer["metadatas"] or [],
            answer["distances"] or [],
            strict=True,
        )
        return [
            [
                StoredHit(
                    from_metadata(identity, text or "", fragment_set.scope, data or {}),
                    (),
                    1.0 - float(distance),
                )
                for identity, text, data, distance in zip(*rows, strict=True)
            ]
            for rows in columns
        ]

    def get(self, fragment_set: FragmentSet, ids: Sequence[str]) -> list[StoredHit]:
        with self._whole:
            collection = self._collections.get(fragment_set)
            return (
                [] if collection is None or not ids else list(_got(collection, fragment_set, ids=list(ids)))
            )

    def all(self, fragment_set: FragmentSet) -> Iterator[StoredHit]:
        offset = 0
        while True:
            with self._whole:
                collection = self._collections.get(fragment_set)
                page = (
                    []
                    if collection is None
                    else list(_got(collection, fragment_set, limit=_PAGE, offset=offset))
                )
            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def fragments(self, fragment_set: FragmentSet) -> Iterator[Fragment]:
        offset = 0
        while True:
            with self._whole:
                collection = self._collections.get(fragment_set)
                if collection is None:
                    return
                answer = collection.get(limit=_PAGE, offset=offset, include=["documents", "metadatas"])
            yield from _read(fragment_set, answer)
            offset += len(answer["ids"])
            if len(answer["ids"]) < _PAGE:
                return

    def count(self, fragment_set: FragmentSet) -> int:
        with self._whole:
            collection = self._collections.get(fragment_set)
            return 0 if collection is None else collection.count()

    def goal(self, fragment_set: FragmentSet, session: str) -> Fragment | None:
        with self._whole:
            collection = self._collections.get(fragment_set)
            if collection is None:
                return None
            answer = collection.get(
                where={"$and": [{"session": session}, {"kind": "goal"}]}, include=["documents", "metadatas"]
            )
        return min(_read(fragment_set, answer), key=lambda one: one.record, default=None)

    def delete(self, fragment_set: FragmentSet, ids: Sequence[str]) -> None:
        with self._whole:
            collection = self._collections.get(fragment_set)
            if collection is not None and ids:
                collection.delete(ids=list(ids))

    def drop(self, fragment_set: FragmentSet) -> None:
        with self._whole:
            collection = self._collections.pop(fragment_set, None)
            if collection is not None:
                self._client.delete_collection(collection.name)

    def scrub(self, fragment_sets: Sequence[FragmentSet]) -> None:
        for fragment_set in fragment_sets:
            with self._whole:
                self._rewrite(fragment_set)
        if self._directory is not None:
            _vacuum(self._directory / "chroma.sqlite3")
            _blank(self._directory)

    def close(self) -> None:
        self._collections.clear()
        self._client.close()  # type: ignore[attr-defined]  # the client has it, but its interface does not declare it
        if self._directory is not None:
            _blank(self._directory)
        for client in (self._client, getattr(self._client, "_admin_client", None)):
            session = getattr(getattr(client, "_server", None), "_session", None)
            if isinstance(session, httpx.Client):  # of a server's client, which leaves its sockets open
                session.close()

    def _rewrite(self, fragment_set: FragmentSet) -> None:
        """Copy the remaining fragments. A deletion only marks vectors, and leaves texts in the write-ahead log."""
        hits = list(self.all(fragment_set))
        self.drop(fragment_set)
        if hits:
            self.put(fragment_set, [hit.fragment for hit in hits], [hit.vector for hit in hits])

    def _made(self, fragment_set: FragmentSet, name: str) -> Collection:
        collection = self._collections.get(fragment_set)
        if collection is None:
            collection = self._client.get_or_create_collection(
                name,
                metadata={
                    "iact": 1,
                    "user": fragment_set.scope.user,
                    "scope": fragment_set.scope.kind,
                    "name": fragment_set.scope.name,
                    "embedder": fragment_set.embedder,
                },
                configuration={"hnsw": {"space": "cosine"}},
                embedding_function=None,
            )
            self._collections[fragment_set] = collection
        return collection


def _persistent(directory: Path, settings: Settings) -> ClientAPI:
    import chromadb
    from chromadb.api.shared_system_client import SharedSystemClient

    try:
        return chromadb.PersistentClient(str(directory), settings=settings)
    except BaseException:
        # Chroma keeps a client that failed to start under its path, and would return it at the next opening.
        SharedSystemClient._identifier_to_system.pop(str(directory), None)
        raise


def _array(vectors: Sequence[Sequence[float]]) -> numpy.ndarray:
    import numpy

    return numpy.asarray(vectors, dtype=numpy.float32)


def _name(fragment_set: FragmentSet) -> str:
    return f"{fragment_set.scope.key}.{fragment_set.embedder}"[:200].rstrip("._-")


def _shelf(metadata: Mapping[str, object]) -> FragmentSet | None:
    kind = metadata.get("scope")
    if metadata.get("iact") != 1 or kind not in ("user", "project", "session"):
        return None
    scope = MemoryScope(str(metadata.get("user")), kind, str(metadata.get("name")))
    return FragmentSet(scope, str(metadata.get("embedder")))


def _got(
    collection: Collection,
    fragment_set: FragmentSet,
    *,
    ids: list[str] | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Iterator[StoredHit]:
    answer = collection.get(
        ids=ids, limit=limit, offset=offset, include=["documents", "metadatas", "embeddings"]
    )
    vectors = answer["embeddings"]
    for fragment, vector in zip(_read(fragment_set, answer), [] if vectors is None else vectors, strict=True):
        yield StoredHit(fragment, vector)


def _read(fragment_set: FragmentSet, answer: GetResult) -> Iterator[Fragment]:
    columns = zip(answer["ids"], answer["documents"] or [], answer["metadatas"] or [], strict=True)
    return (
        from_metadata(identity, text or "", fragment_set.scope, data or {})
        for identity, text, data in columns
    )


def _vacuum(path: Path) -> None:
    """Merge the full-text index and rewrite the file, which is the only way to remove the bytes of deleted rows."""
    with closing(sqlite3.connect(path, timeout=10, isolation_level=None)) as database:
        database.execute(
            "INSERT INTO embedding_fulltext_search(embedding_fulltext_search) VALUES ('optimize')"
        )
        database.execute("VACUUM")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _blank(directory: Path) -> None:
    """Overwrite the spare room for more elements in Chroma's vector files.

    Chroma writes that room from uninitialised memory of the process, which may contain any text of ours.
    """
    for data in directory.glob("*/data_level0.bin"):
        try:
            _, _, room, used, size = _HEADER.unpack_from(data.with_name("header.bin").read_bytes())
            if used <= room and data.stat().st_size == room * size:
                with data.open("r+b") as stream:
                    stream.seek(used * size)
                    stream.write(bytes((room - used) * size))
        except (OSError, struct.error):
            continue


def _address(server: str) -> tuple[str, int, bool]:
    parts = urlsplit(server if "//" in server else f"http://{server}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MemoryUnavailable(
            f"The address of the Chroma server can't be {server!r}; write it like http://host:8000."
        )
    secure = parts.scheme == "https"
    return parts.hostname, parts.port or (443 if secure else 8000), secure
