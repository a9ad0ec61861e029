"""How often a module that dies is started again: after a growing pause, and at last not at all.

A failure is an instance that did not come up, or was lost soon after it did; one that served for a while ends
the row. After three in a row the module is withdrawn for its session, until its source changes. The engine's own
failures are nobody's here. Time is an input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 3
"""Failures in a row after which a module is withdrawn."""
PAUSES: Final = (0.0, 0.5, 2.0)
"""Seconds between a failure and the next start, by the number of failures in a row."""
SERVED: Final = 30.0
"""Seconds after which an instance counts as one that served."""


@dataclass(slots=True)
class Restarts:
    """One module's row of failures in one session. Times on one monotonic scale, in seconds."""

    digest: str = ""
    failures: int = 0
    last: float = 0.0
    reason: str = ""

    @property
    def withdrawn(self) -> bool:
        """Whether it is not to be started any more."""
        return self.failures >= MOST

    def pause(self, digest: str, now: float) -> float:
        """Seconds to wait before the next start of the source `digest`; other source than before starts afresh."""
        if digest != self.digest:
            self.digest, self.failures = digest, 0
        if not self.failures:
            return 0.0
        return max(0.0, self.last + PAUSES[min(self.failures, MOST - 1)] - now)

    def failed(self, reason: str, now: float, *, since: float | None = None) -> None:
        """It did not come up, or was lost now after it had come up at `since`. `reason`: a sentence."""
        if since is not None and now - since >= SERVED:
            self.failures = 0
        self.failures += 1
        self.last, self.reason = now, reason
