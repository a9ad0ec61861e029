"""One run: a message or an answer in a session, and the events until the root has answered or asks a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    Interrupt,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    TokenUsage,
    UserMessage,
)

from iact.accounts.rights import Words
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.calls import ClearanceAsk
from iact.core.records.dialogue import Reply
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.record import Record
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.views.ending import outcome_of, verdict_on
from iact.core.views.events import TreeChanged
from iact.core.views.question_text import about, told
from iact.core.views.questions import OpenQuestions
from iact.faces.ag_ui import heard
from iact.faces.ag_ui.events import EventFold
from iact.faces.ag_ui.state import FrontEndState
from iact.faces.client_tools import called_tool, told_tools
from iact.faces.conversation import ClientAnswer, Exchange, answer, answer_to
from iact.faces.failure import failure_from, failure_of
from iact.faces.message import question_id, question_of, say

_ANSWER: dict[str, JSON] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean"}, "remember": {"type": "boolean"}},
    "required": ["allow"],
}
_FORM: dict[str, JSON] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean"}, "values": {"type": "object"}},
    "required": ["allow"],
}
"""The schema of a form's answer. `values` must fit the schema in the interrupt's metadata."""


@dataclass(slots=True)
class Run:
    """A run that has started. `held`: keeps the session open during the run. `told`: whether its end was reported."""

    given: RunAgentInput
    exchange: Exchange
    held: AsyncExitStack
    told: bool = False

    async def events(self) -> AsyncGenerator[BaseEvent, None]:
        """The events of the run, in the protocol's order."""
        given, session = self.given, self.exchange.session
        start = self.exchange.said.n
        fold = EventFold(session.id, session.view.is_action, session.records()[:start])
        state = FrontEndState(session.id, given.state)
        yield RunStartedEvent(
            thread_id=given.thread_id, run_id=given.run_id, parent_run_id=given.parent_run_id,
            protocol_version=PROTOCOL_VERSION,
        )  # fmt: skip
        yield state.snapshot(start, session.tree())
        try:
            async with aclosing(self.exchange.until_asked()) as events:
                async for event in events:
                    for one in fold.take(event):
                        yield one
                    if isinstance(event, TreeChanged):
                        for change in state.changed(fold.record, event.nodes):
                            yield change
        except IactError as error:
            self.told = True
            failure = failure_from(error)
            yield RunErrorEvent(message=failure.sentence, code=failure.kind.code, usage=fold.usage)
            return
        last = self._end(fold)
        interrupts = _interrupts(last, waits=bool(self.exchange.questions.waiting))
        for one in fold.end(suspended=interrupts):
            yield one
        for change in state.changed(fold.record, session.tree()):
            yield change
        self.told = True
        yield last

    async def leave(self) -> None:
        """Handle the end of the connection: stop the work if its end was not reported, and release the session."""
        try:
            if not self.told:
                await self.exchange.give_up()
        finally:
            await self.held.aclose()

    def _end(self, fold: EventFold) -> RunFinishedEvent | RunErrorEvent:
        given, session = self.given, self.exchange.session
        waiting = self.exchange.questions.waiting
        asked = [_interrupt(session.id, one, fold) for one in waiting if called_tool(one) is None]
        if waiting and not asked:  # the front end runs its tools, and sends their results with the next run
            return RunFinishedEvent(
                thread_id=given.thread_id, run_id=given.run_id, usage=fold.usage,
                outcome=RunFinishedSuccessOutcome(),
            )  # fmt: skip
        if asked:
            return RunFinishedEvent(
                thread_id=given.thread_id, run_id=given.run_id, usage=fold.usage,
                outcome=RunFinishedInterruptOutcome(interrupts=asked),
            )  # fmt: skip
        return ended(given, self.exchange.reply, fold.usage)


def ended(
    given: RunAgentInput, reply: Record, usage: Sequence[TokenUsage]
) -> RunFinishedEvent | RunErrorEvent:
    """The event that ends a run, given its answer: a success only if the goal counts as reached."""
    assert isinstance(reply.content, Reply)
    failure = failure_of(reply)
    if failure is not None:
        return RunErrorEvent(message=failure.sentence, code=failure.kind.code, usage=list(usage))

    outcome = outcome_of(reply.content)
    cancelled = outcome == "stopped" and verdict_on(reply.content).by == "person"
    if outcome != "reached" and not cancelled:
        code = reply.content.bound or outcome
        return RunErrorEvent(message=reply.body[:2000] or "The work failed.", code=code, usage=list(usage))

    return RunFinishedEvent(
        thread_id=given.thread_id,
        run_id=given.run_id,
        usage=list(usage),
        outcome=RunFinishedCancelledOutcome() if cancelled else RunFinishedSuccessOutcome(),
    )


