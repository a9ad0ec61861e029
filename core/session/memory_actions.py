"""What agents keep and look up: REMEMBER and RECALL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.errors import MemoryUnavailable
from core.language.grammar import Bound
from core.ports import JSON
from core.session.live import Live
from core.session.results import record_result
from core.session.scheduler import Scheduler
from core.session.session_memory import SessionMemory
from core.tree.agent import Agent, Pending
from core.tree.interpret import argument_text

_KEPT: Final = 4_000
"""Characters that one REMEMBER can hold."""


class MemoryActions:
    """The actions of one session's agents on its memory."""

    def __init__(self, live: Live, scheduler: Scheduler, memory: SessionMemory) -> None:
        self._live = live
        self._scheduler = scheduler
        self._memory = memory

    def remember(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Keep something; the journal has it, and memory gets it from there."""
        text = argument_text(bound, "text").strip()
        if not self._memory.on:
            record_result(self._live, agent, pending, {"status": "incomplete"})
        elif not text or len(text) > _KEPT:
            wrong = f"`REMEMBER` takes 1 to {_KEPT} characters, not {len(text)}; keep what matters of it."
            record_result(self._live, agent, pending, {"status": "error"}, wrong)
        else:
            asked: dict[str, JSON] = {
                field: argument_text(bound, name)
                for name, field in (("kind", "kind_of"), ("supersedes", "supersedes"))
                if argument_text(bound, name)
            }
            record_result(self._live, agent, pending, {"status": "ok", **asked}, text)

    async def recall(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Search memory for an agent; a search that is cancelled has its outcome by then."""
        fields: Mapping[str, JSON] = {"status": "incomplete"}
        body = ""
        try:
            async with self._scheduler.cancellable(agent):
                fields, body = await self._memory.search(argument_text(bound, "query"))
        except TimeoutError:
            fields = {"status": "cancelled"}
        except MemoryUnavailable as error:
            self._memory.tell(str(error))
        if pending in agent.actions:
            record_result(self._live, agent, pending, fields, body)
