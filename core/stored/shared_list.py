"""The list of sessions that several hosts share: what each host publishes about its open sessions, as rows in their
store.

A row is written when the status or the name of a session changes. Each row gets a new object name (time, session,
random part), because nothing in the store is ever changed. The newest row of a session counts, and earlier ones are
removed. Rows are only for display, and nothing depends on them: to open a session, its journal is read. Rows are
encrypted like other files of hosts, so that only hosts can read or forge a title. One row remains of a deleted session,
to say so: hosts with a copy of its journal no longer show it.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from pydantic import TypeAdapter, ValidationError

from iact.core.errors import JournalError
from iact.core.journal.documents import Cipher
from iact.core.ports import JSON, Clock, ObjectStore
from iact.core.stored.listing import SessionInfo, ToldRow

_LOG: Final = logging.getLogger(__name__)

_FOLDER: Final = "list/"
_NAME: Final = re.compile(r"list/(\d{16})-(.+)-(\d{10})-[0-9a-f]{8}")
"""The name of a row: microseconds since 1970, the session, how many records it had, and a random part."""
_APART: Final = 600_000_000
"""How far the clocks of hosts may differ, in microseconds, without a row being missed."""
_LOOK: Final = 2.0
"""For how many seconds a reading of the store is reused."""
_MOST: Final = 64 * 1024
_LAST: Final = 9_999_999_999
"""More records than any session has: such a row counts no matter what is published later."""

_ROW: Final = TypeAdapter(SessionInfo | None)


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a row is. The row with the most records is the newest, whatever the clocks of hosts say."""

    records: str
    time: str
    name: str


class SharedList:
    """The rows of all hosts of a store. All methods block, and may be called from any thread."""

    def __init__(self, store: ObjectStore, cipher: Cipher, clock: Clock) -> None:
        self._store = store
        self._cipher = cipher
        self._clock = clock
        self._places: dict[str, _Place] = {}
        self._rows: dict[str, ToldRow] = {}
        self._told: dict[str, _Place] = {}
        self._last = 0
        self._looked: float | None = None
        self._lock = threading.Lock()

    def tell(self, row: SessionInfo, *, gone: bool = False) -> None:
        """Publish the status of a session. `gone`: it was deleted.

        Raises:
            StoreUnavailable: it can't be stored now.
        """
        self._say(row.id, row.records, None if gone else asdict(replace(row, open=False)))

    def purged(self, session: str) -> None:
        """Publish that a session was permanently deleted; this overrides what hosts publish that do not know it yet.

        Raises:
            StoreUnavailable: it can't be stored now.
        """
        self._say(session, _LAST, None)

    def _say(self, session: str, count: int, told: Mapping[str, JSON] | None) -> None:
        before = self._newest(session)
        now = int(self._clock.now().timestamp() * 1e6)
        # The row is newer even if this host's clock is slow.
        time, records = f"{max(now, int(before.time) + 1 if before else 0):016}", f"{count:010}"
        name = f"{_FOLDER}{time}-{session}-{records}-{secrets.token_hex(4)}"
        content = json.dumps(told, ensure_ascii=False).encode()
        self._store.create(name, self._cipher.encrypt(name, content))
        here = _Place(records, time, name)
        self._told[session] = max(here, before or here)
        if before is not None and before < here:
            self._store.remove(before.name)

    def _newest(self, session: str) -> _Place | None:
        """The newest row of a session known here. Reads the list first if this host has published nothing about the
        session."""
        if session not in self._told:
            self.read()
        known = [one[session] for one in (self._told, self._places) if session in one]
        return max(known, default=None)

    def read(self) -> Mapping[str, ToldRow]:
        """The newest row of each session, by its id; if the store does not answer, those read last."""
        with self._lock:
            now = self._clock.monotonic()
            if self._looked is None or now - self._looked >= _LOOK:
                self._looked = now
                try:
                    self._look()
                except JournalError as error:
                    _LOG.warning("The list of other hosts' sessions can't be read now: %s", error)
            return dict(self._rows)

    def has(self, session: str) -> bool:
        """Whether some host lists this session."""
        told = self.read().get(session)
        return told is not None and told.row is not None

    def deleted(self) -> list[str]:
        """The sessions that some host lists as deleted."""
        return [session for session, told in self.read().items() if told.row is None]

    def _look(self) -> None:
        after = f"{_FOLDER}{max(self._last - _APART, 0):016}"
        found: dict[str, _Place] = {}
        old = list[_Place]()
        last = self._last
        for name in self._store.names(_FOLDER, after=after):
            if (parts := _NAME.fullmatch(name)) is not None:
                time, session, records = parts.groups()
                last = max(last, int(time))
                here = _Place(records, time, name)
                newest = found.get(session) or self._places.get(session) or here
                found[session] = max(here, newest)
                if here != newest:
                    old.append(min(here, newest))
        for place in old:  # left by a host that did not know of another host's row
            self._store.remove(place.name)
        for session, place in found.items():
            before = self._places.get(session)
            if before is None or before < place:
                self._take(session, place)
        self._last = last

    def _take(self, session: str, place: _Place) -> None:
        content = self._store.get(place.name)
        if content is None:
            return  # a newer row exists by now
        self._places[session] = place
        try:
            row = _ROW.validate_json(self._cipher.decrypt(place.name, content)[:_MOST])
        except (JournalError, ValidationError) as error:
            _LOG.warning("A row of the shared list of sessions can't be used: %s", error)
            return
        if row is None or row.id == session:
            self._rows[session] = ToldRow(int(place.records), row)
