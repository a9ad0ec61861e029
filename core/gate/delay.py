"""How long a denial takes: as long as a call of that function that did not complete, so that time tells nothing (law 7).

What calls of each function took is known from the session itself: those that were lost, and those that completed.
A denial's delay is drawn from the lost ones, between them as well as at them. While these are few, it is drawn from
the completed ones in their place, since a module that is lost in a call is lost while it works on it; before there
are any, from what the session's other functions took, and at last from a prior. Pure.
"""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

PRIOR: Final[tuple[float, ...]] = (0.045, 0.055, 0.06, 0.065, 0.07, 0.08, 0.1, 0.15)
"""Seconds that calls took which were lost while a script began, in containers on a machine with little else to do."""

ENOUGH: Final = 8
"""Losses of a function from which on nothing else stands in for them."""

_KEPT: Final = 256
_FUNCTIONS: Final = 256
LONGEST: Final = 10.0
"""Seconds of a denial at most."""


def _few() -> deque[float]:
    return deque(maxlen=_KEPT)


@dataclass(slots=True)
class _Taken:
    """What the newest calls of one function took, in seconds."""

    lost: deque[float] = field(default_factory=_few)
    completed: deque[float] = field(default_factory=_few)


class Delays:
    """What calls took, by function: the newest 256 of each kind, of the 256 functions that were called last."""

    def __init__(self, lost: Sequence[float] = ()) -> None:
        self._functions: OrderedDict[str, _Taken] = OrderedDict()
        for seconds in lost:
            self.record("", seconds, lost=True)

    def record(self, function: str, seconds: float, *, lost: bool) -> None:
        """A call took so long until it was lost, or had completed."""
        if seconds < 0:
            return
        taken = self._functions.setdefault(function, _Taken())
        self._functions.move_to_end(function)
        (taken.lost if lost else taken.completed).append(min(seconds, LONGEST))
        if len(self._functions) > _FUNCTIONS:
            self._functions.popitem(last=False)

    def draw(self, function: str, source: random.Random) -> float:
        """The delay of one denial of a function, in seconds."""
        own = self._functions.get(function, _Taken())
        known = list(own.lost)
        if len(known) < ENOUGH and source.random() * ENOUGH >= len(known):
            known = list(own.completed) or self._elsewhere()
        return min(LONGEST, _between(sorted(known), source))

    def _elsewhere(self) -> list[float]:
        """What stands in for a function of which nothing is known."""
        everything = self._functions.values()
        lost = list(chain.from_iterable(one.lost for one in everything))
        return (
            lost
            or list(chain.from_iterable(one.completed for one in everything if one.completed))
            or [*PRIOR]
        )


def _between(known: Sequence[float], source: random.Random) -> float:
    """One of these values, or one between two neighbours: each stretch is as likely as any other."""
    place = source.random() * len(known)
    at = int(place)
    below = known[max(0, at - 1)]
    low, high = (below + known[at]) / 2, (known[at] + known[min(len(known) - 1, at + 1)]) / 2
    return (low + (high - low) * (place - at)) * source.uniform(0.98, 1.02)