async def begin(
    runtime: Runtime,
    given: RunAgentInput,
    *,
    memory: bool = True,
    words: Words = "newest",
    traceparent: str = "",
) -> Exchange:
    """Start a run: send its message, or answer the questions of the previous run. `memory`: whether a new session has one.

    `words`: what of all that the front end sends is its user's words. `traceparent`: the trace of the front end.

    Raises:
        UsageError: the run is invalid; the message says why.
    """
    entries = given.resume or []
    place, known = heard.place_of(given)
    if entries:
        if place is None:
            raise UsageError(
                "An answer to an interrupt needs the messages or the state of the run that asked."
            )
        session = await heard.opened(runtime, place)
        return Exchange(session, await _answered(session, given))
    if place is not None and (results := heard.results(given)):
        session = await heard.opened(runtime, place)
        ran = await _ran(session, results)
        if not isinstance(given.messages[-1], UserMessage):
            return Exchange(session, ran)
    if place is None and runtime.store.holds(given.thread_id):
        place = heard.ThreadPlace(given.thread_id, None)
        known = max(len(given.messages) - 1, 0)
    earlier, said = heard.parts(given, known, new=place is None)
    offered = heard.tools(given)
    told = told_tools(offered)
    names = [one.name for one in offered]
    session = await (runtime.open(memory=memory) if place is None else heard.opened(runtime, place))
    if told and tuple(names) != session.state.tools:
        said = [told, *said]
    record = await say(session, said, tools=names, history=earlier, words=words, traceparent=traceparent)
    return Exchange(session, record)


async def _answered(session: Session, given: RunAgentInput) -> Record:
    """Answer the questions of a run. Returns the last record that the front end knows.

    A question that was answered elsewhere in the meantime keeps that answer, and the run continues from there.
    """
    first: list[Record] = []
    for question, word in heard.answers(given.resume or []):
        number, seen = question_of(session.id, question)
        waits = any(open.n == number for open in OpenQuestions(session.records()).waiting)
        before = None if waits else answer_to(session, number)
        first.append(before or await answer(session, [ClientAnswer(number, seen, word)]))
    start = min(one.n for one in first)
    told, record = heard.told(given.state)
    if told == session.id and record is not None and 0 < record < start:
        start = record
    return session.records(start - 1)[0]


async def _ran(session: Session, results: Sequence[tuple[str, int, str]]) -> Record:
    """Pass on the results of front end tools. Returns the last record that the front end knows.

    Raises:
        UsageError: a tool was not called, or its result is invalid.
    """
    first: list[Record] = []
    for where, number, text in results:
        question = next(iter(session.records(number - 1)), None)
        if where != session.id or question is None or called_tool(question) is None:
            raise UsageError(
                f"No tool was called in this session by the name {f'{where}_{number}_f0'[:150]!r}."
            )
        before = answer_to(session, number)
        first.append(before or await session.answer_form(number, "accept", {"result": text}))
    return session.records(min(one.n for one in first) - 1)[0]


def _interrupt(session: str, question: Record, fold: EventFold) -> Interrupt:
    asked = question.content
    assert isinstance(asked, HostAsk | ClearanceAsk | FormAsk)
    reason = {HostAsk: "host", FormAsk: "form"}.get(type(asked), "tool_call")
    schema = _FORM if isinstance(asked, FormAsk) else _ANSWER
    expires = None
    # Without a number, and with 0, a person has as long as they want.
    if asked.seconds:
        expires = (datetime.fromisoformat(question.at) + timedelta(seconds=asked.seconds)).isoformat()
    return Interrupt(
        id=question_id(session, question), reason=reason, message=told(question),
        tool_call_id=fold.tool_of(question), response_schema=schema, expires_at=expires,
        subagent_run_id=fold.owner(question.agent), metadata={"iact": {"agent": question.agent, **about(question)}},
    )  # fmt: skip


def _interrupts(last: BaseEvent, *, waits: bool) -> dict[str, list[str]] | None:
    """The interrupts of a run's last event by agent, or None if it stops for none. `waits`: front end tools must run."""
    if waits and isinstance(last, RunFinishedEvent) and isinstance(last.outcome, RunFinishedSuccessOutcome):
        return {}
    if not isinstance(last, RunFinishedEvent) or not isinstance(last.outcome, RunFinishedInterruptOutcome):
        return None
    found: dict[str, list[str]] = {}
    for one in last.outcome.interrupts:
        found.setdefault(str((one.metadata or {})["iact"]["agent"]), []).append(one.id)
    return found
