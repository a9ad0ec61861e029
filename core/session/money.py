"""A session's budget of money: a model is not called if the call could cost more than what is left."""

from __future__ import annotations

import asyncio

from iact.core.errors import QuotaExceeded
from iact.core.ports import Spending
from iact.core.tree.tree import Tree


class MoneyBudget:
    """What is left of `tree.bounds.money`. It keeps its own sum, because the cost of a call is known before its record
    is made."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._used = tree.cost
        self._held = 0.0
        self._settled = asyncio.Condition()

    async def reserve(self, most: Spending) -> _Held:
        async with self._settled:
            while True:
                money = self._tree.bounds.money
                if money is None or self._used + self._held + most.money <= money:
                    self._held += most.money
                    return _Held(self, most.money)
                if self._used + most.money > money:
                    raise QuotaExceeded(_refusal(money, self._used, most.money), bound="money")
                await self._settled.wait()

    async def settle(self, held: float, used: float) -> None:
        """Replace the `held` reservation of a call by its cost, `used`."""
        async with self._settled:
            self._held -= held
            self._used += used
            self._settled.notify_all()


class _Held:
    """Money that is reserved for one call."""

    def __init__(self, budget: MoneyBudget, money: float) -> None:
        self._budget = budget
        self._money = money

    async def settle(self, used: Spending) -> None:
        await self._budget.settle(self._money, used.money)


def _refusal(money: float, used: float, needed: float) -> str:
    limit, spent, most = (Spending(money=one).price for one in (money, used, needed))
    return (
        f"This session may cost {limit}, of which {spent} is used. The next model call could cost "
        f"{most}, so it was not made. Raise the session's budget, or continue in a new session."
    )
