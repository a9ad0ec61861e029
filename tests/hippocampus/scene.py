"""A memory with some statements in it, on a real Chroma."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from iact.core.ports import NewStatement
from iact.hippocampus import Hippocampus, WordEmbedder, open_hippocampus
from tests.hippocampus.fakes import StandingClock

GOAL = "Migrate the billing service of our shop from MySQL to Postgres without downtime"


def run(place: Path, *statements: NewStatement, journals: Iterable[NewStatement] = ()) -> _Run:
    return _Run(place, statements, list(journals))


class _Run:
    """Opens a memory with some statements stored for the user `anna`."""

    def __init__(self, place: Path, statements: Iterable[NewStatement], journals: list[NewStatement]) -> None:
        self._opening = open_hippocampus(
            place,
            WordEmbedder(),
            clock=StandingClock(),
            budget=5.0,
            journals=lambda: [("anna", one) for one in journals],
        )
        self._statements = statements

    async def __aenter__(self) -> Hippocampus:
        opened = await self._opening.__aenter__()
        for one in self._statements:
            opened.of("anna").remember(one)
        await opened.settled()
        return opened

    async def __aexit__(self, *error: object) -> None:
        await self._opening.__aexit__(None, None, None)


def contents(place: Path) -> bytes:
    """Every byte of every file."""
    return b"".join(path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file())
