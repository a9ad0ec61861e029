"""The pending changes of a live directory, for a person, while the session is not open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from iact.core.clock import SystemClock
from iact.core.errors import UsageError
from iact.core.ports import OpenLive
from iact.core.session.effects import STORE, SessionEffects
from iact.core.session.live import Live
from iact.core.stored.store import NO_OVERLAY, SessionStore
from iact.core.tree.apply import read_tree


@asynccontextmanager
async def effects_at_rest(
    store: SessionStore, session_id: str, open_live: OpenLive
) -> AsyncIterator[SessionEffects]:
    """Open the pending changes of a stored session, and keep it locked meanwhile.

    Raises:
        UsageError: there is no such session, or it has no overlay of a directory.
        ForeignSession: this installation did not make it.
        JournalLocked: it is open elsewhere.
        WorkspaceError: the overlay can't be opened.
    """
    journal, contents = store.open(session_id)
    try:
        tree = read_tree(contents.records, journal.blob, strict=False)
        if not tree.live.overlay:
            raise UsageError(NO_OVERLAY)

        files = await asyncio.to_thread(open_live, Path(tree.workspace), journal.directory / STORE)
        effects = SessionEffects(Live(journal, tree, SystemClock(), contents.records), files)
        try:
            yield effects
        finally:
            await effects.close()
    finally:
        await journal.close()
