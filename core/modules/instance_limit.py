"""How many instances of modules run at once for all sessions of one user together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from weakref import WeakSet

from iact.core.errors import SandboxUnavailable
from iact.core.modules.instances import Instances


class InstanceLimit:
    """Shared by the sessions of a runtime. `most`: how many may run now; None: any number."""

    def __init__(self, most: Callable[[], Awaitable[int | None]]) -> None:
        self._most = most
        self._sessions: WeakSet[Instances] = WeakSet()

    def hold(self, instances: Instances) -> None:
        """Count what runs for a session, and ask here before more of it does."""
        self._sessions.add(instances)
        instances.refusal = self._refusal

    async def _refusal(self) -> SandboxUnavailable | None:
        most = await self._most()
        if most is None or sum(one.taken for one in self._sessions) < most:
            return None
        return SandboxUnavailable(
            f"No more than {most} of your modules may run at once, and as many do. Close another session, or wait until its "
            "modules are idle."
        )
