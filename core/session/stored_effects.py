"""The pending changes of a live directory, for a person, while the session is not open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from iact.core.errors import UsageError
from iact.core.journal.file import Contents, Journal
from iact.core.ports import Clock, OpenLive
from iact.core.session.effects import STORE, SessionEffects
from iact.core.session.live import Live
from iact.core.tree.apply import read_tree

NO_OVERLAY = (
    "This session does not work in a directory of yours through an overlay, so it has no waiting "
    "changes. List the versions of its own files with: iact workspace log --session ID."
)


@asynccontextmanager
async def effects_at_rest(
    journal: Journal, contents: Contents, open_live: OpenLive, clock: Clock
) -> AsyncIterator[SessionEffects]:
    """Open the effects of a session whose journal was opened for this; the journal is closed at the end.

    Raises:
        UsageError: it has no overlay of a directory.
        WorkspaceError: the overlay can't be opened.
    """
    try:
        tree = read_tree(contents.records, journal.blob, strict=False)
        if not tree.live.overlay:
            raise UsageError(NO_OVERLAY)
        files = await asyncio.to_thread(open_live, Path(tree.workspace), journal.directory / STORE)
        effects = SessionEffects(Live(journal, tree, clock, contents.records), files)
        try:
            yield effects
        finally:
            await effects.close()
    finally:
        await journal.close()
