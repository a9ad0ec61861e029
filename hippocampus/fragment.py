"""The unit of memory, and its form in a vector store.

A fragment is one short text and its origin. Its id consists of the session and the number of the record that it was
made from, so writing it twice changes nothing, and a rebuild from journals produces the same ids. It belongs to exactly
one scope: the user's, a project's, or a session's. Each scope is a separate collection, because filtering one large
collection makes a query ten times slower.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias, cast, get_args

from iact.core.ports import FragmentKind, MemoryDetails

ScopeKind = Literal["user", "project", "session"]
Metadata: TypeAlias = Mapping[str, str | int | float | bool]
"""The data that a vector store keeps with a text: flat, no lists."""

_KINDS: Final[frozenset[str]] = frozenset(get_args(FragmentKind))
_SEPARATOR: Final = "\x1f"


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """The owner of fragments. `name`: the project or session; empty for the user's own."""

    user: str
    kind: ScopeKind
    name: str = ""

    @property
    def key(self) -> str:
        """A unique name of the scope that reveals nothing about it."""
        parts = _SEPARATOR.join((self.user, self.kind, self.name))
        return f"{self.kind}-{hashlib.sha256(parts.encode('utf-8', 'replace')).hexdigest()[:24]}"


@dataclass(frozen=True, slots=True)
class Fragment:
    """One memory. `at`: ISO 8601, UTC. `record`: the number of the record that it was made from.

    `sources`: ids that a consolidated fragment was made from. `superseded_by`: the fragment that replaced it.
    `contradicts`: ids that say otherwise and don't replace it.
    """

    id: str
    text: str
    kind: FragmentKind
    scope: MemoryScope
    session: str
    agent: str
    at: str
    record: int
    occasion: str = ""
    untrusted: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    superseded_by: str = ""
    contradicts: tuple[str, ...] = ()

    @property
    def when(self) -> datetime:
        """`at` as a time; the epoch if it can't be parsed."""
        return parse_time(self.at)

    def metadata(self) -> dict[str, str | int | float | bool]:
        """All fields except the text and the scope, flat."""
        return {
            "kind": self.kind,
            "session": self.session,
            "agent": self.agent,
            "at": self.at,
            "record": self.record,
            "occasion": self.occasion,
            "untrusted": _SEPARATOR.join(self.untrusted),
            "supersedes": _SEPARATOR.join(self.supersedes),
            "sources": _SEPARATOR.join(self.sources),
            "superseded_by": self.superseded_by,
            "contradicts": _SEPARATOR.join(self.contradicts),
        }


def readable(fragment: Fragment) -> MemoryDetails:
    """The whole fragment, for people."""
    return {
        "id": fragment.id,
        "text": fragment.text,
        "scope": fragment.scope.kind,
        "kind": fragment.kind,
        "session": fragment.session,
        "agent": fragment.agent,
        "at": fragment.at,
        "record": fragment.record,
        "occasion": fragment.occasion,
        "untrusted": [*fragment.untrusted],
        "supersedes": [*fragment.supersedes],
        "sources": [*fragment.sources],
        "superseded_by": fragment.superseded_by,
        "contradicts": [*fragment.contradicts],
    }


def fragment_id(session: str, record: int, ordinal: int = 0) -> str:
    """The id of fragment number `ordinal` from a record; the same at every rebuild."""
    return f"{session}/{record}" if ordinal == 0 else f"{session}/{record}.{ordinal}"


def from_metadata(identity: str, text: str, scope: MemoryScope, metadata: Mapping[str, object]) -> Fragment:
    """Restore a fragment from the store. Unknown kinds become facts, missing fields are empty."""

    def word(name: str) -> str:
        value = metadata.get(name)
        return value if isinstance(value, str) else ""

    def words(name: str) -> tuple[str, ...]:
        return tuple(part for part in word(name).split(_SEPARATOR) if part)

    kind = word("kind")
    record = metadata.get("record")
    return Fragment(
        id=identity,
        text=text,
        kind=cast(FragmentKind, kind) if kind in _KINDS else "fact",
        scope=scope,
        session=word("session"),
        agent=word("agent"),
        at=word("at"),
        record=int(record) if isinstance(record, int | float) else 0,
        occasion=word("occasion"),
        untrusted=words("untrusted"),
        supersedes=words("supersedes"),
        sources=words("sources"),
        superseded_by=word("superseded_by"),
        contradicts=words("contradicts"),
    )


def parse_time(text: str) -> datetime:
    """Parse ISO 8601 to a time in UTC; the epoch if it can't be parsed."""
    try:
        time = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
