"""Everything that a server knows about people, over one database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.accounts.api_tokens import ApiTokens
from iact.accounts.attempts import Attempts
from iact.accounts.audit import AuditLog
from iact.accounts.database import Database, open_database
from iact.accounts.quotas import Quotas
from iact.accounts.sharing import Sharing
from iact.accounts.sign_ins import SignIns
from iact.accounts.users import Users

_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Accounts:
    """The parts, which share one database and one clock."""

    database: Database
    clock: Callable[[], float]
    """Seconds since 1970."""
    audit: AuditLog
    users: Users
    sign_ins: SignIns
    tokens: ApiTokens
    sharing: Sharing
    attempts: Attempts
    """How often someone may try to sign in."""
    quotas: Quotas


@contextmanager
def open_accounts(
    data: Path,
    url: str | None,
    clock: Callable[[], float],
    *,
    days: float = 14.0,
    public_links: bool = False,
    host: str = "",
) -> Iterator[Accounts]:
    """The accounts of a data directory, or of a PostgreSQL database; closed on exit. `clock`: seconds since 1970.

    `days`: how long a sign-in lasts after its last use; `public_links`: whether links work without an account; `host`:
    the host whose model calls these are, where several hosts share a database.

    Raises:
        UsageError: as `open_database`.
    """
    database = open_database(data, url)
    try:
        audit = AuditLog(database, clock)
        yield Accounts(
            database=database,
            clock=clock,
            audit=audit,
            users=Users(database, audit, clock),
            sign_ins=SignIns(database, clock, days * _DAY),
            tokens=ApiTokens(database, audit, clock),
            sharing=Sharing(database, audit, clock, public=public_links),
            attempts=Attempts(database, clock),
            quotas=Quotas(database, audit, clock, host),
        )
    finally:
        database.close()
