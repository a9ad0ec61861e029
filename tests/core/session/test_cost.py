"""What a child agent and a step cost, in functions that are called and in bytes: both are the same on every machine.

The whole runtime with its journal, with a model that answers at once and a module in memory.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from benchmarks.tree import ours
from benchmarks.tree.measure import Stopwatch

CHILDREN: Final = 40
CALLS: Final = 2000
"""Calls of functions, in Python and in C, per child agent; 1,630 when this was written, 1,820 before."""

STEPS: Final = 50
BYTES: Final = 1750
"""Bytes of a step in the journal, what was said included; 1,660 when this was written."""


class Counter:
    """Counts the calls of this thread while a stopwatch runs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        begin, end = Stopwatch.__enter__, Stopwatch.__exit__

        def enter(watch: Stopwatch) -> Stopwatch:
            begin(watch)
            sys.setprofile(self._count)
            return watch

        def leave(watch: Stopwatch, *why: object) -> None:
            sys.setprofile(None)
            end(watch, None, None, None)

        patch.setattr(Stopwatch, "__enter__", enter)
        patch.setattr(Stopwatch, "__exit__", leave)

    def _count(self, frame: FrameType, event: str, what: object) -> None:
        self.calls += event in ("call", "c_call")


def test_calls_of_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = Counter(monkeypatch)
    asyncio.run(_children(tmp_path))
    assert 500 < counter.calls / CHILDREN < CALLS


async def _children(data: Path) -> None:
    await ours.children(data, CHILDREN)


def test_bytes_of_a_step(tmp_path: Path) -> None:
    found = asyncio.run(_reading(tmp_path))
    assert 500 < found["file"] < BYTES


async def _reading(data: Path) -> dict[str, float]:
    return await ours.reading(data, STEPS)
