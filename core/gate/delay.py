"""How long a denial takes: as long as a failure does, so that time tells a model nothing (law 7). Pure.

The delays of real failures of modules are recorded; a denial's delay is one of them, drawn at random and
moved a little. Until enough are known, a prior stands in: what a refused connection typically costs. The same
sampler serves the harness that compares the two distributions.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Final

_PRIOR: Final[tuple[float, ...]] = (0.002, 0.003, 0.004, 0.005, 0.008, 0.012, 0.02, 0.05)
_KEPT: Final = 512
_LONGEST: Final = 10.0


class Delays:
    """The delays of real failures, in seconds; the newest 512."""

    def __init__(self, seen: Sequence[float] = ()) -> None:
        self._seen: deque[float] = deque(seen, maxlen=_KEPT)

    def record(self, seconds: float) -> None:
        """A module could not be reached, after so long."""
        if seconds >= 0:
            self._seen.append(min(seconds, _LONGEST))

    def draw(self, source: random.Random) -> float:
        """The delay of one denial, in seconds: a smoothed draw from the failures, and the prior while they are few."""
        missing = max(0, len(_PRIOR) - len(self._seen))
        pool = (*self._seen, *_PRIOR[:missing])
        return min(_LONGEST, source.choice(pool) * source.uniform(0.95, 1.05))
