"""Maintenance of an idle memory: merging related fragments, and removing faded ones.

It waits until the memory is idle: what is being discussed now is merged later, and no turn ever waits for the small
model. Journals keep everything, so a rebuild restores what was removed, until it fades again.
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
"""Seconds without a turn after which a memory is idle."""

GONE: Final = 1 / 16
"""Freshness below which a fragment is removed: four half-lives of its kind."""

GONE_IF_REPLACED: Final = 1 / 2
"""The same for a fragment that was replaced by a newer one."""

_LOG: Final = logging.getLogger(__name__)


class MaintainedMemory(Protocol):
    """A memory to maintain. `uses`: how often it was used so far."""

    @property
    def uses(self) -> int: ...

    async def used(self) -> None:
        """Wait until it is used, unless it was used since the last call."""
        ...

    async def maintain(self) -> None:
        """Merge and remove fragments, once.

        Raises:
            MemoryUnavailable: impossible now.
        """
        ...


def faded(fragment: Fragment, now: datetime, weights: Weights) -> bool:
    """Whether a fragment should be removed. The user's goals and preferences stay until they are replaced."""
    fresh = freshness(fragment, now, weights)
    if fragment.superseded_by:
        return fresh < GONE_IF_REPLACED
    return fragment.kind not in ("goal", "preference") and fresh < GONE


async def maintain_when_idle(memory: MaintainedMemory, clock: Clock, *, idle: float = IDLE) -> None:
    """Maintain a memory whenever it was not used for `idle` seconds; until cancelled."""
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
