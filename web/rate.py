"""A token bucket: how many messages a client may send."""

from __future__ import annotations


class Bucket:
    """Holds up to `burst` tokens and gains `per_second`; starts full. Times are seconds of a monotonic clock."""

    def __init__(self, *, per_second: float, burst: float, now: float) -> None:
        self._per_second = per_second
        self._burst = burst
        self._level = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Take one token; False if there is none."""
        self._level = min(self._burst, self._level + (now - self._at) * self._per_second)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
