"""Who signed in, or failed to, and who changed what about people: one row each, never content."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, get_args

from sqlalchemy import Connection, insert, select

from iact.accounts.database import Database
from iact.accounts.digests import mint_id
from iact.accounts.people import Actor, AuditEvent, AuditKind
from iact.accounts.schema import audit_events

_KINDS = frozenset(get_args(AuditKind))
_LOG: Final = logging.getLogger(__name__)
_LOGGED: Final = ("why", "session")
"""The fields of an event that the log has, in addition to who it was. The others are names that people chose, and a
person whose sign-in failed may have typed a password in place of a name."""


class AuditLog:
    """Entries are written in the same transaction as the change they describe. `clock`: seconds since 1970."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def write(self, connection: Connection, kind: AuditKind, actor: Actor, **about: str) -> None:
        """Add an event in an open transaction."""
        row = {
            "id": mint_id(),
            "at": self._clock(),
            "kind": kind,
            "who": actor.name[:64],
            "address": actor.address[:64],
            "about": {name: text[:200] for name, text in about.items()},
        }
        connection.execute(insert(audit_events).values(**row))

        logged = {"user": actor.user, "address": actor.address}
        for name in _LOGGED:
            logged[name] = about.get(name, "")
        _LOG.info(kind, extra={name: text for name, text in logged.items() if text})

    def tell(self, kind: AuditKind, actor: Actor, **about: str) -> None:
        """Add an event in a transaction of its own."""
        with self._database.writing() as connection:
            self.write(connection, kind, actor, **about)

    def events(self, since: float = 0.0, most: int | None = None) -> Sequence[AuditEvent]:
        """The events after a time, oldest first. `most`: only this many of the newest."""
        query = select(audit_events).where(audit_events.c.at > since)
        query = query.order_by(audit_events.c.at.desc(), audit_events.c.id.desc()).limit(most)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()

        # A newer version may have written kinds that this one does not know.
        return [
            AuditEvent(row.at, row.kind, row.who, row.address, row.about)
            for row in reversed(rows)
            if row.kind in _KINDS
        ]
