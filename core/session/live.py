"""Appends what happens in a running session to its journal, then applies it to the tree.

A live tree changes only through `record`. Watchers receive a record when it is durable, so they never see anything that
a crash could take back.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from iact.core.errors import IactError
from iact.core.journal.file import Journal
from iact.core.ports import Clock
from iact.core.records.content import Content
from iact.core.records.parts import Blob
from iact.core.records.record import Record, timestamp
from iact.core.records.session import Close
from iact.core.records.session import Notice as NoticeContent
from iact.core.session.printed import Printed
from iact.core.session.streamed_text import StreamedText
from iact.core.session.watch import Watcher
from iact.core.tree.agent import Agent
from iact.core.tree.apply import apply
from iact.core.tree.tree import Tree
from iact.core.views.events import Activity, Delta, Event, NoticeEvent, RecordAppended, TreeChanged
from iact.core.views.view import node_views

_INLINE: Final = 16_384
"""How many bytes of a result are stored in the log itself; longer results become blobs."""


class Live:
    """A tree with its journal and its watchers. `records`: all durable records, in order."""

    def __init__(self, journal: Journal, tree: Tree, clock: Clock, records: list[Record]) -> None:
        self.journal: Final = journal
        self.tree: Final = tree
        self.clock: Final = clock
        self.records: Final = records
        self.read: Final = len(records)
        """How many records the journal had when it was opened."""
        self.failure: IactError | None = None
        self.closed = False
        self.writing: dict[str, StreamedText] = {}
        """What each agent's model has written so far in the current generation."""
        self.thinking: dict[str, StreamedText] = {}
        """What each agent's model has thought so far in the current generation."""
        self._activities: dict[str, Activity] = {}
        self.printed: dict[int, Printed] = {}
        """What each running call has printed so far, by the number of its record, until it has its outcome."""
        self.on_applied: list[Callable[[Record], None]] = []
        self.on_durable: list[Callable[[Record], None]] = []
        """Both are called with every record, in order: `on_applied` once the tree has applied it, `on_durable` once it
        is on disk."""
        self.on_stopped: list[Callable[[], None]] = []
        """Called when the session can't go on."""
        self._watchers: set[Watcher] = set()
        self._stale = False
        self.grew = asyncio.Event()
        self._moved: asyncio.Event | None = None
        journal.on_durable = self._durable
        journal.on_trouble = self._trouble

    def record(
        self,
        content: Content,
        agent: str,
        body: str = "",
        blobs: Mapping[str, bytes] | None = None,
        *,
        at: str = "",
    ) -> Record:
        """Append a record about `agent` and apply it; it is durable when `durable(record)` returns.

        `at`: its time, if it was determined before; default: now.

        Raises:
            JournalUnwritable: the session has stopped.
        """
        known = self.tree.agents.get(agent)
        step = known.step + 1 if known is not None else 1
        at = at or timestamp(self.clock.now())
        record = self.journal.append(content, agent, step, at, body, blobs)
        apply(self.tree, record)

        for tell in self.on_applied:
            tell(record)
        if self._moved is not None:
            self._moved.set()
            self._moved = None
        return record

    def notice(
        self, agent: str, code: str, text: str, *, level: Literal["warning", "error"] = "warning"
    ) -> None:
        """Record a notice for people."""
        self.record(NoticeContent(level=level, code=code), agent, body=text)

    async def moved(self) -> None:
        """Wait until the tree changes."""
        if self._moved is None:
            self._moved = asyncio.Event()
        await self._moved.wait()

    async def durable(self, record: Record) -> Record:
        """Wait until `record` is on disk."""
        await self.journal.durable(record.n)
        return record

    def watch(self) -> Watcher:
        """A new watcher. It first receives the text that agents are writing at this moment, and what their models are
        doing."""
        first: list[Event] = [Delta(agent, text.text, restart=True) for agent, text in self.writing.items()]
        first += [Delta(agent, text.text, thought=True) for agent, text in self.thinking.items() if text]
        first += self._activities.values()
        return Watcher(self._watchers, tuple(first))

    @property
    def watched(self) -> bool:
        """Whether anybody watches the session."""
        return bool(self._watchers)

    def publish(self, event: Event) -> None:
        """Send an event to every watcher."""
        for watcher in self._watchers:
            watcher.offer(event)

    def show(self, activity: Activity) -> None:
        """Show every watcher, including later ones, what the model of an agent is doing."""
        if activity.state:
            self._activities[activity.agent] = activity
        else:
            self._activities.pop(activity.agent, None)
            self._wake()
        self.publish(activity)

    @property
    def at_work(self) -> bool:
        """Whether a model is being asked, or a call is running that does not wait for a person's approval."""
        return bool(self._activities) or any(agent.calls for agent in self.tree.at_work.values())

    def changed(self) -> None:
        """Note that a node's state changed in a way that no record reports."""
        if self._watchers and not self._stale:
            self._stale = True
            asyncio.get_running_loop().call_soon(self._show_tree)

    def _show_tree(self) -> None:
        self._stale = False
        self.publish(TreeChanged(node_views(self.tree)))

    def _durable(self, records: Sequence[Record]) -> None:
        """Tell of records that are on disk now, or that the journal has failed."""
        self.records.extend(records)
        if self.journal.failed is not None:
            self.stop(self.journal.failed)

        for record in records:
            for tell in self.on_durable:
                tell(record)
            self.publish(RecordAppended(record))
        self.changed()
        self._wake()

    def _trouble(self, why: str) -> None:
        """Note that the shared store does not answer, or, if `why` is empty, that it answers again."""
        if why:
            text = (
                f"The store of this session does not answer: {why.rstrip('.')}. New records are not "
                "stored yet, so they are not shown, and nothing new starts. Storing is tried again for a "
                "minute; then the session stops."
            )
        else:
            text = "The store of this session answers again; everything is stored."
        self.publish(NoticeEvent(text))

    def elapsed(self, agent: Agent, now: datetime) -> float:
        """Seconds since the agent's activation began, minus the time in which it or a caller above it was paused."""
        began = _time(agent.guards.began)
        pauses: list[tuple[str, str | None]] = []
        path = agent.path
        while path != "user":
            above = self.tree.agents[path]
            pauses += above.guards.pauses
            path = above.caller

            # A step of a plan can be paused by itself, and with it the agent that it calls.
            run = self.tree.agents[path].plan if path != "user" else None
            if run is not None:
                for node, holds in run.holds.items():
                    if run.state.nodes[node].node.call == above.name:
                        pauses += holds

        spans = [(max(began, _time(start)), _time(end) if end else now) for start, end in pauses]
        # Pauses may overlap; overlapping time counts once.
        paused = 0.0
        until = began
        for start, end in sorted(spans):
            paused += max(0.0, (end - max(start, until)).total_seconds())
            until = max(until, end)
        return (now - began).total_seconds() - paused

    def stop(self, error: IactError) -> None:
        """Stop the session, which can't go on. Everyone who watches it or waits for an answer is notified."""
        if self.failure is None:
            self.failure = error
            self.publish(NoticeEvent(str(error)))
            for tell in self.on_stopped:
                tell()
        self._wake()

    def end(self) -> None:
        """Record that the session is closed, unless nothing happened since it was last closed.

        Raises:
            JournalUnwritable: the session has stopped.
        """
        if not self.tree.closed:
            self.record(Close(), "/")

    def close(self) -> None:
        """End every watcher's stream."""
        self.closed = True
        for watcher in self._watchers:
            watcher.close()
        self._wake()

    def _wake(self) -> None:
        self.grew.set()
        self.grew = asyncio.Event()


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at)


@dataclass(frozen=True, slots=True)
class StoredText:
    """How a text is stored in the journal."""

    body: str
    """The text itself, if it is short."""
    blob: Blob | None = None
    """Where it is, if it is long."""
    blobs: Mapping[str, bytes] = field(default_factory=dict)
    """The content of blobs, by digest."""


def stored(text: str) -> StoredText:
    """How a result's text is stored in the journal."""
    data = text.encode("utf-8", "replace")
    if len(data) <= _INLINE:
        return StoredText(data.decode("utf-8"))
    digest = hashlib.sha256(data).hexdigest()
    return StoredText("", Blob(sha256=digest, size=len(data)), {digest: data})
