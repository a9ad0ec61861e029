"""Decides which ready nodes may start now, by order and exclusive resources.

Pure. The order is that of node ids, so that equal plans with equal outcomes give equal traces.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable


class ReadyQueue:
    """Ids of ready nodes, smallest first; each id is in it once. A held node waits outside, in `aside`."""

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
        """Keep a node outside whenever it is ready, until `let_go`."""
        self.held.add(node)
        if node in self._in:
            self._in.remove(node)
            self.aside.add(node)

    def let_go(self, node: str) -> None:
        """Let a node start again as soon as it is ready."""
        self.held.discard(node)
        if node in self.aside:
            self.aside.remove(node)
            self.add(node)

    def remove(self, node: str) -> None:
        """Remove a node, wherever it is. (Its place in the heap is cleared when it comes up.)"""
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
    """Who writes what.

    Two writers of one resource never run at the same time, except writers that share it: each of those writes in its
    own copy.
    """

    def __init__(self) -> None:
        self._held: dict[str, str] = {}
        self._shared: dict[str, set[str]] = {}

    def free(self, name: str, *, shared: bool = False) -> bool:
        """Whether a node may take it now, alone or `shared`."""
        return name not in self._held and (shared or name not in self._shared)

    def take(self, names: Iterable[str], node: str, *, shared: bool = False) -> None:
        for name in names:
            if shared:
                self._shared.setdefault(name, set()).add(node)
            else:
                self._held[name] = node

    def release(self, names: Iterable[str], node: str) -> None:
        for name in names:
            if self._held.get(name) == node:
                del self._held[name]
            sharing = self._shared.get(name, set())
            sharing.discard(node)
            if not sharing:
                self._shared.pop(name, None)
