"""How long a denial takes: as long as a lost call of the same function, so that timing reveals nothing (law 7).

Durations of calls of each function come from the session itself: calls that were lost, and calls that completed. The
delay of a denial is drawn from those of the lost calls, including values between them. While there are few lost calls,
completed calls are used instead, because a module that is lost during a call is lost while it works on it. If there are
none either, the durations of the session's other functions are used, and finally a prior. Pure.
"""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

PRIOR: Final[tuple[float, ...]] = (0.045, 0.055, 0.06, 0.065, 0.07, 0.08, 0.1, 0.15)
"""Durations, in seconds, of calls that were lost while a script started, in containers on a mostly idle machine."""

ENOUGH: Final = 8
"""From this many losses of a function on, only these are used."""

_KEPT: Final = 256
_FUNCTIONS: Final = 256
LONGEST: Final = 10.0
"""The longest delay of a denial, in seconds."""


def _few() -> deque[float]:
    return deque(maxlen=_KEPT)


@dataclass(slots=True)
class _Taken:
    """Durations of the newest calls of one function, in seconds."""

    lost: deque[float] = field(default_factory=_few)
    completed: deque[float] = field(default_factory=_few)


class Delays:
    """Durations of calls by function: the newest 256 of each kind, for the 256 functions that were called last."""

    def __init__(self, lost: Sequence[float] = ()) -> None:
        self._functions: OrderedDict[str, _Taken] = OrderedDict()
        for seconds in lost:
            self.record("", seconds, lost=True)

    def record(self, function: str, seconds: float, *, lost: bool) -> None:
        """Record how long a call took until it was lost or completed."""
        if seconds < 0:
            return

        taken = self._functions.setdefault(function, _Taken())
        self._functions.move_to_end(function)
        durations = taken.lost if lost else taken.completed
        durations.append(min(seconds, LONGEST))

        if len(self._functions) > _FUNCTIONS:
            self._functions.popitem(last=False)

    def draw(self, function: str, source: random.Random) -> float:
        """Draw the delay of one denial of a function, in seconds."""
        own = self._functions.get(function, _Taken())
        known = list(own.lost)

        # The more losses there are, the more often one of them is used.
        if len(known) < ENOUGH and source.random() * ENOUGH >= len(known):
            known = list(own.completed) or self._elsewhere()

        return min(LONGEST, _between(sorted(known), source))

    def _elsewhere(self) -> list[float]:
        """Durations to use for a function without any of its own."""
        functions = self._functions.values()
        lost = list(chain.from_iterable(taken.lost for taken in functions))
        if lost:
            return lost

        completed = list(chain.from_iterable(taken.completed for taken in functions))
        return completed or [*PRIOR]


def _between(known: Sequence[float], source: random.Random) -> float:
    """Return one of these values, or a value between two neighbours. Each interval is equally likely."""
    place = source.random() * len(known)
    at = int(place)

    # The interval of a value ends in the middle between it and each of its neighbours.
    below = known[max(0, at - 1)]
    above = known[min(len(known) - 1, at + 1)]
    low = (below + known[at]) / 2
    high = (known[at] + above) / 2

    return (low + (high - low) * (place - at)) * source.uniform(0.98, 1.02)
