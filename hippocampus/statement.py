"""The unit of memory, and its form in a vector store.

A statement is one clause and its origin. Its id consists of the session, the number of the record that it was made from,
and its number there, so writing it twice changes nothing, and a rebuild from journals produces the same ids. It belongs
to exactly one scope: its person's, a project's, or a session's. Each scope is a separate collection, because filtering
one large collection makes a query ten times slower.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias, cast, get_args

from iact.core.ports import MemoryDetails, NewStatement, StatementKind, StatementOrigin, StatementScope
from iact.hippocampus.words import subject_of

Metadata: TypeAlias = Mapping[str, str | int | float | bool]
"""The data that a vector store keeps with a text: flat, no lists."""

_KINDS: Final[frozenset[str]] = frozenset(get_args(StatementKind))
_ORIGINS: Final[frozenset[str]] = frozenset(get_args(StatementOrigin))
_SEPARATOR: Final = "\x1f"
_FORGETS: Final = re.compile(r"^(?:please |bitte )?(?:forget|vergiss)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """The owner of statements."""

    user: str
    kind: StatementScope
    name: str = ""
    """The project or session; empty for the person's own."""

    @property
    def key(self) -> str:
        """A unique name of the scope that reveals nothing about it."""
        parts = _SEPARATOR.join((self.user, self.kind, self.name))
        return f"{self.kind}-{hashlib.sha256(parts.encode('utf-8', 'replace')).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement, as it is stored."""

    id: str
    """See `statement_id`."""
    text: str
    kind: StatementKind
    scope: MemoryScope

    # Where it comes from.
    session: str
    agent: str
    at: str
    """Since when it is known: ISO 8601, UTC."""
    record: int
    """The number of the record that it was made from."""
    origin: StatementOrigin = "said"
    """How it came into memory."""
    untrusted: tuple[str, ...] = ()
    """Labels of the outside sources of its text."""

    # What it says about others, and others about it.
    withdraws: bool = False
    """Whether it says that something no longer holds."""
    replaces: tuple[str, ...] = ()
    """The ids of the statements that it replaced."""
    replaced_by: str = ""
    """The id of the statement that replaced it."""
    contradicts: tuple[str, ...] = ()
    """The ids of statements that say otherwise and don't replace it."""

    @property
    def when(self) -> datetime:
        """`at` as a time; the epoch if it can't be parsed."""
        return parse_time(self.at)

    @property
    def holds(self) -> bool:
        """Whether it still holds and says something. What only takes another statement back is kept, and never told."""
        if self.replaced_by:
            return False
        if not self.withdraws:
            return True
        only_withdraws = bool(self.replaces) or _FORGETS.match(self.text) is not None
        return not only_withdraws

    @property
    def subject(self) -> str:
        """What it is about, in a few words."""
        return subject_of(self.text)

    def metadata(self) -> dict[str, str | int | float | bool]:
        """All fields except the text and the scope, flat."""
        return {
            "kind": self.kind,
            "session": self.session,
            "agent": self.agent,
            "at": self.at,
            "record": self.record,
            "origin": self.origin,
            "withdraws": self.withdraws,
            "untrusted": _SEPARATOR.join(self.untrusted),
            "replaces": _SEPARATOR.join(self.replaces),
            "replaced_by": self.replaced_by,
            "contradicts": _SEPARATOR.join(self.contradicts),
        }


def readable(statement: Statement) -> MemoryDetails:
    """The whole statement, for people."""
    return {
        "id": statement.id,
        "text": statement.text,
        "subject": statement.subject,
        "kind": statement.kind,
        "scope": statement.scope.kind,
        "since": statement.at,
        "source": f"{statement.session}/{statement.record}",
        "session": statement.session,
        "agent": statement.agent,
        "origin": statement.origin,
        "untrusted": [*statement.untrusted],
        "replaces": [*statement.replaces],
        "replaced_by": statement.replaced_by,
        "withdraws": statement.withdraws,
        "contradicts": [*statement.contradicts],
    }


def statement_of(new: NewStatement, user: str) -> Statement:
    """The statement of a user that a session has brought."""
    scope_names = {"person": "", "project": new.project, "session": new.session}
    scope = MemoryScope(user, new.scope, scope_names[new.scope])
    replaces = (new.replaces,) if new.replaces else ()
    return Statement(
        id=statement_id(new.session, new.record, new.ordinal),
        text=new.text,
        kind=new.kind,
        scope=scope,
        session=new.session,
        agent=new.agent,
        at=new.at,
        record=new.record,
        origin=new.origin,
        withdraws=new.withdraws,
        untrusted=new.untrusted,
        replaces=replaces,
    )


def statement_id(session: str, record: int, ordinal: int = 0) -> str:
    """The id of statement number `ordinal` from a record; the same at every rebuild."""
    return f"{session}/{record}" if ordinal == 0 else f"{session}/{record}.{ordinal}"


def from_metadata(identity: str, text: str, scope: MemoryScope, metadata: Mapping[str, object]) -> Statement:
    """Restore a statement from the store. Unknown kinds become facts, missing fields are empty."""

    def word(name: str) -> str:
        value = metadata.get(name)
        return value if isinstance(value, str) else ""

    def words(name: str) -> tuple[str, ...]:
        return tuple(part for part in word(name).split(_SEPARATOR) if part)

    # A newer version may have written kinds that this one does not know.
    kind = word("kind") if word("kind") in _KINDS else "fact"
    origin = word("origin") if word("origin") in _ORIGINS else "said"
    record = metadata.get("record")
    if not isinstance(record, int | float):
        record = 0

    return Statement(
        id=identity,
        text=text,
        kind=cast(StatementKind, kind),
        scope=scope,
        session=word("session"),
        agent=word("agent"),
        at=word("at"),
        record=int(record),
        origin=cast(StatementOrigin, origin),
        withdraws=metadata.get("withdraws") is True,
        untrusted=words("untrusted"),
        replaces=words("replaces"),
        replaced_by=word("replaced_by"),
        contradicts=words("contradicts"),
    )


def parse_time(text: str) -> datetime:
    """Parse ISO 8601 to a time in UTC; the epoch if it can't be parsed."""
    try:
        time = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
