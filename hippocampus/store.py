"""The vector store: a few blocking operations on collections of statements, implemented with Chroma.

Everything here blocks and is called from a worker's thread. Chroma is imported at the first opening, because that takes
half a second, which no first token should wait for.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

import httpx

from iact.core.errors import MemoryUnavailable
from iact.core.ports import StatementKind
from iact.hippocampus.statement import MemoryScope, Statement, from_metadata

if TYPE_CHECKING:
    import numpy
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult
    from chromadb.config import Settings

_PAGE: Final = 500

_FORM: Final = 2
"""The form of our collections. Those of form 1 hold messages, and are removed."""


@dataclass(frozen=True, slots=True)
class StoredHit:
    """A stored statement."""

    statement: Statement
    vector: Sequence[float]
    """Of its text; empty if it comes from a query."""
    similarity: float = 0.0
    """Its cosine, if it comes from a query."""


@dataclass(frozen=True, slots=True)
class StatementSet:
    """A collection: the statements of one scope, with the vectors of one embedder."""

    scope: MemoryScope
    embedder: str


class Store(Protocol):
    """The operations that memory needs of a vector store. Any call may raise anything, which counts as a failure."""

    @property
    def outdated(self) -> bool:
        """Whether it held collections of an older form, which were removed."""
        ...

    def statement_sets(self) -> list[StatementSet]: ...

    def put(
        self, statement_set: StatementSet, statements: Sequence[Statement], vectors: Sequence[Sequence[float]]
    ) -> None:
        """Write statements, replacing those with the same ids."""
        ...

    def nearest(
        self, statement_set: StatementSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        """For each vector the nearest statements, nearest first; none for a statement set that does not exist."""
        ...

    def get(self, statement_set: StatementSet, ids: Sequence[str]) -> list[StoredHit]: ...

    def all(self, statement_set: StatementSet) -> Iterator[StoredHit]: ...

    def statements(self, statement_set: StatementSet) -> Iterator[Statement]:
        """As `all`, without the vectors, which take ten times as much memory as the texts."""
        ...

    def count(self, statement_set: StatementSet) -> int: ...

    def of_kind(self, statement_set: StatementSet, kind: StatementKind) -> list[Statement]:
        """All statements of one kind in this set."""
        ...

    def of_session(self, statement_set: StatementSet, session: str) -> list[Statement]:
        """All statements of one session in this set."""
        ...

    def delete(self, statement_set: StatementSet, ids: Sequence[str]) -> None: ...

    def drop(self, statement_set: StatementSet) -> None: ...

    def purge(self, statement_sets: Sequence[StatementSet]) -> None:
        """After deletions from these sets, leave no byte of what was deleted on the disk."""
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

        settings = _settings()
        self._directory = directory
        self._client: ClientAPI
        if server:
            host, port, secure = _address(server)
            self._client = chromadb.HttpClient(host=host, port=port, ssl=secure, settings=settings)
        elif directory is not None:
            _finish_move(directory)
            self._client = _persistent(directory, settings)
        else:
            raise MemoryUnavailable("Memory needs a directory or the address of a Chroma server; set one.")

        self._collections: dict[StatementSet, Collection] = {}
        self.outdated = False
        """Whether there were collections of an older form, which are removed."""
        self._whole = threading.RLock()
        """Held while writing and reading. Chroma changes texts and vectors one after the other.

        A read in between gets an error, or texts without vectors.
        """
        try:
            self._remove_outdated()
            if self.outdated and directory is not None:
                self._move_into_new_files(directory)
            self.statement_sets()
        except BaseException:
            self.close()
            raise

    def statement_sets(self) -> list[StatementSet]:
        """All collections of ours; others on the same server are ignored."""
        ours: list[StatementSet] = []
        for collection in self._listed():
            statement_set = _set_of(collection.metadata or {})
            if statement_set is not None:
                self._collections[statement_set] = collection
                ours.append(statement_set)
        return ours

    def _listed(self) -> Iterator[Collection]:
        offset = 0
        while page := self._client.list_collections(limit=_PAGE, offset=offset):
            offset += len(page)
            yield from page

    def _remove_outdated(self) -> None:
        """Remove the collections of an older form. Of messages, only a journal can tell which statements they made."""
        outdated = [collection for collection in self._listed() if _is_outdated(collection.metadata or {})]
        for collection in outdated:
            self._client.delete_collection(collection.name)
        self.outdated = bool(outdated)

    def put(
        self, statement_set: StatementSet, statements: Sequence[Statement], vectors: Sequence[Sequence[float]]
    ) -> None:
        size = min(_PAGE, self._client.get_max_batch_size())
        for start in range(0, len(statements), size):
            part = statements[start : start + size]
            with self._whole:
                collection = self._made(statement_set, _name(statement_set))
                collection.upsert(
                    ids=[statement.id for statement in part],
                    embeddings=_array(vectors[start : start + size]),
                    documents=[statement.text for statement in part],
                    metadatas=[dict(statement.metadata()) for statement in part],
                )

    def nearest(
        self, statement_set: StatementSet, vectors: Sequence[Sequence[float]], count: int
    ) -> list[list[StoredHit]]:
        with self._whole:
            collection = self._collections.get(statement_set)
            if collection is None or not vectors:
                return [[] for _ in vectors]
            answer = collection.query(
                query_embeddings=_array(vectors),
                n_results=count,
                include=["documents", "metadatas", "distances"],
            )

        # Each column has a list for each vector.
        columns = (
            answer["ids"],
            answer["documents"] or [],
            answer["metadatas"] or [],
            answer["distances"] or [],
        )
        hits: list[list[StoredHit]] = []
        for rows in zip(*columns, strict=True):
            of_vector: list[StoredHit] = []
            for identity, text, data, distance in zip(*rows, strict=True):
                statement = from_metadata(identity, text or "", statement_set.scope, data or {})
                of_vector.append(StoredHit(statement, (), 1.0 - float(distance)))
            hits.append(of_vector)
        return hits

    def get(self, statement_set: StatementSet, ids: Sequence[str]) -> list[StoredHit]:
        with self._whole:
            collection = self._collections.get(statement_set)
            if collection is None or not ids:
                return []
            return list(_got(collection, statement_set, ids=list(ids)))

    def all(self, statement_set: StatementSet) -> Iterator[StoredHit]:
        offset = 0
        while True:
            # Not held while the caller works on a page.
            with self._whole:
                collection = self._collections.get(statement_set)
                if collection is None:
                    return
                page = list(_got(collection, statement_set, limit=_PAGE, offset=offset))

            yield from page
            offset += len(page)
            if len(page) < _PAGE:
                return

    def statements(self, statement_set: StatementSet) -> Iterator[Statement]:
        offset = 0
        while True:
            with self._whole:
                collection = self._collections.get(statement_set)
                if collection is None:
                    return
                answer = collection.get(limit=_PAGE, offset=offset, include=["documents", "metadatas"])

            yield from _read(statement_set, answer)
            offset += len(answer["ids"])
            if len(answer["ids"]) < _PAGE:
                return

    def count(self, statement_set: StatementSet) -> int:
        with self._whole:
            collection = self._collections.get(statement_set)
            return 0 if collection is None else collection.count()

    def of_kind(self, statement_set: StatementSet, kind: StatementKind) -> list[Statement]:
        with self._whole:
            collection = self._collections.get(statement_set)
            if collection is None:
                return []
            answer = collection.get(where={"kind": kind}, include=["documents", "metadatas"])
        return list(_read(statement_set, answer))

    def of_session(self, statement_set: StatementSet, session: str) -> list[Statement]:
        with self._whole:
            collection = self._collections.get(statement_set)
            if collection is None:
                return []
            answer = collection.get(where={"session": session}, include=["documents", "metadatas"])
        return list(_read(statement_set, answer))

    def delete(self, statement_set: StatementSet, ids: Sequence[str]) -> None:
        with self._whole:
            collection = self._collections.get(statement_set)
            if collection is not None and ids:
                collection.delete(ids=list(ids))

    def drop(self, statement_set: StatementSet) -> None:
        with self._whole:
            collection = self._collections.pop(statement_set, None)
            if collection is not None:
                self._client.delete_collection(collection.name)

    def purge(self, statement_sets: Sequence[StatementSet]) -> None:
        with self._whole:
            if self._directory is not None:
                self._move_into_new_files(self._directory)
                return
            for statement_set in statement_sets:
                self._rewrite(statement_set)

    def close(self) -> None:
        self._collections.clear()
        self._client.close()  # type: ignore[attr-defined]  # the client has it, but its interface does not declare it
        for client in (self._client, getattr(self._client, "_admin_client", None)):
            session = getattr(getattr(client, "_server", None), "_session", None)
            if isinstance(session, httpx.Client):  # of a server's client, which leaves its sockets open
                session.close()

    def _move_into_new_files(self, directory: Path) -> None:
        """Copy what is left into a new store, and remove the old one with all its files.

        A deletion only marks vectors, and leaves texts in free pages and in the write-ahead log.
        """
        left = [(statement_set, list(self.all(statement_set))) for statement_set in self.statement_sets()]
        fresh, old = _beside(directory)
        shutil.rmtree(fresh, ignore_errors=True)
        copy = ChromaStore(fresh)
        for statement_set, hits in left:
            copy.put(statement_set, [hit.statement for hit in hits], [hit.vector for hit in hits])
        copy.close()

        # At any moment one of both is whole and under a name that the next opening knows (`_finish_move`).
        self.close()
        directory.rename(old)
        fresh.rename(directory)
        shutil.rmtree(old)

        self._client = _persistent(directory, _settings())
        self.statement_sets()

    def _rewrite(self, statement_set: StatementSet) -> None:
        """Copy the remaining statements of a set at a server."""
        hits = list(self.all(statement_set))
        self.drop(statement_set)
        self.put(statement_set, [hit.statement for hit in hits], [hit.vector for hit in hits])

    def _made(self, statement_set: StatementSet, name: str) -> Collection:
        """The collection of a set, which is made if there is none."""
        collection = self._collections.get(statement_set)
        if collection is not None:
            return collection

        metadata = {
            "iact": _FORM,
            "user": statement_set.scope.user,
            "scope": statement_set.scope.kind,
            "name": statement_set.scope.name,
            "embedder": statement_set.embedder,
        }
        collection = self._client.get_or_create_collection(
            name,
            metadata=metadata,
            configuration={"hnsw": {"space": "cosine"}},
            embedding_function=None,
        )
        self._collections[statement_set] = collection
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


def _name(statement_set: StatementSet) -> str:
    return f"{statement_set.scope.key}.{statement_set.embedder}"[:200].rstrip("._-")


def _set_of(metadata: Mapping[str, object]) -> StatementSet | None:
    """The set that a collection is; None if it is not ours."""
    kind = metadata.get("scope")
    if metadata.get("iact") != _FORM or kind not in ("person", "project", "session"):
        return None
    scope = MemoryScope(str(metadata.get("user")), kind, str(metadata.get("name")))
    return StatementSet(scope, str(metadata.get("embedder")))


def _is_outdated(metadata: Mapping[str, Any]) -> bool:
    """Whether a collection is ours, in an older form."""
    form = int(metadata.get("iact") or 0)
    return 0 < form < _FORM


def _got(
    collection: Collection,
    statement_set: StatementSet,
    *,
    ids: list[str] | None = None,
    limit: int | None = None,
    offset: int | None = None,
) -> Iterator[StoredHit]:
    """Statements of a collection, with their vectors: these, or a page of all."""
    answer = collection.get(
        ids=ids, limit=limit, offset=offset, include=["documents", "metadatas", "embeddings"]
    )
    vectors = answer["embeddings"]
    if vectors is None:
        vectors = []
    for statement, vector in zip(_read(statement_set, answer), vectors, strict=True):
        yield StoredHit(statement, vector)


def _read(statement_set: StatementSet, answer: GetResult) -> Iterator[Statement]:
    columns = zip(answer["ids"], answer["documents"] or [], answer["metadatas"] or [], strict=True)
    for identity, text, data in columns:
        yield from_metadata(identity, text or "", statement_set.scope, data or {})


def _settings() -> Settings:
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)


def _beside(directory: Path) -> tuple[Path, Path]:
    """Where a store is while it takes the place of this one, and where this one is meanwhile."""
    return directory.with_name(f"{directory.name}.new"), directory.with_name(f"{directory.name}.old")


def _finish_move(directory: Path) -> None:
    """Finish a move into new files that was cut off, or undo it if the new files may not be whole."""
    fresh, old = _beside(directory)
    if not directory.exists() and fresh.exists():
        fresh.rename(directory)
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)


def _address(server: str) -> tuple[str, int, bool]:
    """A server's host, its port, and whether it is reached over TLS. Raises MemoryUnavailable."""
    address = server if "//" in server else f"http://{server}"
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MemoryUnavailable(
            f"The address of the Chroma server can't be {server!r}; write it like http://host:8000."
        )

    is_secure = parts.scheme == "https"
    usual_port = 443 if is_secure else 8000
    return parts.hostname, parts.port or usual_port, is_secure
