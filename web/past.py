"""What a session was, at any record: its tree, an agent's variables, and what a model saw.

All of it is read from the journal, in a thread, because a long one takes a while; a question about now is
answered from the session itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.errors import UsageError
from core.journal.file import read_blob
from core.language.variables import Table, Value
from core.records.record import Record
from core.session.replay import SeenContext, context, replay
from core.tree.tree import Tree
from core.tree.uploads import waiting
from web.ports import Session
from web.timeline import Node, Timeline


class Past:
    """Of one session, for one client."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._timeline: Timeline | None = None
        self._one = asyncio.Lock()

    async def nodes(self, at: int) -> Sequence[Node]:
        """Every agent as it was behind record `at`; the first time takes as long as reading the journal does.

        Raises:
            UsageError: there is no such record.
            JournalError: a blob that is needed can't be read.
        """
        records = self._session.records()
        if not 1 <= at <= len(records):
            raise UsageError(f"There is no record {at}; the journal has 1 to {len(records)}.")
        async with self._one:
            if self._timeline is None or self._timeline.last < at:
                self._timeline = await asyncio.to_thread(
                    _grown, self._timeline, list(records), self._session.journal.parent
                )
            return self._timeline.at(at)

    async def context(self, path: str, at: int | None) -> SeenContext:
        """What a model saw at the newest turn of agent `path` at or before record `at`.

        Raises:
            UsageError: the agent had no turn there.
        """
        async with self._one:
            return await asyncio.to_thread(context, self._session.journal, path, at=at)

    async def variables(self, path: str, at: int | None) -> Table:
        """The variables of agent `path`.

        Raises:
            UsageError: there is no such agent or record.
        """
        tree = await self._tree(at)
        if path not in tree.agents:
            raise UsageError(f"There is no agent {path!r} in this session.")
        # What waits to be read counts, so that a file that was uploaded is there at once.
        return waiting(tree.agents[path])

    async def variable(self, path: str, name: str, at: int | None) -> tuple[Value, bytes]:
        """One variable and its content.

        Raises:
            UsageError: there is no such agent, record or variable.
        """
        table: Mapping[str, Value] = await self.variables(path, at)
        if name not in table:
            raise UsageError(f"The agent {path} has no variable ${name}.")
        return table[name], await asyncio.to_thread(table[name].load)

    async def _tree(self, at: int | None) -> Tree:
        if at is None:
            return self._session.state
        async with self._one:
            return (await asyncio.to_thread(replay, self._session.journal, at=at)).tree


def _grown(timeline: Timeline | None, records: Sequence[Record], folder: Path) -> Timeline:
    """The timeline with all of `records`. One that met a record it can't take is of no further use."""
    timeline = timeline or Timeline(lambda digest: read_blob(folder, digest))
    timeline.extend(records[timeline.last :])
    return timeline
