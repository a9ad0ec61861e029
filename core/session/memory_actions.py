"""What agents store in memory and look up: REMEMBER and RECALL."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from iact.core.errors import MemoryUnavailable
from iact.core.language.grammar import Bound
from iact.core.ports import LONGEST_STATEMENT
from iact.core.session.live import Live
from iact.core.session.results import record_result, result_of, settle
from iact.core.session.scheduler import Scheduler
from iact.core.session.session_memory import SessionMemory
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.interpret import argument_text
from iact.core.tree.kept_memory import kept_by
from iact.core.tree.statements import statements_kept

_KEPT: Final = 4_000
"""How many characters one REMEMBER can hold."""

_NO_STATEMENT: Final = (
    "`REMEMBER` keeps statements: what somebody wants, what was decided, what is so, or what was learnt, in a sentence of "
    f"at most {LONGEST_STATEMENT} characters. An order to an agent is none."
)
"""What an agent reads whose text makes no statement."""


class MemoryActions:
    """The actions of one session's agents on its memory."""

    def __init__(self, live: Live, scheduler: Scheduler, memory: SessionMemory) -> None:
        self._live = live
        self._scheduler = scheduler
        self._memory = memory

    def remember(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Keep a text: it goes to the journal, and memory gets it from there."""
        text = argument_text(bound, "text").strip()
        if not self._memory.is_on():
            settle(self._live, agent, pending, "incomplete")
        elif not text or len(text) > _KEPT:
            wrong = f"`REMEMBER` takes 1 to {_KEPT} characters, not {len(text)}; keep what matters of it."
            record_result(self._live, agent, result_of(agent, pending, "error"), wrong)
        elif not statements_kept(text, "fact"):
            record_result(self._live, agent, result_of(agent, pending, "error"), _NO_STATEMENT)
        else:
            said = kept_by(bound)
            kept = replace(
                result_of(agent, pending, "ok"),
                kind_of=said.kind,
                supersedes=said.replaces,
                scope=said.scope,
            )
            record_result(self._live, agent, kept, text)

    async def recall(self, agent: Agent, pending: Pending, bound: Bound) -> None:
        """Search memory for an agent; a cancelled search already has its outcome."""
        result, body = result_of(agent, pending, "incomplete"), ""
        try:
            async with self._scheduler.cancellable(agent):
                rows, body = await self._memory.search(argument_text(bound, "query"))
                result = replace(result, status="ok", rows=rows)
        except TimeoutError:
            result = replace(result, status="cancelled")
        except MemoryUnavailable as error:
            self._memory.tell(str(error))
        if pending in agent.actions:
            record_result(self._live, agent, result, body)
