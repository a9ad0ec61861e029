"""The temporary files of one agent's worker, which the same agent's viewer can read but not change.

They exist as long as either of the two instances. Each instance holds them, and when the last one releases them they
are removed. The backend decides where they are: a volume of the engine, a mount, or a folder.
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
    """One agent's temporary files for one module. `place`: a unique path, used by the backend as such or as a name."""

    owner: Owner
    place: Path
    holders: int
    let_go: Callable[[Temporary], Awaitable[None]] = field(repr=False)
    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while they are created, which the first instance that needs them does."""
    made: bool = False

    async def release(self) -> None:
        """Release them for one instance."""
        self.holders -= 1
        if not self.holders:
            await self.let_go(self)


class Temporaries:
    """All temporary files of one host. `remove`: removes what the backend created at a place."""

    def __init__(self, remove: Callable[[Path], Awaitable[None]]) -> None:
        self._remove = remove
        self._held: dict[Owner, Temporary] = {}

    def hold(self, owner: Owner, place: Path) -> Temporary:
        """The temporary files of `owner`, for one more instance, which must release them. `place`: that of new ones."""
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = Temporary(owner, place, 0, self._let_go)
        held.holders += 1
        return held

    def give(self, held: Temporary, owner: Owner) -> bool:
        """Assign them to the owner that their instance was given to. False if that owner already has others."""
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
