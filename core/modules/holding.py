"""Which instances of modules are doing something for an agent that would be gone if they were stopped.

A module with states begins in its initial one, in which it holds nothing: no page is open, no app is served, no
job runs. In any other it is in use, even if nobody calls it.
"""

from __future__ import annotations

from core.modules.instances import Key


class Holding:
    """The agents for whom instances are not in their initial state."""

    def __init__(self) -> None:
        self._agents: dict[Key, set[str]] = {}

    def told(self, key: Key, agent: str, state: str, initial: str) -> None:
        """An instance told of the state that it is in for an agent. Without an `initial` one every state counts."""
        agents = self._agents.setdefault(key, set())
        if state != initial:
            agents.add(agent)
        else:
            agents.discard(agent)

    def forget(self, key: Key) -> None:
        """An instance was stopped, or what it held has ended."""
        self._agents.pop(key, None)

    def agents(self, key: Key) -> frozenset[str]:
        """For whom it is in use."""
        return frozenset(self._agents.get(key, ()))

    def holds(self, key: Key) -> bool:
        """Whether it is in use."""
        return bool(self._agents.get(key))
