"""What a step costs, in functions that are called: a count is the same on every machine, a time is not.

The whole runtime with its journal and the client of real endpoints, over HTTP. Two thirds of the calls were once
those of a transport.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final

import pytest

from benchmarks.peers.endpoint import LOOK
from benchmarks.peers.ours import Ours

ROOT: Final = Path(__file__).parents[3]
STEPS: Final = 60
FROM: Final = 30
MOST: Final = 3000
"""Calls of functions, in Python and in C, per step; 2,550 when this was written, 7,250 with the SDK's transport."""


@pytest.fixture
def url() -> Iterator[str]:
    """The endpoint that all frameworks are measured with, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.endpoint"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None
        try:
            yield f"{endpoint.stdout.readline().strip()}/v1"
        finally:
            endpoint.terminate()


class Counted(Ours):
    """Counts the calls of this thread from one use of the tool to another."""

    calls = 0

    def lines(self) -> str:
        said = super().lines()
        if len(self.marks) == FROM:
            sys.setprofile(self._count)
        elif len(self.marks) == STEPS:
            sys.setprofile(None)
        return said

    def _count(self, frame: FrameType, event: str, what: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1


def test_calls_of_a_step(url: str, tmp_path: Path) -> None:
    framework = Counted(url, tmp_path)

    async def run() -> None:
        try:
            ask = await framework.reader(STEPS + 5)
            await ask(LOOK.format(count=STEPS))
        finally:
            sys.setprofile(None)
            await framework.close()

    asyncio.run(run())
    assert len(framework.marks) == STEPS
    assert 500 < framework.calls / (STEPS - FROM) < MOST
