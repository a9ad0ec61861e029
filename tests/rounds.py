"""How much work long tests do: IACT_TEST_SCALE is 1 in `make test` and 16 in `make test-long`.

A short run tests every promise once, in the usual configuration; a long run on every backend, in every width and for
many rounds.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SCALE: Final = float(os.environ.get("IACT_TEST_SCALE", "1"))
"""Multiplies the rounds of tests that generate examples, kill processes or go through a corpus."""
LONG: Final = SCALE > 1


def rounds(usual: float, *, least: int = 1) -> int:
    """The number of rounds to run, if `make test` runs `usual`."""
    return max(least, round(usual * SCALE))


def short(usual: Sequence[T], *, of: Sequence[T]) -> Sequence[T]:
    """The parameters of a test: all of `of`, or only the `usual` ones in a short run."""
    return of if LONG else usual
