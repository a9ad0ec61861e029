"""The tree of a session at every record of its journal, from one pass over the journal.

Folding a journal up to record n takes time proportional to n, which is too long for a person who moves a slider. A
record changes few agents, so one fold notes after each record what these agents look like now. The tree at n is then,
for every agent, the newest note at or before n.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from iact.core.records.record import Record
from iact.core.tree.agent import Agent
from iact.core.tree.apply import take_in
from iact.core.tree.tree import Tree
from iact.core.views.view import NodeView, node_view


@dataclass(slots=True)
class _Notes:
    """What one agent looked like: `nodes[i]` from record `numbers[i]` on."""

    numbers: list[int] = field(default_factory=list)
    nodes: list[NodeView] = field(default_factory=list)

    def add(self, n: int, node: NodeView) -> None:
        if not self.nodes or self.nodes[-1] != node:
            self.numbers.append(n)
            self.nodes.append(node)

    def at(self, n: int) -> NodeView | None:
        place = bisect_right(self.numbers, n)
        return self.nodes[place - 1] if place else None


class Timeline:
    """A timeline that grows by `extend`; `blobs` reads a blob by its SHA-256."""

    def __init__(self, blobs: Callable[[str], bytes]) -> None:
        self._tree = Tree(strict=False, blobs=blobs)
        self._notes: dict[str, _Notes] = {}

    @property
    def last(self) -> int:
        """The number of the newest record taken in."""
        return self._tree.records

    def extend(self, records: Iterable[Record]) -> None:
        """Take in the next records.

        Raises:
            ReplayMismatch: a record does not fit here.
        """
        for record in records:
            before = set(self._concerned(record))
            take_in(self._tree, record)
            for path in before | set(self._concerned(record)):
                agent = self._tree.agents[path]
                notes = self._notes.setdefault(path, _Notes())
                notes.add(record.n, node_view(self._tree, agent))

    def at(self, n: int) -> Sequence[NodeView]:
        """Every agent as it was after record `n`, in order of creation."""
        return [node for notes in self._notes.values() if (node := notes.at(n)) is not None]

    def _concerned(self, record: Record) -> Iterator[str]:
        """The agents whose view this record may change: its own, its callers and lender, and its children."""
        agent = self._tree.agents.get(record.agent)
        if agent is None:
            return
        if record.kind == "control":
            yield from (one.path for one in self._tree.subtree(agent.path))
        yield from (path for path in self._around(agent) if path in self._tree.agents)

    def _around(self, agent: Agent) -> Iterator[str]:
        yield agent.path
        yield agent.account.lender
        # An agent may draw from all agents above it.
        above = agent
        while above.caller in self._tree.agents:
            above = self._tree.agents[above.caller]
            yield above.path
        yield from (pending.child for pending in agent.actions if pending.child)
