"""Every byte of a step is counted, and every sample of a running process belongs to a package."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from benchmarks.aims.stored import measured
from benchmarks.aims.where import room
from benchmarks.tree import ours
from benchmarks.tree.measure import RESULT, TEXT
from iact.core.journal import file
from iact.core.language import labels

STEPS = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with one session."""

    async def run() -> None:
        await ours.reading(tmp_path, STEPS)

    asyncio.run(run())
    return tmp_path


def test_every_byte_of_a_journal_is_told_once(folder: Path) -> None:
    (journal,) = folder.rglob(file.FILE)
    found = measured(folder, STEPS)
    assert sum(kind.bytes for kind in found.kinds.values()) * STEPS == pytest.approx(journal.stat().st_size)
    assert [found.kinds[kind].count for kind in ("turn", "gate", "call", "result")] == [pytest.approx(1)] * 4
    assert found.kinds["result"].parts["content"] == pytest.approx(len(RESULT))
    assert found.kinds["turn"].parts["content"] > len(TEXT)
    assert found.kinds["gate"].parts["outcomes"] == 0
    assert found.kinds["call"].parts["derived"] > 0
    assert {("prev", "frame"), ("usage", "outcomes"), ("reason", "derived")} <= {
        (name, part) for name, part, _ in found.fields
    }


def test_the_innermost_file_of_ours_says_where_a_sample_is() -> None:
    rooms: list[str] = []
    sys.setprofile(lambda frame, event, what: rooms.append(room(frame)) if event == "call" else None)
    labels.fenced("text")
    sys.setprofile(None)
    assert rooms[0] == "core/language"
    assert room(sys._getframe()) == "event loop and model"
