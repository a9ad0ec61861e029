"""Identifies the users of a cluster host with accounts: only a gateway can name them.

A host accepts no cookie, no API token and no proxy header: those are for gateways. It reads a user's rights, and whether
the user is still valid, from the accounts itself.
"""

from __future__ import annotations

from iact.accounts.authentication import Authentication
from iact.accounts.people import SharedSession
from iact.accounts.rights import LOCAL, Principal
from iact.cluster.statements import StatementReader
from iact.web.safety import Asked


class MemberPeople:
    """`web.ports.People` of a host. `reader`: reads the statements of gateways. `known`: reads the accounts."""

    def __init__(self, reader: StatementReader, known: Authentication) -> None:
        self._reader = reader
        self._known = known

    def identify(self, asked: Asked) -> Principal | None:
        """See `People`."""
        who = self._reader.read(asked)
        return who if who is not None and (who == LOCAL or self._known.holds(who)) else None

    def holds(self, who: Principal) -> bool:
        """See `People`."""
        return self._known.holds(who)

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        """See `People`."""
        return self._known.grant(who, session)
