"""How many sessions are at work at once: another one's models are not asked while there are as many as may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from typing import Final

from iact.core.errors import QuotaExceeded
from iact.core.ports import Spending
from iact.core.tree.tree import Tree


class SessionSlots:
    """Shared by the sessions of a runtime. `most`: how many may be at work now, None: any number; `opened`: which are open.

    A session takes a slot with its first call of a model, and has it until all of its agents are at rest.
    """

    def __init__(self, most: Callable[[], Awaitable[int | None]], opened: Container[str]) -> None:
        self._most = most
        self._opened = opened
        self._taken: dict[str, Tree] = {}

    def of(self, tree: Tree) -> SessionSlot:
        """What the models of a session are asked under."""
        return SessionSlot(self, tree)

    async def take(self, tree: Tree) -> None:
        """Have the session of this tree be at work.

        Raises:
            QuotaExceeded: others are, as many as may.
        """
        most = await self._most()
        working = {
            session: one
            for session, one in self._taken.items()
            if session in self._opened and any(agent.active for agent in one.agents.values())
        }
        working.pop(tree.session, None)
        self._taken = working
        if most is not None and len(working) >= most:
            raise QuotaExceeded(
                f"No more than {most} of your sessions may be at work at once, and as many are. Wait until one is done, or "
                "stop one.",
                bound="quota",
            )
        working[tree.session] = tree


class SessionSlot:
    """`core.ports.ModelQuota` of one session."""

    def __init__(self, slots: SessionSlots, tree: Tree) -> None:
        self._slots = slots
        self._tree = tree

    async def reserve(self, most: Spending) -> _Unbounded:
        """Take a slot, or have the one that was taken; `most` doesn't matter."""
        await self._slots.take(self._tree)
        return _UNBOUNDED


class _Unbounded:
    async def settle(self, used: Spending) -> None:
        """Nothing was held but the slot."""


_UNBOUNDED: Final = _Unbounded()
