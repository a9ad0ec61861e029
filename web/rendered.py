"""Records as wire messages, made once for everybody who watches a session, and no sooner than wanted.

Rendering Markdown is what costs most in showing a session. Fifty clients of one session see the same
records, so what was rendered is kept, the newest of it; and a client that shows a window of a long journal
asks for what is in its window, so the rest goes without.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

from core.errors import JournalError
from core.journal.file import read_blob
from core.journal.record import Record
from web.ports import Session
from web.records import Fields, bare_message, blob_of, record_message
from web.render import NONE, IsAction, Known, looks_like_action

_log = logging.getLogger("iact.web")

KEPT: Final = 1024
"""How many rendered records of a session are kept."""

_LARGEST: Final = 64 * 1024
"""Characters of HTML beyond which a record is rendered anew each time: such are few, and would fill the memory."""


class Rendered:
    """What was rendered, of every session that is watched; forgotten with the session."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Session, OrderedDict[int, Fields]] = WeakKeyDictionary()

    async def message(self, session: Session, record: Record) -> Fields:
        """The wire message of a record, with its HTML. Not to be changed by whoever gets it."""
        kept = self._of.setdefault(session, OrderedDict())
        found = kept.get(record.n)
        if found is not None:
            kept.move_to_end(record.n)
            return found
        made = await _render(session, record)
        if len(str(made["html"])) <= _LARGEST:
            kept[record.n] = made
            if len(kept) > KEPT:
                kept.popitem(last=False)
        return made

    async def several(self, session: Session, numbers: Sequence[int]) -> list[Fields]:
        """The HTML of records, each with `n`, `html`, and `messages` for a turn; numbers beyond the journal are skipped."""
        records = session.records()
        found: list[Fields] = []
        for n in numbers:
            if 1 <= n <= len(records):
                message = await self.message(session, records[n - 1])
                found.append({key: message[key] for key in ("n", "html", "messages") if key in message})
                # Others have their turn, however much one client wants to see.
                await asyncio.sleep(0)
        return found


def bare(session: Session, record: Record) -> Fields:
    """The wire message of a record without HTML, for a client that will ask for it when it is in sight."""
    return bare_message(record, _eyes(session, record)[0])


def _eyes(session: Session, record: Record) -> tuple[IsAction, Known]:
    """Which words begin an action for the record's agent, and which variables it has."""
    agent = session.state.agents.get(record.agent)
    if agent is None:
        return looks_like_action, NONE
    return session.state.registry(record.agent).is_action, agent.table


async def _render(session: Session, record: Record) -> Fields:
    digest = blob_of(record)
    content = None
    if digest is not None:
        content = await asyncio.to_thread(_blob_text, session.journal.parent, digest)
    return record_message(record, content, *_eyes(session, record))


def _blob_text(folder: Path, digest: str) -> str | None:
    """A blob as text; None if it can't be read, which costs nothing but the view of it."""
    try:
        return read_blob(folder, digest).decode("utf-8", "replace")
    except JournalError as error:
        _log.warning("A result can't be shown: %s", error)
        return None
