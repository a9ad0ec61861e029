"""The stored sessions of a data directory, from the two ends of their journals alone."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.errors import JournalError
from core.journal.ends import Ends
from core.journal.file import FILE
from core.journal.seal import Sealer


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A stored session, as a list shows it. `title`: the first words of the user. Times are ISO 8601, UTC.

    `foreign`: this installation did not write its last record, so it can be looked at, or adopted.
    """

    id: str
    title: str
    created: str
    changed: str
    records: int
    open: bool
    foreign: bool = False


def listed(sessions: Path, sealer: Sealer, running: Container[str] = ()) -> list[SessionInfo]:
    """Every stored session, the one that changed last first; damaged ones are left out. `running`: those open here."""
    found = [_info(path, sealer, running) for path in sessions.glob(f"*/{FILE}")]
    return sorted((one for one in found if one is not None), key=lambda one: one.changed, reverse=True)


def _info(path: Path, sealer: Sealer, running: Container[str]) -> SessionInfo | None:
    try:
        ends = Ends.of(path, sealer)
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except (OSError, JournalError):
        return None
    if not ends.first:
        return None
    name = path.parent.name
    return SessionInfo(
        name,
        _short(ends.title),
        ends.first[0].at,
        changed,
        ends.last,
        name in running,
        foreign=not ends.sealed,
    )


def _short(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
