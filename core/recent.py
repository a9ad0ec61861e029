"""Results of pure work that were made last, so that what a thread has made need not be made again where all others wait.

The fold of a session is pure and runs on the event loop. Where a part of it takes long because a text is long, the
session does that part in a thread first, and the fold finds it here. What is not here is made on the spot, so nothing
but time depends on it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The last results by what they were made of: the newest, and as many before it as fit into `most` characters."""

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._size = 0
        self._results: Final = OrderedDict[K, tuple[V, int]]()
        self._lock: Final = Lock()

    def get(self, key: K, size: int, make: Callable[[], V]) -> V:
        """The result for a key, made if it is not there. `size`: how many characters it has."""
        with self._lock:
            known = self._results.get(key)
            if known is not None:
                self._results.move_to_end(key)
                return known[0]

        result = make()
        self._keep(key, result, size)
        return result

    def _keep(self, key: K, result: V, size: int) -> None:
        with self._lock:
            if key in self._results:
                return
            self._results[key] = result, size
            self._size += size
            while self._size > self._most and len(self._results) > 1:
                _, (_, dropped) = self._results.popitem(last=False)
                self._size -= dropped
