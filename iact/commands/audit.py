"""`iact audit`: print who decided what (`iact.audit`). Also, how commands write to the accounts' audit."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from iact.audit import AuditFilter, AuditLine, audit_lines
from iact.settings import Settings

if TYPE_CHECKING:
    from iact.accounts.people import AuditKind


def audit(settings: Settings, *, since: str | None, who: str | None, what: str | None, as_json: bool) -> int:
    """Print the audit. `since`: a date or time in UTC. `who`, `what`: as in `AuditFilter`.

    Raises:
        UsageError: `since` is not a date or time.
    """
    for line in _found(settings, AuditFilter.of(since, who, what)):
        print(line.json if as_json else _shown(line))
    return 0


def _found(settings: Settings, wanted: AuditFilter) -> list[AuditLine]:
    from iact.shared_users import stores_of

    stores = partial(stores_of, settings)
    if settings.accounts.authenticator == "token":
        return audit_lines(settings.data, None, wanted, _complain, stores)
    from iact.people import accounts_of

    with accounts_of(settings) as accounts:
        return audit_lines(settings.data, accounts.audit, wanted, _complain, stores)


def _complain(sentence: str) -> None:
    print(f"iact audit: {sentence}", file=sys.stderr)


def _shown(line: AuditLine) -> str:
    who = line.who or ("" if line.by == "user" else line.by) or "-"
    where = f" in {line.session}, record {line.n}" if line.session else ""
    about = ", ".join(f"{name} {value}" for name, value in line.about.items())
    return "  ".join(
        part for part in (line.at[:19] + "Z", who, line.what + where, about, line.address) if part
    )


def whose(*, everybody: bool) -> Mapping[str, str]:
    """The audit's additional field for something that is shared by all users."""
    return {"for": "everybody"} if everybody else {}


def tell(settings: Settings, kind: AuditKind, **about: str) -> None:
    """Record in the audit what the user of a command did. Does nothing on an installation with a single user."""
    if settings.accounts.authenticator == "token":
        return
    from iact.commands.people import actor
    from iact.people import accounts_of

    with accounts_of(settings) as accounts:
        accounts.audit.tell(kind, actor(), **about)
