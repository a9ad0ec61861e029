"""The audit over all sessions and users, oldest first. It never contains what was said, shown or run.

It has two independent sources: events in sessions come from their journals, and events such as sign-ins, new users and
grants come from the accounts database. If hosts share a store, the journals of all hosts are in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from iact.core.errors import IactError, SessionDeleted, UsageError
from iact.core.records.calls import ClearanceAnswer
from iact.core.records.control import (
    AllowHosts,
    Declassify,
    Lockdown,
    RaiseBudget,
    SetIntent,
    SetPolicy,
    SwitchMemory,
)
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, rule_of
from iact.core.records.person import PersonContent
from iact.core.records.record import Record, timestamp
from iact.core.stored.journals import read_records
from iact.core.stored.trash import Trash
from iact.user_folders import USERS

if TYPE_CHECKING:
    from iact.accounts.audit import AuditLog


class AuditedSessions(Protocol):
    """The sessions of one user in a store that several hosts share. Both methods block and may raise `JournalError`."""

    def sessions(self) -> Sequence[str]: ...
    def read(self, session: str) -> list[Record]: ...


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One decision.

    `who`: the user's name; empty on a server without accounts, or if no person decided. `by`: "user", or what else
    decided. `owner`: the id of the session's owner.
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

    @property
    def json(self) -> str:
        """The decision as one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which lines are wanted. Empty fields match everything.

    `begin`: the earliest time, in the format of records. `who`: a user's name. `what`: a kind (`sign-in`), or the first
    part of several (`user` for `user.added` and others).
    """

    begin: str = ""
    who: str = ""
    what: str = ""

    @staticmethod
    def of(since: str | None, who: str | None, what: str | None) -> AuditFilter:
        """Make a filter. `since`: a date or time in UTC.

        Raises:
            UsageError: `since` is not a date or time.
        """
        return AuditFilter(_begin(since), (who or "").strip(), (what or "").strip())

    def takes(self, line: AuditLine) -> bool:
        """Whether a line is wanted."""
        named = not self.who or line.who.casefold() == self.who.casefold()
        return (
            named
            and line.at >= self.begin
            and f"{line.what}.".startswith(f"{self.what}." if self.what else "")
        )


def audit_lines(
    data: Path,
    log: AuditLog | None,
    wanted: AuditFilter,
    told: Callable[[str], None],
    stores: Callable[[], Mapping[str, AuditedSessions]] = dict,
) -> list[AuditLine]:
    """The wanted lines of a data directory, oldest first. Blocks.

    `log`: the audit of accounts, or None if there is one user. `told`: called with a message for each journal that can't
    be read and is left out. `stores`: returns the shared stores by user id ("" for the user `local`), which contain the
    sessions of all hosts.
    """
    found = [*_of_sessions(data, told, stores), *(_of_accounts(log) if log is not None else ())]
    return sorted((one for one in found if wanted.takes(one)), key=lambda one: one.at)


def _begin(since: str | None) -> str:
    if since is None:
        return ""
    try:
        told = datetime.fromisoformat(since)
    except ValueError as error:
        raise UsageError(f"{since!r} is not a date such as 2026-11-23 or 2026-11-23T08:00.") from error
    return timestamp(told.replace(tzinfo=told.tzinfo or UTC).astimezone(UTC))


# --- of sessions --------------------------------------------------------------------------------------


def _of_sessions(
    data: Path, told: Callable[[str], None], stores: Callable[[], Mapping[str, AuditedSessions]]
) -> Iterator[AuditLine]:
    shared: Mapping[str, AuditedSessions] = {}
    try:
        shared = stores()
    except IactError as error:
        told(f"Sessions that are only on other hosts are left out: {error}")
    folders = {"": data} | {one.name: one for one in sorted(data.glob(f"{USERS}/*"))}
    for owner in sorted(folders.keys() | shared.keys()):
        here = _here(folders[owner] / "sessions") if owner in folders else {}
        readers = here | _in_store(shared[owner], told) if owner in shared else here
        for session, read in sorted(readers.items()):
            yield from _of_session(session, owner, read, told)


Read: TypeAlias = Callable[[], list[Record]]
"""Reads a journal."""


def _here(sessions: Path) -> dict[str, Read]:
    """The sessions of one user in a data directory, including those in the trash: deleting a session hides nothing."""
    kept = {one.parent.name: one for one in sessions.glob("*/journal.md")}
    deleted = {one.id: one.directory / "journal.md" for one in Trash(sessions).all()}
    return {session: partial(read_records, journal) for session, journal in (deleted | kept).items()}


def _in_store(store: AuditedSessions, told: Callable[[str], None]) -> dict[str, Read]:
    """The sessions in the shared store. A host's own copy of a session that continued elsewhere is older."""
    try:
        return {session: partial(store.read, session) for session in store.sessions()}
    except IactError as error:
        told(f"Sessions that are only on other hosts are left out: {error}")
        return {}


