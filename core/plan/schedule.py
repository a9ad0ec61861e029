"""What decides, among ready nodes, which may start now: order, exclusive resources, rate limits.

Pure: time is an argument. The order is that of node ids, so that equal plans with equal outcomes give
equal traces.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """Calls per second at one endpoint, and how many may come at once after a rest."""

    per_second: float
    burst: int = 1


class TokenBucket:
    """Holds up to `burst` tokens and gains `per_second` of them; a call takes one."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._tokens = float(rate.burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """0 if a token was taken, else the seconds until there is one."""
        if self._at is not None:
            self._tokens = min(self._rate.burst, self._tokens + (now - self._at) * self._rate.per_second)
        self._at = now
        if self._tokens >= 1 - 1e-9:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate.per_second


class ReadyQueue:
    """Ids of ready nodes, smallest first; an id is in it once. A node that is held waits outside, in `aside`."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.aside: set[str] = set()
        self._heap: list[str] = []
        self._in: set[str] = set()

    def __len__(self) -> int:
        return len(self._in)

    def add(self, node: str) -> None:
        if node in self.held:
            self.aside.add(node)
        elif node not in self._in:
            self._in.add(node)
            heapq.heappush(self._heap, node)

    def hold(self, node: str) -> None:
        """Let a node wait outside whenever it is ready, until `let_go`."""
        self.held.add(node)
        if node in self._in:
            self._in.remove(node)
            self.aside.add(node)

    def let_go(self, node: str) -> None:
        """It may start again as soon as it is ready."""
        self.held.discard(node)
        if node in self.aside:
            self.aside.remove(node)
            self.add(node)

    def remove(self, node: str) -> None:
        """Take it out, wherever it stands (its place in the heap is cleared when it comes up)."""
        self._in.discard(node)
        self.aside.discard(node)

    def pop(self) -> str | None:
        while self._heap:
            node = heapq.heappop(self._heap)
            if node in self._in:
                self._in.remove(node)
                return node
        return None


class Resources:
    """Who writes what. Two writers of one resource never run at the same time."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def free(self, names: Iterable[str]) -> bool:
        return not any(name in self._held for name in names)

    def take(self, names: Iterable[str], node: str) -> None:
        for name in names:
            self._held[name] = node

    def release(self, names: Iterable[str], node: str) -> None:
        for name in names:
            if self._held.get(name) == node:
                del self._held[name]
