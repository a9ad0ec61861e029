"""What waits in a live directory, for a person, while nobody has the session open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from core.errors import UsageError
from core.journal.file import Journal
from core.journal.seal import Sealer
from core.ports import Clock, OpenLive
from core.session.effects import STORE, Effects
from core.session.live import Live
from core.tree.apply import read_tree

NO_OVERLAY = (
    "This session does not work in a directory of yours through an overlay, so no changes wait in it; the versions of "
    "its own files are listed by iact workspace log --session ID."
)


@asynccontextmanager
async def effects_at_rest(
    directory: Path, open_live: OpenLive, clock: Clock, sealer: Sealer
) -> AsyncIterator[Effects]:
    """The effects of the session in `directory`, which is open as long as this lasts.

    Raises:
        UsageError: it has no overlay of a directory.
        ForeignSession: it is not the sealer's.
        JournalLocked: another process has it open.
        WorkspaceError: the overlay can't be opened.
    """
    journal, contents = Journal.open(directory, sealer)
    try:
        tree = read_tree(contents.records, journal.blob, strict=False)
        if not tree.live.overlay:
            raise UsageError(NO_OVERLAY)
        files = await asyncio.to_thread(open_live, Path(tree.workspace), directory / STORE)
        effects = Effects(Live(journal, tree, clock, contents.records), files)
        try:
            yield effects
        finally:
            await effects.close()
    finally:
        await journal.close()
