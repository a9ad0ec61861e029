"""Questions that modules ask a person during their calls: recorded in the journal, answered once, and sent back.

A question is checked before it is shown. One that can't be shown, or that no person is available to answer, is answered
at once. An answer is written to the journal before it is sent to the module. An open question lapses when its call ends
or the session is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final, Literal

from iact.core.characters import escaped
from iact.core.context.excerpt import excerpt
from iact.core.errors import JournalUnwritable, UsageError
from iact.core.modules.outcome import ModuleAsk, ModuleReply, SendReply
from iact.core.ports import JSON
from iact.core.records.form_fields import FormError, address, form_fields, shown_message
from iact.core.records.form_values import FormField, filled
from iact.core.records.forms import FormAnswer, FormAsk, FormDecision, FrontEndCall
from iact.core.records.record import Record
from iact.core.records.skills import SkillOffer
from iact.core.session.live import Live
from iact.core.session.person import signed
from iact.core.session.person_waits import PersonWaits
from iact.core.session.scheduler import Scheduler
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.apply_plan import ANSWERED

NOBODY: Final = "There is nobody to ask."
RESULT: Final = FormField(name="result", kind="text", title="Result", required=True)
"""The result of a front-end tool."""
ANSWER: Final = FormField(name=ANSWERED, kind="text", title="Answer", required=True)
"""The answer to an agent that works on a step of a plan."""
_LONGEST: Final = 4_000
"""The most characters of such an agent's question."""
LATE: Final = "Nobody answered in time."


class Forms:
    """The questions of one session's modules. `seconds`: how long a person has to answer; `attended`: whether a person
    may be available."""

    def __init__(self, scheduler: Scheduler, waits: PersonWaits, seconds: float, *, attended: bool) -> None:
        self._scheduler = scheduler
        self._live: Live = scheduler.live
        self._waits = waits
        self._seconds = seconds
        self._attended = attended
        self._replies: dict[int, SendReply] = {}
        self._timers: dict[int, asyncio.TimerHandle] = {}

    async def ask(self, agent: Agent, pending: Pending, asked: ModuleAsk, reply: SendReply) -> None:
        """Ask a question for a call. The answer goes to `reply`, at once if the question can't be put to a person."""
        try:
            said = FormAsk(
                call=pending.call,
                function=pending.spec.name,
                message=shown_message(asked.message),
                fields=() if asked.url else form_fields(asked.schema),
                url=address(asked.url) if asked.url else "",
                seconds=self._seconds,
            )
        except FormError as error:
            await reply(ModuleReply("refused", reason=str(error)))
            return
        await self._put(agent, pending, said, reply)

    async def _put(self, agent: Agent, pending: Pending, said: FormAsk, reply: SendReply) -> None:
        live = self._live
        if live.tree.lockdown or live.closed or pending not in agent.actions:
            await reply(ModuleReply("cancel", reason=NOBODY))
            return

        record = live.record(said, agent.path)
        if not self._attended:
            self._end(record.n, "policy")
            await reply(ModuleReply("cancel", reason=NOBODY))
            return

        self._replies[record.n] = reply
        self._waits.begin(record.n, (pending.call,))
        if said.seconds:
            loop = asyncio.get_running_loop()
            self._timers[record.n] = loop.call_later(said.seconds, self._late, record.n)
        live.changed()

    async def decide(
        self,
        agent: Agent,
        pending: Pending,
        words: str,
        *,
        skill: SkillOffer | None = None,
        tool: FrontEndCall | None = None,
        fields: tuple[FormField, ...] = (),
        seconds: float | None = None,
    ) -> ModuleReply:
        """Show a skill that an agent offers to the person, send a tool call to their front end, or hand them a step of a
        plan, and wait for the reply.

        `seconds`: how long they have, if that is not the setting; 0: as long as they want.
        """
        said: asyncio.Future[ModuleReply] = asyncio.get_running_loop().create_future()

        async def reply(answer: ModuleReply) -> None:
            if not said.done():
                said.set_result(answer)

        function = pending.spec.name
        asked = FormAsk(
            call=pending.call, function=function, message=words, fields=(RESULT,) if tool is not None else fields,
            skill=skill, tool=tool, seconds=self._seconds if seconds is None else seconds,
        )  # fmt: skip
        await self._put(agent, pending, asked, reply)
        return await said

    async def inquire(self, plan: Agent, pending: Pending, question: str) -> None:
        """Put the question of an agent that works on a step of a plan to the person. Its answer is read from its record."""

        async def reply(answer: ModuleReply) -> None:
            """The plan reads the record."""

        asked = FormAsk(
            call=pending.call,
            function=pending.spec.name,
            message=escaped(excerpt(question, _LONGEST), every=True),
            fields=(ANSWER,),
            seconds=self._seconds,
        )
        await self._put(plan, pending, asked, reply)

    async def answer(
        self, ask: int, decision: FormDecision, values: Mapping[str, JSON] | None = None
    ) -> Record:
        """Answer the question at record `ask` on behalf of a person. Returns the durable record of the answer.

        Raises:
            UsageError: the question is not open, or the values do not fit the form.
        """
        asked = self._live.tree.forms.get(ask)
        if asked is None:
            raise UsageError(f"No call waits for an answer to record {ask}.")
        given: dict[str, JSON] | None = None
        if decision == "accept":
            given = filled(asked.fields, values or {}, longest=asked.longest)
        said = FormAnswer(ask=ask, decision=decision, by="user", values=given if asked.fields else None)
        reply = self._close(ask)
        # What a person releases is on disk before it is sent.
        record = await self._live.durable(self._live.record(signed(said), "/"))
        self._live.changed()
        if reply is not None:
            await reply(ModuleReply(decision, given or {}))
        return record

    def end(self, call: int) -> None:
        """End the questions of a call that has ended."""
        for ask in [n for n, one in self._live.tree.forms.items() if one.call == call]:
            self._end(ask, "core")

    def leave(self) -> None:
        """End all open questions: those asked before the session was opened, or those still open when it is closed."""
        for ask in list(self._live.tree.forms):
            self._end(ask, "core")

    def _late(self, ask: int) -> None:
        reply = self._end(ask, "time")
        if reply is not None:
            self._scheduler.spawn(f"answer {ask}", partial(_send, reply, ModuleReply("cancel", reason=LATE)))

    def _end(self, ask: int, by: Literal["time", "core", "policy"]) -> SendReply | None:
        """Close a question that no person answered. Returns where to notify the module, if it still waits."""
        reply = self._close(ask)
        if ask in self._live.tree.forms and self._live.failure is None:
            try:
                self._live.record(FormAnswer(ask=ask, decision="cancel", by=by), "/")
            except JournalUnwritable:
                return None
            self._live.changed()
        return reply

    def _close(self, ask: int) -> SendReply | None:
        self._waits.end(ask)
        timer = self._timers.pop(ask, None)
        if timer is not None:
            timer.cancel()
        return self._replies.pop(ask, None)


async def _send(reply: SendReply, said: ModuleReply) -> None:
    await reply(said)
