"""Who asks a host of a cluster with accounts: whoever a gateway says, and nobody by themselves.

A host takes no cookie, no API token and no header of a proxy: those are for gateways. What somebody may do, and whether they
still are who they were, it reads in the accounts itself.
"""

from __future__ import annotations

from iact.accounts.authentication import Authentication
from iact.accounts.people import SharedSession
from iact.accounts.rights import LOCAL, Principal
from iact.cluster.statements import StatementReader
from iact.web.safety import Asked


class MemberPeople:
    """`web.ports.People` of a host. `reader`: reads what gateways say; `known`: what is known of people."""

    def __init__(self, reader: StatementReader, known: Authentication) -> None:
        self._reader = reader
        self._known = known

    def identify(self, asked: Asked) -> Principal | None:
        """As of `People`."""
        who = self._reader.read(asked)
        return who if who is not None and (who == LOCAL or self._known.holds(who)) else None

    def holds(self, who: Principal) -> bool:
        """As of `People`."""
        return self._known.holds(who)

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        """As of `People`."""
        return self._known.grant(who, session)
