"""How often something may be done: a token bucket. Pure: time is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per second (0: none but the first), and how many may come at once after a rest."""

    per_second: float
    burst: int = 1


class TokenBucket:
    """Holds up to `burst` tokens and gains `per_second` of them; a call takes one."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """0 if a token was taken, else the seconds until there is one."""
        missing = self._missing(now)
        if missing <= 0:
            self._tokens -= 1
            return 0.0
        return missing

    def reserve(self, now: float) -> float:
        """Take the next token that nobody has taken: the seconds until it is there."""
        missing = self._missing(now)
        self._tokens -= 1
        return max(0.0, missing)

    def give_back(self) -> None:
        """Whoever took the last token has no use for it."""
        self._tokens += 1

    def _missing(self, now: float) -> float:
        """Seconds until there is a token."""
        if self._at is not None:
            self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.per_second)
        self._at = now
        if self._tokens >= 1 - 1e-9:
            return 0.0
        return (1 - self._tokens) / self._rate.per_second if self._rate.per_second else math.inf
