"""`iact audit`: who decided what, over all sessions and users, oldest first. Never what was said, shown or run.

Two sources, neither of which is copied from the other: what happened in sessions is in their journals; who signed in,
was added or was given something is in the database of accounts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from iact.core.errors import IactError, UsageError
from iact.core.records.calls import ClearanceAnswer
from iact.core.records.control import AllowHosts, Declassify, Lockdown, RaiseBudget, SetIntent, SetPolicy
from iact.core.records.hosts import HostAnswer, HostAsk, rule_of
from iact.core.records.person import PersonContent
from iact.core.records.record import Record, timestamp
from iact.core.session.journals import read_records
from iact.settings import Settings
from iact.user_folders import USERS

if TYPE_CHECKING:
    from iact.accounts.people import AuditKind


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One decision. `who`: a user's name; empty for the one user of a server without accounts, or what is not a person.

    `by`: "user", or what else decided; `owner`: whose the session is, by id.
    """

    at: str
    what: str
    who: str = ""
    by: str = "user"
    session: str = ""
    n: int = 0
    owner: str = ""
    address: str = ""
    about: Mapping[str, str] = field(default_factory=dict)


def audit(settings: Settings, *, since: str | None, as_json: bool) -> int:
    """Print the audit. `since`: a date or time, UTC.

    Raises:
        UsageError: `since` is none.
    """
    begin = _begin(since)
    found = [line for line in (*_of_sessions(settings.data), *_of_accounts(settings)) if line.at >= begin]
    found.sort(key=lambda line: line.at)
    for line in found:
        print(json.dumps(asdict(line), ensure_ascii=False) if as_json else _shown(line))
    return 0


def _begin(since: str | None) -> str:
    if since is None:
        return ""
    try:
        told = datetime.fromisoformat(since)
    except ValueError as error:
        raise UsageError(f"{since!r} is no date, such as 2026-11-23 or 2026-11-23T08:00.") from error
    return timestamp(told.replace(tzinfo=told.tzinfo or UTC).astimezone(UTC))


def _shown(line: AuditLine) -> str:
    who = line.who or ("" if line.by == "user" else line.by) or "-"
    where = f" in {line.session}, record {line.n}" if line.session else ""
    about = ", ".join(f"{name} {value}" for name, value in line.about.items())
    return "  ".join(
        part for part in (line.at[:19] + "Z", who, line.what + where, about, line.address) if part
    )


# --- of sessions --------------------------------------------------------------------------------------


def _of_sessions(data: Path) -> Iterator[AuditLine]:
    for journal in sorted([*data.glob("sessions/*/journal.md"), *data.glob("users/*/sessions/*/journal.md")]):
        owner = journal.parents[2].name if journal.parents[3].name == USERS else ""
        try:
            records = read_records(journal)
        except IactError as error:
            print(f"iact audit: {journal} is left out: {error}", file=sys.stderr)
            continue
        for record in records:
            yield from _decided(record, records, journal.parent.name, owner)


def _decided(record: Record, records: list[Record], session: str, owner: str) -> Iterator[AuditLine]:
    told = _what(record, records)
    if told is None:
        return
    what, by, about = told
    who = record.content.who if isinstance(record.content, PersonContent) else ""
    yield AuditLine(record.at, what, who, by, session, record.n, owner, about=about)


def _what(record: Record, records: list[Record]) -> tuple[str, str, Mapping[str, str]] | None:
    """What a record decided, who did if it is no person, and of what; None: nothing that is audited."""
    match record.content:
        case ClearanceAnswer(allow=allow, by=by, function=function, remember=remember):
            kept = {"remembered": "yes"} if remember is not None else {}
            return "call.allowed" if allow else "call.denied", by, {"function": function, **kept}
        case HostAnswer(allow=allow, by=by, ask=ask, lasts=lasts):
            asked = records[ask - 1].content if 0 < ask <= len(records) else None
            host = {"host": rule_of(asked.host, asked.port)} if isinstance(asked, HostAsk) else {}
            return "host.allowed" if allow else "host.denied", by, {**host, "lasts": lasts}
        case AllowHosts(by=by, always=always, session=session):
            hosts = sorted(
                {host for listed in (always, session) for each in listed.values() for host in each}
            )
            return "hosts.changed", by, {"hosts": " ".join(hosts)}
        case SetIntent(by=by, value=value):
            return "intent.changed", by, {"to": f"{value:g}"}
        case Declassify(by=by, variable=variable):
            return "declassified", by, {"variable": variable} if variable else {}
        case Lockdown(by=by, value=value):
            return "lockdown.begun" if value else "lockdown.ended", by, {}
        case SetPolicy(by=by):
            return "policy.changed", by, {}
        case RaiseBudget(by=by, tokens=tokens):
            return "budget.raised", by, {"tokens": str(tokens)}
    return None


# --- of accounts --------------------------------------------------------------------------------------


def _of_accounts(settings: Settings) -> Iterator[AuditLine]:
    if settings.accounts.authenticator == "token":
        return
    from iact.people import accounts_of

    with accounts_of(settings) as accounts:
        for one in accounts.audit.events():
            at = timestamp(datetime.fromtimestamp(one.at, UTC))
            session = one.about.get("session", "")
            about = {name: text for name, text in one.about.items() if name != "session"}
            yield AuditLine(at, one.kind, one.who, session=session, address=one.address, about=about)


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