def _of_session(session: str, owner: str, read: Read, told: Callable[[str], None]) -> Iterator[AuditLine]:
    """The decisions in a session. None for a session that was permanently deleted."""
    try:
        records = read()
    except SessionDeleted:
        return
    except IactError as error:
        told(f"The session {session} is left out: {error}")
        return
    for record in records:
        yield from _decided(record, records, session, owner)


def _decided(record: Record, records: list[Record], session: str, owner: str) -> Iterator[AuditLine]:
    told = _what(record, records)
    if told is None:
        return
    what, by, about = told
    who = record.content.who if isinstance(record.content, PersonContent) else ""
    yield AuditLine(record.at, what, who, by, session, record.n, owner, about=about)


def _what(record: Record, records: list[Record]) -> tuple[str, str, Mapping[str, str]] | None:
    """What a record decided, what decided it if not a person, and about what. None if it is not audited."""
    match record.content:
        case ClearanceAnswer(allow=allow, by=by, function=function, remember=remember):
            kept = {"remembered": "yes"} if remember is not None else {}
            return "call.allowed" if allow else "call.denied", by, {"function": function, **kept}
        case HostAnswer(allow=allow, by=by, ask=ask, lasts=lasts):
            asked = records[ask - 1].content if 0 < ask <= len(records) else None
            host = {"host": rule_of(asked.host, asked.port)} if isinstance(asked, HostAsk) else {}
            return "host.allowed" if allow else "host.denied", by, {**host, "lasts": lasts}
        case FormAnswer(decision=decision, by=by, ask=ask, values=values):
            form = records[ask - 1].content if 0 < ask <= len(records) else None
            of = {"function": form.function} if isinstance(form, FormAsk) else {}
            if isinstance(form, FormAsk) and form.skill is not None:
                return (
                    "skill.approved" if decision == "accept" else "skill.denied",
                    by,
                    {"skill": form.skill.name},
                )
            told = {"fields": " ".join(values)} if values else {}
            return "form.answered" if decision == "accept" else "form.refused", by, {**of, **told}
        case AllowHosts(by=by, always=always, session=session):
            hosts = sorted(
                {host for listed in (always, session) for each in listed.values() for host in each}
            )
            return "hosts.changed", by, {"hosts": " ".join(hosts)}
        case SetIntent(by=by, value=value):
            return "intent.changed", by, {"to": f"{value:g}"}
        case Declassify(by=by, variable=variable):
            return "declassified", by, {"variable": variable} if variable else {}
        case SwitchMemory(by=by, of=of, value=value):
            return "memory.on" if value else "memory.off", by, {"for": of}
        case Lockdown(by=by, value=value):
            return "lockdown.begun" if value else "lockdown.ended", by, {}
        case SetPolicy(by=by):
            return "policy.changed", by, {}
        case RaiseBudget(by=by, tokens=tokens):
            return "budget.raised", by, {"tokens": str(tokens)}
    return None


# --- of accounts --------------------------------------------------------------------------------------


def _of_accounts(log: AuditLog) -> Iterator[AuditLine]:
    for one in log.events():
        at = timestamp(datetime.fromtimestamp(one.at, UTC))
        session = one.about.get("session", "")
        about = {name: text for name, text in one.about.items() if name != "session"}
        yield AuditLine(at, one.kind, one.who, session=session, address=one.address, about=about)
