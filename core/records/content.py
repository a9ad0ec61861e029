"""What all record contents share: the names that identify their class in a header, and the source of the body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from iact.core.ports import JSON
from iact.core.records.mark import Mark


class Content:
    """The content of one kind of record."""

    __slots__ = ()

    KIND: ClassVar[str]
    """The kind's name, which is in its header."""
    OP: ClassVar[str] = ""
    """The operation, where a kind has several."""
    BODY: ClassVar[Mark | None] = None
    """Whether the text of the record is an outcome or derived; None if the record has no text."""


@dataclass(frozen=True, slots=True)
class Unknown(Content):
    """A record of a kind or an operation that this program does not know, written by a newer minor version.

    It is kept unchanged and shown, and has no effect.
    """

    kind: str
    fields: Mapping[str, JSON]
