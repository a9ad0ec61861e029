"""How recalled memories are written to a journal and read back. Pure.

A `recall` record belongs to the agent whose next turn shows them. Its body holds one line for each memory, as the agent
reads it, and its rows hold each memory's source. The `result` of a `RECALL` action has the same form. The record also
names functions whose meaning is relevant to the agent's input, and the turn brings their documentation. Therefore
neither replay nor verification asks a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iact.core.gate.provenance import REMEMBERED
from iact.core.language import labels
from iact.core.ports import Recalled
from iact.core.records.parts import MemorySource

_LINE: Final = 700
"""The most characters of one line."""

_BULLET: Final = "- "


def body_of(rows: Iterable[Recalled]) -> str:
    """Build the body of a record of what was recalled."""
    return "\n".join(_BULLET + labels.inline(row.line, _LINE) for row in rows)


def rows_of(rows: Iterable[Recalled]) -> tuple[MemorySource, ...]:
    """Build the record's field `rows`."""
    return tuple(
        MemorySource(
            id=row.id, kind=row.kind, score=row.score, at=row.at, session=row.session, agent=row.agent, why=row.why,
            untrusted=row.untrusted, contradicts=row.contradicts,
        )
        for row in rows
    )  # fmt: skip


def lines_in(body: str) -> tuple[str, ...]:
    """Return the lines as an agent reads them."""
    return tuple(line.removeprefix(_BULLET) for line in body.split("\n") if line)


def labels_in(rows: Sequence[MemorySource]) -> frozenset[str]:
    """The labels of what was recalled: that it is from memory, and those of its outside sources."""
    if not rows:
        return frozenset()
    return untrusted_in(rows) | {REMEMBERED}


def untrusted_in(rows: Iterable[MemorySource]) -> frozenset[str]:
    """Labels of the outside sources of what was recalled, plus `memory`; empty if there are none.

    The sources belong to another session, where the same name may have meant another module. `memory` therefore marks
    them as strange, whatever their names mean here.
    """
    found = frozenset(one for row in rows for one in row.untrusted)
    return found | {"memory"} if found else found
