"""Which instances of modules hold something that would be lost if they were stopped.

A module with states begins in its initial state, in which it holds nothing: no page is open, no app is served, no job
runs. In any other state it is in use, even if it is not being called.
"""

from __future__ import annotations

from iact.core.modules.instances import InstanceKey


class StatefulInstances:
    """The names (`core.modules.state_names`) for which instances are not in their initial state."""

    def __init__(self) -> None:
        self._in_use: dict[InstanceKey, set[str]] = {}
        """The names for which an instance is in use."""
        self._ever: set[InstanceKey] = set()
        """Instances that were in use for some name."""

    def told(self, key: InstanceKey, whose: str, state: str, initial: str) -> None:
        """Note the state that an instance reported for a name. Without an `initial` state every state counts as in
        use."""
        names = self._in_use.setdefault(key, set())
        if state == initial:
            names.discard(whose)
        else:
            names.add(whose)
            self._ever.add(key)

    def let_go(self, key: InstanceKey, whose: str) -> None:
        """Note that what an instance held for one name has ended."""
        self._in_use.get(key, set()).discard(whose)

    def forget(self, key: InstanceKey) -> None:
        """Note that an instance was stopped, or that what it held has ended."""
        self._in_use.pop(key, None)
        self._ever.discard(key)

    def held(self, key: InstanceKey) -> frozenset[str]:
        """The names for which it is in use."""
        return frozenset(self._in_use.get(key, ()))

    def holds(self, key: InstanceKey) -> bool:
        """Whether it is in use."""
        return bool(self._in_use.get(key))

    def held_once(self, key: InstanceKey) -> bool:
        """Whether it was in use, and is no longer."""
        return key in self._ever and not self.holds(key)
