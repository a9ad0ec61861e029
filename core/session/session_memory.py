"""One session's side of memory: it passes on durable records, asks before each turn, and never holds up a turn.

What memory returns is recorded (`core.tree.recall`) before it enters a context, so it is part of the journal like a
tool's result. If memory is off, slow or down, turns go on, and people are notified once.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from typing import Final

from iact.core.errors import MemoryUnavailable
from iact.core.language.labels import inline
from iact.core.ports import Memory, MemoryQuestion, NewStatement, Recalled, StandingQuestion
from iact.core.records.control import SwitchMemory
from iact.core.records.dialogue import Recall
from iact.core.records.parts import MemorySource as MemoryRow
from iact.core.records.record import Record
from iact.core.session.live import Live
from iact.core.session.person import signed
from iact.core.tree.agent import Agent
from iact.core.tree.agent_context import Heard
from iact.core.tree.memory_events import project_of, statements_of
from iact.core.tree.recall import body_of, rows_of
from iact.core.tree.standing import is_complete, told_standing

_READ: Final = 1_000
"""How many characters of one message are used to find memories that help with it."""

_HISTORY: Final = 60_000
"""How many characters of an agent's newest history are searched for memories that it already knows."""

_FOUND: Final = 8
"""How many statements a RECALL returns."""

_TOKENS: Final = 200
"""How many tokens an agent is told in one turn."""

_GOAL: Final = 200
"""How many characters of a goal an agent is told."""

_DEEP: Final = 2
"""How many callers are above an agent that may not know what the user wants."""


class SessionMemory:
    """What one session remembers and recalls; does nothing without a memory."""

    def __init__(self, live: Live, memory: Memory | None) -> None:
        self._live = live
        self._memory = memory
        self._told: set[str] = set()
        self._waiting: dict[int, list[NewStatement]] = {}
        self._choosing = asyncio.Lock()
        self._chosen = False
        """Whether the standing statements were chosen here, if there were any."""
        if memory is not None:
            live.on_applied.append(self._note)
            live.on_durable.append(self._pass_on)

    @property
    def exists(self) -> bool:
        """Whether there is a memory at all, switched on or off."""
        return self._memory is not None

    def is_on(self) -> bool:
        """Whether the session remembers and is told anything: what the journal says, once it has followed the person."""
        self.follow()
        return self._memory is not None and self._live.tree.remembers

    def follow(self) -> None:
        """Record it if the person has switched memory off or on, here or in another process. What is said meanwhile must
        not be remembered later, when journals are read again, so the journal is what counts."""
        switched = None if self._live.closed else self._switched()
        if switched is not None:
            self._live.record(switched, "/")

    def follow_person(self) -> None:
        """The same, when the person who calls has just switched it."""
        switched = self._switched()
        if switched is not None:
            self._live.record(signed(switched), "/")

    def _switched(self) -> SwitchMemory | None:
        """How the person's switch differs from the journal; None if it does not."""
        if self._memory is None:
            return None
        value = self._memory.on
        is_news = value == ("person" in self._live.tree.memory_off)
        return SwitchMemory(by="user", of="person", value=value) if is_news else None

    def _note(self, record: Record) -> None:
        """Compute the statements of an applied record, from the tree as it is now; they are passed on once the record is
        durable."""
        found = statements_of(self._live.tree, record)
        if found:
            self._waiting[record.n] = found

    def _pass_on(self, record: Record) -> None:
        if self._memory is None:
            return
        for statement in self._waiting.pop(record.n, ()):
            self._memory.remember(statement)

    async def choose_standing(self) -> None:
        """Choose and record what all agents of a new session are told. A session that has begun stays as it is."""
        memory = self._memory
        if memory is None or not self.is_on():
            return

        # Who comes second waits for the same choice, and makes it if the first was cancelled.
        async with self._choosing:
            root = self._live.tree.root
            begins = root.context.fresh and not self._live.tree.standing.lines
            if begins and not self._chosen:
                await self._record_standing(memory, root)
                self._chosen = True

    async def _record_standing(self, memory: Memory, root: Agent) -> None:
        started = self._live.clock.monotonic()
        ask = StandingQuestion(self._live.clock.now(), project_of(self._live.tree))
        found = await memory.standing(ask)
        if found.notice:
            self.tell(found.notice)
        if found.rows and root.context.fresh and self.is_on():
            took = round((self._live.clock.monotonic() - started) * 1000)
            chosen = Recall(rows=rows_of(found.rows), ms=took, standing=True)
            self._live.record(chosen, "/", body=body_of(found.rows))

    async def recall(self, agent: Agent, now: datetime) -> None:
        """Record what helps an agent with its next turn, if anything does. A small model is told nothing."""
        memory = self._memory
        if memory is None or self._live.tree.roles[agent.model].small or not self.is_on():
            return
        await self.choose_standing()

        started = self._live.clock.monotonic()
        goals = self._goals(agent)
        room = _TOKENS - sum(len(goal.line.encode()) // 4 for goal in goals)
        found = await memory.recall(self._ask(agent, now, room))
        if found.notice:
            self.tell(found.notice)

        rows = [*goals, *found.rows]
        if agent.active and self.is_on() and (rows or agent.mail.recalled):
            took = round((self._live.clock.monotonic() - started) * 1000)
            self._live.record(Recall(rows=rows_of(rows), ms=took), agent.path, body=body_of(rows))

    def _goals(self, agent: Agent) -> list[Recalled]:
        """What the user wants of the session, for an agent so deep in the tree that it may not know: the first message and
        the latest."""
        if agent.depth < _DEEP or is_complete(agent.mail.task):
            return []

        said = [heard for heard in self._live.tree.root.context.chronicle.heard if heard.own]
        read = [_plain(text) for text in (agent.mail.task, *_newest(agent))]
        wanted = {heard.record: heard for heard in (*said[:1], *said[-1:])}
        unknown = [heard for heard in wanted.values() if not any(_plain(heard.own) in text for text in read)]
        return [
            self._goal(heard, "goal of the whole" if heard is said[0] else "said since") for heard in unknown
        ]

    def _goal(self, heard: Heard, what: str) -> Recalled:
        session = self._live.tree.session
        quoted = json.dumps(inline(heard.own, _GOAL), ensure_ascii=False)
        return Recalled(
            id=f"{session}/{heard.record}",
            text=heard.own,
            kind="goal",
            score=1.0,
            at="",
            session=session,
            agent="/",
            line=f"[{what}] {quoted}",
            why="goal of the whole",
        )

    def _ask(self, agent: Agent, now: datetime, tokens: int) -> MemoryQuestion:
        if agent.errand is not None:  # it has a plan for the message, and no turn
            reads = [agent.errand.said.own]
        else:
            reads = [*map(str, agent.mail.feedback), *(message.text for message in agent.mail.ready)]
        return MemoryQuestion(
            self._live.tree.session,
            agent.path,
            "\n".join(text[:_READ] for text in reads),
            now,
            recent=(agent.mail.task[:_READ],),
            history=[agent.role, *told_standing(self._live.tree, agent), *_newest(agent)],
            project=project_of(self._live.tree),
            tokens=tokens,
        )

    async def search(self, query: str) -> tuple[tuple[MemoryRow, ...], str]:
        """The rows and the body of a RECALL's result.

        Raises:
            MemoryUnavailable: there is no memory, or it can't answer.
        """
        if self._memory is None or not self.is_on():
            raise MemoryUnavailable("Memory is off. To switch it on: iact memory on")
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


def _plain(text: str) -> str:
    """A text for comparison: without its case and its white space."""
    return " ".join(text.casefold().split())
