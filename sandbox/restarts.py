"""How often a module that fails is started again: after growing pauses, and finally not at all.

A failure is an instance that did not come up, or was lost soon afterwards. An instance that served for a while ends the
series. After three failures in a row the module is withdrawn for its session, until its source changes. Failures of the
engine itself do not count. Time is an input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST: Final = 3
"""Failures in a row after which a module is withdrawn."""
PAUSES: Final = (0.0, 0.5, 2.0)
"""Seconds between a failure and the next start, by the number of failures in a row."""
SERVED: Final = 30.0
"""Seconds after which an instance counts as having served."""


@dataclass(slots=True)
class Restarts:
    """One module's series of failures in one session. Times on one monotonic scale, in seconds."""

    digest: str = ""
    failures: int = 0
    last: float = 0.0
    reason: str = ""

    @property
    def withdrawn(self) -> bool:
        """Whether it is no longer started."""
        return self.failures >= MOST

    def pause(self, digest: str, now: float) -> float:
        """Seconds to wait before the next start of the source `digest`. A different source starts a new series."""
        if digest != self.digest:
            self.digest, self.failures = digest, 0
        if not self.failures:
            return 0.0
        return max(0.0, self.last + PAUSES[min(self.failures, MOST - 1)] - now)

    def failed(self, reason: str, now: float, *, since: float | None = None) -> None:
        """Note that it did not come up, or, if it came up at `since`, that it was lost now. `reason`: a sentence."""
        if since is not None and now - since >= SERVED:
            self.failures = 0
        self.failures += 1
        self.last, self.reason = now, reason
