"""How many sessions are at work at once: another one's models are not asked while there are as many as may."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from iact.core.errors import QuotaExceeded
from iact.core.ports import AtOnce, ConcurrencyLimits, Spending
from iact.core.tree.tree import Tree


class SessionSlots:
    """Shared by the sessions of a runtime. `limits`: how many may be at work now; `opened`: which are open.

    A session takes a slot with its first call of a model, and has it until all of its agents are at rest.
    """

    def __init__(self, limits: ConcurrencyLimits, opened: Container[str]) -> None:
        self._limits = limits
        self._opened = opened
        self._taken: dict[str, Tree] = {}
        limits.count("sessions", lambda: len(self._working()))

    def of(self, tree: Tree) -> SessionSlot:
        """What the models of a session are asked under."""
        return SessionSlot(self, tree)

    async def take(self, tree: Tree) -> None:
        """Have the session of this tree be at work.

        Raises:
            QuotaExceeded: others are, as many as may.
        """
        bound = await self._limits.sessions(begun=tree.session in self._working())
        working = self._working()
        working.pop(tree.session, None)
        self._taken = working
        if bound is not None and len(working) >= bound.most:
            raise QuotaExceeded(_refusal(bound), bound="quota")
        working[tree.session] = tree

    def _working(self) -> dict[str, Tree]:
        return {
            session: one for session, one in self._taken.items() if session in self._opened and one.at_work
        }


def _refusal(bound: AtOnce) -> str:
    if bound.group:
        return (
            f"No more than {bound.shared} sessions of the group {bound.group} may be at work at once, and as many are. Wait "
            "until one is done, or ask an administrator."
        )
    return (
        f"No more than {bound.shared or bound.most} of your sessions may be at work at once, and as many are. Wait until one is done, or "
        "stop one."
    )


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
