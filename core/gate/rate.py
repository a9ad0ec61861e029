"""Limits on how often functions are called: the token buckets of a session. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from iact.core.gate.policy import CallRate
from iact.core.rates import Bucket


@dataclass(frozen=True, slots=True)
class Tally:
    """The buckets of one session."""

    buckets: Mapping[CallRate, Bucket] = field(default_factory=dict)

    def take(self, rates: tuple[CallRate, ...], now: float) -> tuple[Tally, CallRate | None]:
        """Count one call under all `rates`. Returns the new tally and None, or this tally and the exceeded rate."""
        if not rates:
            return self, None

        filled = {rate: self._filled(rate, now) for rate in rates}
        for rate, bucket in filled.items():
            if bucket.left < 1:
                return self, rate

        taken = {rate: replace(bucket, left=bucket.left - 1) for rate, bucket in filled.items()}
        return Tally({**self.buckets, **taken}), None

    def _filled(self, rate: CallRate, now: float) -> Bucket:
        most = float(rate.calls)
        return self.buckets.get(rate, Bucket(most, now)).refilled(now, tokens=most, per=rate.per, most=most)
