"""The list of sessions that several hosts share: what each says of those that it has open, as rows in their store.

A row is written when what a session is at, or what it is called, changes: under the time, the session and a name of its
own, since nothing in the store is ever changed. Of a session the newest row counts, and those before it are removed. It is
told for people's eyes and nothing rests on it: whoever opens a session reads its journal. Rows are encrypted as other
files of hosts are, so that nobody else can read a title, or make one up. Of a deleted session one row is left, which says
that: hosts that have a copy of its journal show it no longer.
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
from iact.core.session.listing import SessionInfo, ToldRow

_LOG: Final = logging.getLogger(__name__)

_FOLDER: Final = "list/"
_NAME: Final = re.compile(r"list/(\d{16})-(.+)-(\d{10})-[0-9a-f]{8}")
"""Of a row: microseconds since 1970, the session, how many records it had, and something of its own."""
_APART: Final = 600_000_000
"""Microseconds by which clocks of hosts may differ without a row being missed."""
_LOOK: Final = 2.0
"""Seconds for which a look at the store counts."""
_MOST: Final = 64 * 1024
_LAST: Final = 9_999_999_999
"""As many records as no session has: a row that counts whatever is said later."""

_ROW: Final = TypeAdapter(SessionInfo | None)


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a row is. The one with most records is the newest, whatever the clocks of hosts say."""

    records: str
    time: str
    name: str


class SharedList:
    """Rows of all hosts of a store. All methods block, and may be called from any thread."""

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
        """Say what a session is at. `gone`: it was deleted.

        Raises:
            StoreUnavailable: it can't be stored now.
        """
        self._say(row.id, row.records, None if gone else asdict(replace(row, open=False)))

    def purged(self, session: str) -> None:
        """Say that a session was deleted for good, whatever a host may say that has not heard of it.

        Raises:
            StoreUnavailable: it can't be stored now.
        """
        self._say(session, _LAST, None)

    def _say(self, session: str, count: int, told: Mapping[str, JSON] | None) -> None:
        before = self._newest(session)
        now = int(self._clock.now().timestamp() * 1e6)
        # A host whose clock is behind says something newer, too.
        time, records = f"{max(now, int(before.time) + 1 if before else 0):016}", f"{count:010}"
        name = f"{_FOLDER}{time}-{session}-{records}-{secrets.token_hex(4)}"
        content = json.dumps(told, ensure_ascii=False).encode()
        self._store.create(name, self._cipher.encrypt(name, content))
        here = _Place(records, time, name)
        self._told[session] = max(here, before or here)
        if before is not None and before < here:
            self._store.remove(before.name)

    def _newest(self, session: str) -> _Place | None:
        """The newest row of a session, as far as is known here; who has said nothing of it looks first."""
        if session not in self._told:
            self.read()
        known = [one[session] for one in (self._told, self._places) if session in one]
        return max(known, default=None)

    def read(self) -> Mapping[str, ToldRow]:
        """The newest row of each session, by its id; what was read last where the store does not answer."""
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
        """Whether some host says that there is such a session."""
        told = self.read().get(session)
        return told is not None and told.row is not None

    def deleted(self) -> list[str]:
        """The sessions that some host says to have been deleted."""
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
        for place in old:  # left by a host that did not know of the other's
            self._store.remove(place.name)
        for session, place in found.items():
            before = self._places.get(session)
            if before is None or before < place:
                self._take(session, place)
        self._last = last

    def _take(self, session: str, place: _Place) -> None:
        content = self._store.get(place.name)
        if content is None:
            return  # there is a newer one since
        self._places[session] = place
        try:
            row = _ROW.validate_json(self._cipher.decrypt(place.name, content)[:_MOST])
        except (JournalError, ValidationError) as error:
            _LOG.warning("A row of the shared list of sessions can't be used: %s", error)
            return
        if row is None or row.id == session:
            self._rows[session] = ToldRow(int(place.records), row)
