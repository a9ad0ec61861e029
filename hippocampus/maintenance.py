"""What is done to a memory while nobody uses it: merging what belongs together, and letting go of what has faded.

It waits until the memory has rested: what is being talked about now is merged later, and no turn ever waits
for the small model. Journals keep everything, so a rebuild brings back what was let go, until it fades again.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final, Protocol

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Clock
from iact.hippocampus.fragment import Fragment
from iact.hippocampus.ranking import Weights, freshness

IDLE: Final = 60.0
"""Seconds without a turn from which a memory rests."""

GONE: Final = 1 / 16
"""Freshness below which a fragment is let go: four half-lives of its kind."""

GONE_IF_REPLACED: Final = 1 / 2
"""The same for what a newer one stands for."""

_LOG: Final = logging.getLogger(__name__)


class MaintainedMemory(Protocol):
    """A memory that is looked after. `uses`: how often it was used so far."""

    @property
    def uses(self) -> int: ...

    async def used(self) -> None:
        """Wait until it is used, unless it was since the last call."""
        ...

    async def maintain(self) -> None:
        """Merge and let go, once.

        Raises:
            MemoryUnavailable: not now.
        """
        ...


def faded(fragment: Fragment, now: datetime, weights: Weights) -> bool:
    """Whether a fragment is to be let go. What the user wants, goals and preferences, stays until it is replaced."""
    fresh = freshness(fragment, now, weights)
    if fragment.superseded_by:
        return fresh < GONE_IF_REPLACED
    return fragment.kind not in ("goal", "preference") and fresh < GONE


async def maintain_when_idle(memory: MaintainedMemory, clock: Clock, *, idle: float = IDLE) -> None:
    """Maintain a memory whenever it has rested for `idle` seconds since it was last used; until cancelled."""
    while True:
        await memory.used()
        seen = -1
        while seen != memory.uses:
            seen = memory.uses
            await clock.sleep(idle)
        try:
            await memory.maintain()
        except MemoryUnavailable as error:
            _LOG.info("not maintained: %s", error)
        except Exception:
            _LOG.exception("Tidying the memory met a bug.")
