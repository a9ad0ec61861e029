"""The state of a session at any record: its tree, an agent's variables, and what a model saw.

All of it follows from the session's records, which are in memory, and is computed in a thread, because a long journal
takes a while; a question about now is answered by the session itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from iact.core.errors import UsageError
from iact.core.records.record import Record
from iact.core.stored.blobs import blob_reader
from iact.core.stored.replay import SeenContext, context_of, view_of
from iact.core.views.timeline import Timeline
from iact.core.views.view import NodeView, Variable, View
from iact.web.ports import Session


class RecordHistory:
    """The history of one session, for one client."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._blobs = blob_reader(session.journal.parent)
        self._timeline: Timeline | None = None
        self._one = asyncio.Lock()

    async def nodes(self, at: int) -> Sequence[NodeView]:
        """Every agent as it was after record `at`. The first call takes as long as reading the journal does.

        Raises:
            UsageError: there is no such record.
            JournalError: a required blob can't be read.
        """
        self._until(at)
        async with self._one:
            if self._timeline is None or self._timeline.last < at:
                self._timeline = await asyncio.to_thread(_grown, self._timeline, self._records(), self._blobs)
            return self._timeline.at(at)

    async def context(self, path: str, at: int | None) -> SeenContext:
        """What a model saw at the newest turn of agent `path` at or before record `at`.

        Raises:
            UsageError: the agent had no turn there.
        """
        async with self._one:
            return await asyncio.to_thread(context_of, self._records(), self._blobs, path, at=at)

    async def variables(self, path: str, at: int | None) -> Sequence[Variable]:
        """The variables of agent `path`, the most recently bound first.

        Raises:
            UsageError: there is no such agent or record.
        """
        return (await self._view(at)).variables(path)

    async def variable(self, path: str, name: str, at: int | None) -> tuple[Variable, bytes]:
        """One variable and its content.

        Raises:
            UsageError: there is no such agent, record or variable.
        """
        found = (await self._view(at)).variable(path, name)
        return found, await asyncio.to_thread(found.load)

    async def _view(self, at: int | None) -> View:
        if at is None:
            return self._session.view
        records = self._until(at)
        async with self._one:
            return await asyncio.to_thread(view_of, records, self._blobs)

    def _records(self) -> Sequence[Record]:
        return list(self._session.records())

    def _until(self, at: int) -> Sequence[Record]:
        records = self._records()
        if not 1 <= at <= len(records):
            raise UsageError(f"There is no record {at}; the journal has 1 to {len(records)}.")
        return records[:at]


def _grown(timeline: Timeline | None, records: Sequence[Record], blobs: Callable[[str], bytes]) -> Timeline:
    """The timeline with all of `records`. After a record that it can't take, it must not be used any more."""
    timeline = timeline or Timeline(blobs)
    timeline.extend(records[timeline.last :])
    return timeline
