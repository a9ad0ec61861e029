"""What all contents of records share: the names by which a header says which one it is, and whose word the body is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from iact.core.ports import JSON
from iact.core.records.mark import Mark


class Content:
    """What one kind of record says. `KIND` stands in its header, and `OP` where a kind has several operations.

    `BODY`: whose word the text of its record is; None: its record has none.
    """

    __slots__ = ()

    KIND: ClassVar[str]
    OP: ClassVar[str] = ""
    BODY: ClassVar[Mark | None] = None


@dataclass(frozen=True, slots=True)
class Unknown(Content):
    """A record of a kind, or of an operation, that this program does not know: a newer minor version wrote it.

    It is kept as it is and shown, and changes nothing.
    """

    kind: str
    fields: Mapping[str, JSON]
