"""Opens and closes the store. Blocking; runs in the writing thread.

If an embedded store can't be opened although nothing else is wrong, it is damaged: it is moved aside, and an empty one
takes its place, to be filled from the journals.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Clock
from iact.hippocampus.decisions import Decisions
from iact.hippocampus.marker_files import MarkerFiles
from iact.hippocampus.ownership import Ownership
from iact.hippocampus.ranking import Weights
from iact.hippocampus.reader import MemoryReader
from iact.hippocampus.store import Store
from iact.hippocampus.writer import MemoryWriter

_CONVERTED: Final = (
    "Memory holds statements now instead of whole messages. Those in your earlier messages are being taken over; the rest "
    "is only in the journals. To see them: iact memory list"
)
"""What people are told once, when a memory of an older version is opened."""

StoreOpener: TypeAlias = Callable[[Path | None, str], Store]


@dataclass(frozen=True, slots=True)
class OpenStore:
    """An open store, with the objects that work on it."""

    ownership: Ownership | None
    """The lock on its directory; None: it is at a server."""
    store: Store
    writer: MemoryWriter
    reader: MemoryReader
    decisions: Decisions
    lacking: bool
    """Whether journals may contain events that it lacks."""
    news: str
    """A sentence about it for people, or ""."""


@dataclass(frozen=True, slots=True)
class StoreLifecycle:
    """Where a store is, and how it is opened."""

    directory: Path
    """Where everything is that is not at a server."""
    server: str
    """The address of a Chroma server; empty: the store is in the directory."""
    embedder: str
    """The name of the embedder whose vectors it holds."""
    weights: Weights
    markers: MarkerFiles
    open_store: StoreOpener
    beside: Path | None
    """The folder for a copy of the decisions."""
    clock: Clock

    def look(self) -> None:
        """Check that no other process has the store, which is known at once.

        Raises:
            MemoryUnavailable: another process has it.
        """
        if not self.server:
            Ownership(self.directory).release()

    def open(self, floor: float, *, suspect: bool) -> OpenStore:
        """Lock the directory, read the decisions, and open the store. `suspect`: check for damage after a failed call.

        Raises:
            MemoryUnavailable: another process has it, or the decisions can't be read.
            Exception: any error of the store.
        """
        ownership = None if self.server else Ownership(self.directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            decisions = Decisions(self.directory, self.beside, clock=self.clock)
            store, news = self._store(suspect)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise

        was_unclean = self.markers.opened()
        if store.outdated:
            news = news or _CONVERTED
        return OpenStore(
            ownership=ownership,
            store=store,
            writer=MemoryWriter(store, self.embedder),
            reader=MemoryReader(store, self.embedder, weights=self.weights, floor=floor),
            decisions=decisions,
            lacking=was_unclean or store.outdated,
            news=news,
        )

    def close(self, opened: OpenStore, *, missed: bool) -> None:
        """Close a store; `missed`: it lacks something."""
        try:
            opened.store.close()
        finally:
            if not missed:
                self.markers.clean()
            if opened.ownership is not None:
                opened.ownership.release()

    @property
    def _damaged(self) -> Path:
        """Where a damaged store is moved to."""
        return self.directory / "damaged"

    def remove_damaged(self) -> None:
        """Remove a damaged store that was moved aside, with its content."""
        shutil.rmtree(self._damaged, ignore_errors=True)

    def _store(self, suspect: bool) -> tuple[Store, str]:
        """Open the store. Also returns a sentence about a damaged one that it replaces, or ""."""
        if self.server:
            return self.open_store(None, self.server), ""

        place = self.directory / "chroma"
        try:
            store = self.open_store(place, "")
            if suspect:
                _probe(store)
        except (OSError, ImportError, MemoryUnavailable):
            raise
        except Exception as error:
            # Another program has it open: it is whole.
            if "locked" in str(error).lower():
                raise
            self._move_aside(place)
            news = (
                f"The memory in {place} was damaged ({type(error).__name__}); it was moved to {self._damaged} "
                "and is being rebuilt from the journals."
            )
            return self.open_store(place, ""), news
        return store, ""

    def _move_aside(self, place: Path) -> None:
        """Move a damaged store away. The next opening catches up, even if this one is cut off."""
        self.markers.doubt()
        shutil.rmtree(self._damaged, ignore_errors=True)
        if place.exists():
            place.rename(self._damaged)


def _probe(store: Store) -> None:
    """Read from every set of statements, so that damage shows now."""
    for statement_set in store.statement_sets():
        hit = next(iter(store.all(statement_set)), None)
        if hit is not None:
            store.nearest(statement_set, [hit.vector], 1)
