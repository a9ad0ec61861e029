"""What the bytes of a step consist of, by kind of record and by purpose."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iact.core.journal import encode, read_journal
from iact.core.journal.record import trailer
from iact.core.records.codec import Field, layout_of
from iact.core.records.record import Record

_PARTS: Final = ("content", "frame", "outcomes", "derived")
_SHOWN: Final = 14


@dataclass
class Kind:
    """The records of one kind. `count` and all sizes are per step."""

    count: float = 0.0
    parts: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_PARTS, 0.0))

    @property
    def bytes(self) -> float:
        """All bytes of these records."""
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True)
class Stored:
    """The stored bytes. `fields`: the largest fields, each with its name, its part and its bytes per step."""

    kinds: Mapping[str, Kind]
    fields: Sequence[tuple[str, str, float]]

    @property
    def bytes(self) -> float:
        """All bytes of a step."""
        return sum(kind.bytes for kind in self.kinds.values())

    def total(self, part: str) -> float:
        """The bytes of one part in all records of a step."""
        return sum(kind.parts[part] for kind in self.kinds.values())

    @property
    def parts(self) -> Sequence[str]:
        """The parts of a record."""
        return _PARTS

    def as_numbers(self) -> dict[str, dict[str, float]]:
        """Bytes per step, by kind and part."""
        return {kind: {"count": row.count, **row.parts} for kind, row in self.kinds.items()}


def measured(folder: Path, steps: int) -> Stored:
    """Measure the only journal below a folder, of an agent that made `steps` steps. Divides all bytes by `steps`."""
    (journal,) = folder.rglob("journal.md")
    kinds: dict[str, Kind] = defaultdict(Kind)
    fields: dict[tuple[str, str], float] = defaultdict(float)
    for record in read_journal(journal).records:
        kind = kinds[record.kind if record.kind in ("turn", "gate", "call", "result") else "others"]
        kind.count += 1 / steps
        for part, name, size in _pieces(record):
            kind.parts[part] += size / steps
            fields[name, part] += size / steps
    largest = sorted(
        ((name, part, size) for (name, part), size in fields.items() if name), key=lambda one: -one[2]
    )
    return Stored(dict(sorted(kinds.items(), key=lambda one: -one[1].bytes)), largest[:_SHOWN])


def _pieces(record: Record) -> Iterator[tuple[str, str, int]]:
    """What a record's bytes consist of: the part, the name of a header field, and the size."""
    data, _ = encode(record)
    header = json.loads(data[len("<!-- iact ") : data.index(b" -->\n")])
    marks = dict(_marks(layout_of(type(record.content)).fields))
    left = len(data)
    for name, value in header.items():
        size = len(json.dumps({name: value}, ensure_ascii=False, separators=(",", ":")).encode()) - 1
        part = marks.get(name, "frame")
        yield part, name, size
        left -= size
    body = header["bytes"]
    yield "content", "", body
    end = len(trailer(record.n))
    yield "frame", "trailer", end
    yield "frame", "heading", left - body - end


def _marks(fields: Sequence[Field]) -> Iterator[tuple[str, str]]:
    """The keys of fields, and whether each is an outcome or derived."""
    for one in fields:
        if one.group is not None:
            yield from _marks(one.group.fields)
        elif one.mark is not None:
            yield one.key, "derived" if one.mark.derived else "outcomes"
