"""How often something may be done: token buckets. Pure: time is an argument."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per second (0: only the first), and how many may come at once after a period without calls."""

    per_second: float
    burst: int = 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many tokens are left, as of a time in seconds."""

    left: float
    at: float

    def refilled(self, now: float, *, tokens: float, per: float, most: float) -> Bucket:
        """Return the bucket at `now`, if it gains `tokens` in `per` seconds. A clock that went back adds nothing."""
        gained = max(0.0, now - self.at) * tokens / per
        return Bucket(min(most, self.left + gained), max(now, self.at))


class TokenBucket:
    """Holds up to `burst` tokens and gains `per_second` of them; a call takes one."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._bucket: Bucket | None = None

    def take(self, now: float) -> float:
        """Take a token. Returns 0 if one was taken, or else the seconds until one is available."""
        missing = self._missing(now)
        if missing <= 0:
            self._add(-1)
            return 0.0
        return missing

    def reserve(self, now: float) -> float:
        """Take the next free token. Returns the seconds until it is available."""
        missing = self._missing(now)
        self._add(-1)
        return max(0.0, missing)

    def give_back(self) -> None:
        """Return the last token that was taken, because it is not needed."""
        self._add(1)

    def _add(self, tokens: float) -> None:
        assert self._bucket is not None, "nobody has asked for a token yet"
        self._bucket = replace(self._bucket, left=self._bucket.left + tokens)

    def _missing(self, now: float) -> float:
        """The seconds until a token is available."""
        burst, gain = float(self._rate.burst), self._rate.per_second
        self._bucket = (self._bucket or Bucket(burst, now)).refilled(now, tokens=gain, per=1, most=burst)
        left = self._bucket.left
        if left >= 1 - 1e-9:
            return 0.0
        return (1 - left) / gain if gain else math.inf
