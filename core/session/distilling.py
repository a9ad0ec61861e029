"""Asks a model what of a person's messages is worth remembering: beside everything else, and never in a turn's way.

It happens after the root's history was cut, when a session has been at rest for a while, and when a person wishes it. The
answer is recorded, and memory gets its statements from the record. If no model can be asked, what plain rules have found
as the messages were read is all there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iact.core.context.tokens import estimate
from iact.core.errors import JournalError, ModelError
from iact.core.models.roles import Models
from iact.core.ports import StreamRecast, StreamRestart, TextDelta, Usage, UsageReport
from iact.core.records.dialogue import Compress, Distill
from iact.core.records.parts import Tokens
from iact.core.records.record import Record
from iact.core.session.live import Live
from iact.core.session.session_memory import SessionMemory
from iact.core.tree import budget, distilling
from iact.core.tree.distilling import ANSWER_TOKENS, DistillRequest

_LOG: Final = logging.getLogger(__name__)

_LONGEST: Final = 16_384
"""The most characters of an answer that are read."""

_QUESTIONS: Final = 20
"""The most questions of one wish: a long session is distilled in parts."""


@dataclass(frozen=True, slots=True)
class DistilOutcome:
    """What came of the wish to distil several sessions."""

    messages: int
    """How many messages a model was asked about."""
    left_out: Mapping[str, str]
    """Why a session could not be distilled, by its id."""


class Distilling:
    """The distilling of one session."""

    def __init__(self, live: Live, models: Models, memory: SessionMemory) -> None:
        self._live = live
        self._models = models
        self._memory = memory
        self._one_at_a_time = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        """What was begun after a cut."""
        self._failed_after = 0
        """How many messages there were when a model failed."""
        if memory.exists:
            live.on_durable.append(self._after_a_cut)

    def start(self, group: asyncio.TaskGroup) -> None:
        """Let it begin in the background, in this group."""
        self._group = group

    async def close(self) -> None:
        """End what runs in the background; it is done at the next occasion."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    @property
    def is_due(self) -> bool:
        """Whether there is something that a model was not asked about, and has not failed about."""
        said = len(self._live.tree.root.context.chronicle.heard)
        if not self._memory.exists or self._failed_after == said:
            return False
        return distilling.request(self._live.tree) is not None

    async def distil(self) -> int:
        """Ask about all that was said since the last time. Returns how many messages that were.

        Raises:
            ModelError: the model can't be asked.
        """
        messages = 0
        async with self._one_at_a_time:
            for _ in range(_QUESTIONS):
                asked = distilling.request(self._live.tree) if self._memory.is_on() else None
                distilled = await self._ask(asked) if asked is not None else 0
                if not distilled:
                    break
                messages += distilled
        return messages

    async def _ask(self, asked: DistillRequest) -> int:
        """Ask one question, and record the answer. Returns how many messages it was about; 0 if there was no answer, or it
        no longer counts."""
        tree = self._live.tree
        since = tree.root.context.chronicle.distilled
        size = estimate(asked.messages[0].content)
        if budget.cost_of_turn(size) > tree.root.account.left:
            return 0

        role = distilling.distiller(tree)
        model = tree.roles[role].model
        answer, usage = await self._answer(role, asked, size)
        unchanged = distilling.distiller(tree) == role and tree.roles[role].model == model
        # Memory can have been switched off and on meanwhile.
        goes_on = tree.root.context.chronicle.distilled == since
        if not unchanged or not goes_on or self._live.closed or not self._memory.is_on():
            return 0

        distilled = Distill(since=since, until=asked.until, role=role, model=model, usage=usage)
        await self._live.durable(self._live.record(distilled, "/", body=answer))
        return asked.until - since

    async def _answer(self, role: str, asked: DistillRequest, size: int) -> tuple[str, Tokens]:
        text = ""
        usage: Usage | None = None
        stream = self._models.model(role).stream(asked.messages, max_tokens=ANSWER_TOKENS)
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                match event:
                    case TextDelta(piece):
                        text += piece
                    case StreamRestart() | StreamRecast():
                        text = ""
                    case UsageReport(reported):
                        usage = reported
                if len(text) > _LONGEST:
                    break

        if usage is None:
            return text[:_LONGEST], Tokens(prompt=size, cached=0, completion=estimate(text), estimated=True)
        return text[:_LONGEST], Tokens.of(usage)

    def _after_a_cut(self, record: Record) -> None:
        """What is cut from the root's history is still in the chronicle, and in the journal. Now is a good time."""
        is_cut = isinstance(record.content, Compress) and record.agent == "/"
        if is_cut and self._group is not None and (self._task is None or self._task.done()):
            self._task = self._group.create_task(self.in_background(), name="distil")

    async def in_background(self) -> None:
        """Distil if something is due. A failure is logged, and not tried again until more was said."""
        if not self.is_due:
            return
        try:
            await self.distil()
        except (ModelError, JournalError) as error:
            self._failed_after = len(self._live.tree.root.context.chronicle.heard)
            _LOG.info("Session %s was not distilled: %s", self._live.tree.session, error)
