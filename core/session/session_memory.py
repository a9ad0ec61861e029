"""One session's side of memory: it passes on durable records, asks before each turn, and never holds up a turn.

What memory returns is recorded (`core.tree.recall`) before it enters a context, so it is part of the journal like a
tool's result. If memory is off, slow or down, turns go on, and people are notified once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from iact.core.errors import MemoryUnavailable
from iact.core.ports import Memory, MemoryEvent, MemoryQuestion
from iact.core.records.dialogue import Recall
from iact.core.records.parts import MemorySource as MemoryRow
from iact.core.records.record import Record
from iact.core.session.live import Live
from iact.core.tree.agent import Agent
from iact.core.tree.memory_events import memory_event, project_of
from iact.core.tree.recall import body_of, rows_of

_READ: Final = 1_000
"""How many characters of one message are used to find memories that help with it."""

_HISTORY: Final = 60_000
"""How many characters of an agent's newest history are searched for memories that it already knows."""

_FOUND: Final = 8
"""How many memories a RECALL returns."""


class SessionMemory:
    """What one session remembers and recalls; does nothing without a memory."""

    def __init__(self, live: Live, memory: Memory | None) -> None:
        self._live = live
        self._memory = memory
        self._told: set[str] = set()
        self._waiting: dict[int, MemoryEvent] = {}
        if memory is not None:
            live.on_applied.append(self._note)
            live.on_durable.append(self._pass_on)

    @property
    def on(self) -> bool:
        """Whether there is a memory."""
        return self._memory is not None

    def _note(self, record: Record) -> None:
        """Compute what an applied record adds to memory, from the tree as it is now; it is passed on once the record is
        durable."""
        found = memory_event(self._live.tree, record)
        if found is not None:
            self._waiting[record.n] = found

    def _pass_on(self, record: Record) -> None:
        found = self._waiting.pop(record.n, None)
        if found is not None and self._memory is not None:
            self._memory.remember(found)

    async def recall(self, agent: Agent, now: datetime) -> None:
        """Record what helps an agent with its next turn, if anything does."""
        memory, tree = self._memory, self._live.tree
        if memory is None or tree.roles[agent.model].small:
            return
        if self._waiting and agent.depth > 1:
            # A deep agent must know the goal, even if its user has only just stated it and the disk is slow.
            await self._live.journal.durable(max(self._waiting))
        started = self._live.clock.monotonic()
        found = await memory.recall(self._ask(agent, now))
        if found.notice:
            self.tell(found.notice)
        if agent.active and (found.rows or agent.mail.recalled):
            took = round((self._live.clock.monotonic() - started) * 1000)
            recall = Recall(rows=rows_of(found.rows), ms=took)
            self._live.record(recall, agent.path, body=body_of(found.rows))

    def _ask(self, agent: Agent, now: datetime) -> MemoryQuestion:
        reads = [*map(str, agent.mail.feedback), *(message.text for message in agent.mail.ready)]
        return MemoryQuestion(
            self._live.tree.session,
            agent.path,
            "\n".join(text[:_READ] for text in reads),
            now,
            recent=(agent.mail.task[:_READ],),
            history=[agent.role, *_newest(agent)],
            project=project_of(self._live.tree),
        )

    async def search(self, query: str) -> tuple[tuple[MemoryRow, ...], str]:
        """The rows and the body of a RECALL's result.

        Raises:
            MemoryUnavailable: there is no memory, or it can't answer.
        """
        if self._memory is None:
            raise MemoryUnavailable("Memory is off. Set IACT_MEMORY=on to turn it on.")
        tree = self._live.tree
        rows = await self._memory.search(query, limit=_FOUND, project=project_of(tree), session=tree.session)
        current = [row for row in rows if row.current]
        return rows_of(current), body_of(current)

    def tell(self, notice: str) -> None:
        """Notify people, once."""
        if notice not in self._told:
            self._told.add(notice)
            self._live.notice("/", "memory", notice)


def _newest(agent: Agent) -> list[str]:
    """What an agent has read and said last, after the static prompt."""
    left, texts = _HISTORY, list[str]()
    for message in reversed(agent.context.history.messages()[agent.context.history.began :]):
        if left <= 0:
            break
        texts.append(message.content[:left])
        left -= len(message.content)
    return texts
