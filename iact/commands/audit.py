"""`iact audit`: prints who decided what (`iact.audit`); and what commands put into the audit of accounts."""

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
    """Print the audit. `since`: a date or time, UTC; `who`, `what`: as of `AuditFilter`.

    Raises:
        UsageError: `since` is none.
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
    """What the audit says of something that everybody has, and of no other."""
    return {"for": "everybody"} if everybody else {}


def tell(settings: Settings, kind: AuditKind, **about: str) -> None:
    """Have it in the audit that whoever runs a command did something; nothing where there is one user."""
    if settings.accounts.authenticator == "token":
        return
    from iact.commands.people import actor
    from iact.people import accounts_of

    with accounts_of(settings) as accounts:
        accounts.audit.tell(kind, actor(), **about)
