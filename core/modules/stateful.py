"""Which instances of modules are doing something for somebody that would be gone if they were stopped.

A module with states begins in its initial one, in which it holds nothing: no page is open, no app is served, no
job runs. In any other it is in use, even if nobody calls it.
"""

from __future__ import annotations

from iact.core.modules.instances import InstanceKey


class StatefulInstances:
    """The names (`core.modules.state_names`) for which instances are not in their initial state."""

    def __init__(self) -> None:
        self._held: dict[InstanceKey, set[str]] = {}

    def told(self, key: InstanceKey, whose: str, state: str, initial: str) -> None:
        """An instance told of the state that it is in under a name. Without an `initial` one every state counts."""
        held = self._held.setdefault(key, set())
        if state != initial:
            held.add(whose)
        else:
            held.discard(whose)

    def forget(self, key: InstanceKey) -> None:
        """An instance was stopped, or what it held has ended."""
        self._held.pop(key, None)

    def held(self, key: InstanceKey) -> frozenset[str]:
        """For whom it is in use."""
        return frozenset(self._held.get(key, ()))

    def holds(self, key: InstanceKey) -> bool:
        """Whether it is in use."""
        return bool(self._held.get(key))
