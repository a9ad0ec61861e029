"""Limits how many sessions are at work at the same time: above the limit, the models of other sessions are not
asked."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from iact.core.errors import QuotaExceeded
from iact.core.ports import AtOnce, ConcurrencyLimits, Spending
from iact.core.tree.tree import Tree


class SessionSlots:
    """The slots shared by the sessions of a runtime. `limits`: how many may be at work; `opened`: which are open.

    A session takes a slot with its first call of a model, and keeps it until all of its agents are at rest.
    """

    def __init__(self, limits: ConcurrencyLimits, opened: Container[str]) -> None:
        self._limits = limits
        self._opened = opened
        self._taken: dict[str, Tree] = {}
        limits.count("sessions", lambda: len(self._working()))

    def of(self, tree: Tree) -> SessionSlot:
        """The quota for the models of a session."""
        return SessionSlot(self, tree)

    async def take(self, tree: Tree) -> None:
        """Take a slot for the session of this tree.

        Raises:
            QuotaExceeded: all slots are taken by other sessions.
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
            f"No more than {bound.shared} sessions of the group {bound.group} may work at once, and "
            "that many are working. Wait until one is done, or ask an administrator."
        )
    return (
        f"No more than {bound.shared or bound.most} of your sessions may work at once, and that many "
        "are working. Wait until one is done, or stop one."
    )


class SessionSlot:
    """The `core.ports.ModelQuota` of one session."""

    def __init__(self, slots: SessionSlots, tree: Tree) -> None:
        self._slots = slots
        self._tree = tree

    async def reserve(self, most: Spending) -> _Unbounded:
        """Take a slot, or keep the one already taken; `most` doesn't matter."""
        await self._slots.take(self._tree)
        return _UNBOUNDED


class _Unbounded:
    async def settle(self, used: Spending) -> None:
        """Do nothing: only the slot was reserved."""


_UNBOUNDED: Final = _Unbounded()
