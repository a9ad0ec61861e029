"""How recalled memories stand in a journal, and how they come back from it; pure.

A `recall` record belongs to the agent whose next turn shows them. Its body holds one line for each, as the
agent reads it; its field `rows` says of each, in the same order, where it comes from and what found it:
`id`, `kind`, `score`, `why`, `at`, `session`, `agent`, and where there is something to tell `untrusted`
(labels of outside sources) and `contradicts` (ids). `ms` is how long memory took. The `result` of a
`RECALL` action has the same body and `rows`. `meant` names functions that the agent's input is about in
meaning, each with the record of the message that is: their documentation comes with the turn. So neither replay nor verification asks a database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from core.language import labels
from core.ports import JSON, Recalled
from core.records.record import Record

_LINE: Final = 700
"""Characters of one line."""

_BULLET: Final = "- "


def body_of(rows: Iterable[Recalled]) -> str:
    """The body of a record of what was recalled."""
    return "\n".join(_BULLET + labels.inline(row.line, _LINE) for row in rows)


def fields_of(rows: Iterable[Recalled]) -> dict[str, JSON]:
    """Its field `rows`."""
    return {"rows": [_row(row) for row in rows]}


def lines_in(record: Record) -> tuple[str, ...]:
    """The lines as an agent reads them."""
    return tuple(line.removeprefix(_BULLET) for line in record.body.split("\n") if line)


def ids_in(record: Record) -> tuple[str, ...]:
    """The ids of what was recalled."""
    return tuple(str(row.get("id", "")) for row in _rows(record))


def meant_in(record: Record) -> dict[str, int]:
    """Functions that an input is about in meaning, each with the record of the message that is."""
    meant = record.fields.get("meant")
    found = meant.items() if isinstance(meant, dict) else ()
    return {name: n for name, n in found if isinstance(n, int)}


def untrusted_in(record: Record) -> frozenset[str]:
    """Labels of the outside sources of what was recalled, `memory` among them; empty if there is none.

    The sources are those of another session, where a module may have been another one: `memory` says that
    they count as strange, whatever is known by their names here.
    """
    marks = [row.get("untrusted") for row in _rows(record)]
    found = frozenset(str(one) for several in marks if isinstance(several, list) for one in several)
    return found | {"memory"} if found else found


def _rows(record: Record) -> list[dict[str, JSON]]:
    rows = record.fields.get("rows")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _row(row: Recalled) -> dict[str, JSON]:
    said = ("text", "current") + (() if row.untrusted else ("untrusted",))
    left_out = said + (() if row.contradicts else ("contradicts",))
    return {name: value for name, value in row.to_json().items() if name not in left_out}
