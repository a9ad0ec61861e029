"""How much a run does of what takes long: IACT_TEST_SCALE is 1 in `make test` and 16 in `make test-long`.

A short run makes every promise once, on what is usual; a long one on every backend, in every width and for many rounds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SCALE: Final = float(os.environ.get("IACT_TEST_SCALE", "1"))
"""Multiplies the rounds of tests that draw examples, kill processes or go through a corpus."""
LONG: Final = SCALE > 1


def rounds(usual: float, *, least: int = 1) -> int:
    """How many rounds to play where `usual` are played in `make test`."""
    return max(least, round(usual * SCALE))


def short(usual: Sequence[T], *, of: Sequence[T]) -> Sequence[T]:
    """Which of the parameters `of` a test has: a short run has the `usual` ones."""
    return of if LONG else usual
