"""How recalled memories stand in a journal, and how they come back from it; pure.

A `recall` record belongs to the agent whose next turn shows them. Its body holds one line for each, as the agent
reads it, and its rows say where each comes from; so does the `result` of a `RECALL` action. Functions that the
agent's input is about in meaning come with it, and their documentation with the turn. So neither replay nor
verification asks a database.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from iact.core.language import labels
from iact.core.ports import Recalled
from iact.core.records.parts import MemorySource

_LINE: Final = 700
"""Characters of one line."""

_BULLET: Final = "- "


def body_of(rows: Iterable[Recalled]) -> str:
    """The body of a record of what was recalled."""
    return "\n".join(_BULLET + labels.inline(row.line, _LINE) for row in rows)


def rows_of(rows: Iterable[Recalled]) -> tuple[MemorySource, ...]:
    """Its field `rows`."""
    return tuple(
        MemorySource(
            id=row.id, kind=row.kind, score=row.score, at=row.at, session=row.session, agent=row.agent, why=row.why,
            untrusted=row.untrusted, contradicts=row.contradicts,
        )
        for row in rows
    )  # fmt: skip


def lines_in(body: str) -> tuple[str, ...]:
    """The lines as an agent reads them."""
    return tuple(line.removeprefix(_BULLET) for line in body.split("\n") if line)


def untrusted_in(rows: Iterable[MemorySource]) -> frozenset[str]:
    """Labels of the outside sources of what was recalled, `memory` among them; empty if there is none.

    The sources are those of another session, where a module may have been another one: `memory` says that
    they count as strange, whatever is known by their names here.
    """
    found = frozenset(one for row in rows for one in row.untrusted)
    return found | {"memory"} if found else found
