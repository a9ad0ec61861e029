"""One record of a journal, as the rest of the program sees it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from iact.core.ports import JSON
from iact.core.records.codec import encode_fields
from iact.core.records.content import Content, Unknown

GENESIS: Final = "00000000"
"""`prev` of the first record."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a journal."""

    n: int
    """Its number, from 1."""
    at: str
    """When it was appended, in UTC."""
    agent: str
    """The path of the agent that it is about."""
    step: int
    """Its number among the records of this agent, from 1."""
    content: Content
    """What its kind records."""
    body: str = ""
    """Its text."""
    prev: str = GENESIS
    """The digest of the record before it."""
    digest: str = ""
    """The first eight hex digits of the SHA-256 of its bytes before its trailer."""
    seal: str = field(default="", compare=False)
    """The seal of its writer, or empty; the digest of a sealed record covers it."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """The fields of its header that its class does not have."""

    @property
    def kind(self) -> str:
        """The name of the record's kind."""
        content = self.content
        return content.kind if isinstance(content, Unknown) else content.KIND

    @property
    def fields(self) -> dict[str, JSON]:
        """The header fields, as JSON, that are not common to all records."""
        fields = encode_fields(self.content)
        return {**fields, **self.extra} if self.extra else fields

    def text(self, name: str) -> str:
        """Field `name` as a string; empty if it is absent or of another type."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> int:
        """Field `name` as an integer; 0 if it is absent or of another type."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0


def timestamp(now: datetime) -> str:
    """Format a UTC time as records do."""
    return now.isoformat(timespec="microseconds").replace("+00:00", "Z")


def blobs_of(record: Record) -> frozenset[str]:
    """The blobs that a record names: every `sha256` in its fields, at any depth."""
    digests: set[str] = set()
    left: list[JSON] = list(record.fields.values())
    while left:
        match left.pop():
            case list() as items:
                left.extend(items)
            case dict() as inner:
                left.extend(inner.values())
                digest = inner.get("sha256")
                if isinstance(digest, str) and _SHA256.fullmatch(digest):
                    digests.add(digest)
    return frozenset(digests)
