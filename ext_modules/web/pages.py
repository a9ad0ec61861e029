"""Pages that were fetched, kept for the session, so that whoever reads one again reads the same."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from .http import Response

_MOST: Final = 64
_LARGEST: Final = 48 << 20
"""Bytes of all that is kept."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A page, and when it was fetched: ISO 8601, UTC. `again`: it was there before."""

    response: Response
    at: str
    again: bool = False


class Pages:
    """What one instance keeps. Calls run in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], Kept] = OrderedDict()

    def get(self, session: str, url: str) -> Kept | None:
        """The page that was fetched from there, if it is still kept."""
        with self._lock:
            found = self._kept.get((session, url))
            if found is not None:
                self._kept.move_to_end((session, url))
        return Kept(found.response, found.at, again=True) if found is not None else None

    def keep(self, session: str, url: str, response: Response) -> Kept:
        """Keep a page, if it is one; what was not read for long makes room."""
        made = Kept(response, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if response.status == 200:
            with self._lock:
                self._kept[session, url] = made
                self._kept.move_to_end((session, url))
                while (
                    len(self._kept) > _MOST
                    or sum(len(one.response.body) for one in self._kept.values()) > _LARGEST
                ):
                    self._kept.popitem(last=False)
        return made
