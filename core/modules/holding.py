"""Which modules are doing something for an agent that would be gone if they were stopped.

A module with states begins in its initial one, in which it holds nothing: no page is open, no app is served, no
job runs. In any other it is in use, even if nobody calls it.
"""

from __future__ import annotations


class Holding:
    """The agents for whom modules are not in their initial state."""

    def __init__(self) -> None:
        self._agents: dict[str, set[str]] = {}

    def told(self, module: str, agent: str, state: str, initial: str) -> None:
        """A module told of the state that it is in for an agent. Without an `initial` one every state counts."""
        agents = self._agents.setdefault(module, set())
        if state != initial:
            agents.add(agent)
        else:
            agents.discard(agent)

    def forget(self, module: str) -> None:
        """A module was stopped."""
        self._agents.pop(module, None)

    def holds(self, module: str) -> bool:
        """Whether it is in use."""
        return bool(self._agents.get(module))
