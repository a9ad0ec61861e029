"""The temporary files of one agent's worker, which the same agent's viewer sees and can't change.

They live as long as either of the two: whoever starts an instance holds them, and whoever lets go of them last has
them removed. Where they are is the backend's: a volume of the engine's, a mount, a folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

Owner = tuple[str, str, str]
"""Session, module, agent."""


@dataclass(slots=True, eq=False)
class Temporary:
    """One agent's, of one module. `place`: a path of its own, which the backend may use, or only its name."""

    owner: Owner
    place: Path
    holders: int
    let_go: Callable[[Temporary], Awaitable[None]] = field(repr=False)
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while they are made, which the first who needs them does."""
    made: bool = False

    async def release(self) -> None:
        """One instance needs them no more."""
        self.holders -= 1
        if not self.holders:
            await self.let_go(self)


class Temporaries:
    """All of one host's. `places`: names the next one; `remove`: takes away what the backend made there."""

    def __init__(self, places: Callable[[], Path], remove: Callable[[Path], Awaitable[None]]) -> None:
        self._places = places
        self._remove = remove
        self._held: dict[Owner, Temporary] = {}

    def hold(self, owner: Owner) -> Temporary:
        """Those of `owner`, for one instance more, which has to release them."""
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = Temporary(owner, self._places(), 0, self._let_go)
        held.holders += 1
        return held

    def give(self, held: Temporary, owner: Owner) -> bool:
        """Let them be `owner`'s, to whom their instance was given; False if that one has others already."""
        if self._held.setdefault(owner, held) is not held:
            return False
        if held.owner != owner:
            del self._held[held.owner]
            held.owner = owner
        return True

    async def _let_go(self, held: Temporary) -> None:
        if self._held.get(held.owner) is held:  # from now on its owner gets others
            del self._held[held.owner]
        await self._remove(held.place)
