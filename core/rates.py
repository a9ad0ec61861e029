"""How often something may be done: a token bucket. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per second, and how many may come at once after a rest."""

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
        if self._at is not None:
            self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.per_second)
        self._at = now
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate.per_second
