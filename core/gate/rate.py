"""Rate limits: token buckets over a time that is handed in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from iact.core.gate.policy import Rate


@dataclass(frozen=True, slots=True)
class Bucket:
    """How many calls are left, as of a time in seconds."""

    left: float
    at: float

    def refilled(self, rate: Rate, now: float) -> Bucket:
        """The bucket at `now`; a clock that went back adds nothing."""
        gained = max(0.0, now - self.at) * rate.calls / rate.per
        return Bucket(min(float(rate.calls), self.left + gained), max(now, self.at))


@dataclass(frozen=True, slots=True)
class Tally:
    """The buckets of one session."""

    buckets: Mapping[Rate, Bucket] = field(default_factory=dict)

    def take(self, rates: tuple[Rate, ...], now: float) -> tuple[Tally, Rate | None]:
        """Count one call under all of `rates`: the new tally and None, or the old one and the rate that refuses."""
        filled = {rate: self.buckets.get(rate, Bucket(rate.calls, now)).refilled(rate, now) for rate in rates}
        for rate, bucket in filled.items():
            if bucket.left < 1:
                return self, rate
        taken = {rate: replace(bucket, left=bucket.left - 1) for rate, bucket in filled.items()}
        return (Tally({**self.buckets, **taken}) if taken else self), None
