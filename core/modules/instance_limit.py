"""Limits how many instances of modules run at the same time for all sessions of one user together."""

from __future__ import annotations

from weakref import WeakSet

from iact.core.errors import SandboxUnavailable
from iact.core.modules.instances import Instances
from iact.core.ports import ConcurrencyLimits


class InstanceLimit:
    """The limit shared by the sessions of a runtime. `limits`: how many instances may run now."""

    def __init__(self, limits: ConcurrencyLimits) -> None:
        self._limits = limits
        self._sessions: WeakSet[Instances] = WeakSet()
        limits.count("containers", self._taken)

    def hold(self, instances: Instances) -> None:
        """Count the instances of a session, and let it ask here before it starts more."""
        self._sessions.add(instances)
        instances.refusal = self._refusal

    async def _refusal(self) -> SandboxUnavailable | None:
        bound = await self._limits.containers()
        if bound is None or self._taken() < bound.most:
            return None

        if bound.group:
            return SandboxUnavailable(
                f"No more than {bound.shared} modules of the group {bound.group} may run at once, and "
                "that many are running. Wait until some are idle, or ask an administrator."
            )
        return SandboxUnavailable(
            f"No more than {bound.shared or bound.most} of your modules may run at once, and that "
            "many are running. Close another session, or wait until its modules are idle."
        )

    def _taken(self) -> int:
        return sum(instances.taken for instances in self._sessions)
