"""One session that a client has open: its prompts, its answers to questions, and the updates sent to it.

Updates are sent as long as the session is open, with or without a running prompt: a session that was left at work
continues on its own. A prompt ends when everything that belongs to its answer was sent. What takes words is asked by a
form, of a client that shows forms; the prompt of any other ends there with the question, and its next one is the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    DeniedOutcome,
    PermissionOption,
    PromptResponse,
    StopReason,
    ToolCallProgress,
    ToolCallUpdate,
    Usage,
)

from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.calls import Call, Effects, Settle
from iact.core.records.dialogue import Reply, Say
from iact.core.records.forms import FormAsk
from iact.core.records.hosts import HostAsk
from iact.core.records.parts import Blob
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.effects import SeenChanges
from iact.core.session.session import Session
from iact.core.session.watch import Lagging
from iact.core.views.consent import question_digest, together
from iact.core.views.ending import verdict_json, verdict_on
from iact.core.views.events import Delta, Event, OutputEvent, RecordAppended
from iact.core.views.question_text import schema_of, told
from iact.core.views.questions import OpenQuestions
from iact.faces.acp import files, questions
from iact.faces.acp.prompt import Prompt
from iact.faces.acp.updates import Content, Update, Updates, shown
from iact.faces.asked_text import is_answer, needs_words, question_words
from iact.faces.conversation import ClientAnswer, Exchange, answer
from iact.faces.failure import failure_of
from iact.faces.live_text import LiveText

_FAILED: Final = -32603
"""JSON-RPC's code for an error inside the agent."""
_FORM_TRIES: Final = 3
"""How often a form is shown whose values do not fit it. Then it is not answered."""

Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
"""Starts a task that ends with the session's group."""


class AcpClient(Protocol):
    """The messages and requests that can be sent to the client."""

    has_forms: bool
    """Whether the client said that it shows forms to its user."""

    async def update(self, session: str, update: Update | CurrentModeUpdate | ConfigOptionUpdate) -> None:
        """Send an update.

        Raises:
            ConnectionError: the client is gone.
        """
        ...

    async def permission(
        self, session: str, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> AllowedOutcome | DeniedOutcome:
        """Ask the client's user for permission. If this is cancelled, the question is withdrawn.

        Raises:
            ConnectionError: the client is gone.
            RequestError: the client can't ask.
        """
        ...

    async def form(
        self, session: str, message: str, schema: Mapping[str, JSON], *, record: int
    ) -> Mapping[str, JSON] | None:
        """Ask the client's user to fill in a form. Returns the values; None if the user does not answer.

        `schema`: the fields, as JSON Schema. `record`: that of the question. If this is cancelled, the question is withdrawn.

        Raises:
            ConnectionError: the client is gone.
            RequestError: the client can't ask.
        """
        ...


class Conversation:
    """A session that a client has open. `way`: the way of working for the next message."""

    def __init__(self, session: Session, client: AcpClient, spawn: Spawn) -> None:
        self.session: Final = session
        self._client = client
        self._spawn = spawn
        self._updates = Updates(
            session.id,
            is_action=session.view.is_action,
            windows={name: role.context for name, role in session.state.roles.items()},
            folder=session.workspace,
        )
        self._questions = OpenQuestions()
        self._asking: dict[int, asyncio.Task[None]] = {}
        self._sent = 0
        """The last record that was reported to the client."""
        self._over = False
        self._moved = asyncio.Condition()
        self._prompting = False
        self._cancelled = False
        self._following: asyncio.Task[None] | None = None
        self.way: Way = "dialogue"
        for record in session.records():
            if isinstance(record.content, Say):
                self.way = record.content.mode

    async def begin(self, *, replay: bool) -> None:
        """Send the history, if `replay`, and from then on updates.

        Raises:
            ConnectionError: the client is gone.
        """
        for record in self.session.records():
            updates = self._updates.take(record, replayed=True)
            self._questions.add(record)
            self._sent = record.n
            for update in updates if replay else ():
                await self._client.update(self.session.id, update)
        for question in self._questions.waiting:
            if self._takes_prompt(question):
                await self._tell(self._updates.asks(question_words(question)))
        if self.session.state.root.active:
            self._updates.lost()
        self._following = self._spawn(self._follow())

    async def prompt(self, prompt: Prompt, traceparent: str = "") -> PromptResponse:
        """Send a message, or answer what a person was asked, and wait for the end of the answer. `traceparent`: the
        editor's trace.

        Raises:
            UsageError: the last prompt is still being answered, or the message is empty.
            RequestError: there is no answer; the message says why.
            IactError: the session stopped; the message says why.
        """
        if self._prompting:
            raise UsageError("The last prompt is still being answered. Wait for its end, or cancel it.")
        self._prompting, self._cancelled = True, False
        before = self.session.view.usage
        try:
            for file in prompt.files:
                await self.session.upload(file.name, file.media, file.content)
            if self._cancelled:
                return PromptResponse(stop_reason="cancelled")
            said = await self._answered(prompt)
            if said is None:
                said = await self.session.say(prompt.text, mode=self.way, traceparent=traceparent)
            if self._cancelled and self.session.state.root.active:
                await self.session.cancel("/")
            reply = await self._reply(said)
            if reply is not None and not self._cancelled:
                await self._review(reply)
        except IactError:
            if self._cancelled:
                return PromptResponse(stop_reason="cancelled")
            raise
        finally:
            self._prompting = False
        now = self.session.view.usage
        usage = Usage(
            total_tokens=now.prompt_tokens + now.completion_tokens - before.prompt_tokens - before.completion_tokens,
            input_tokens=now.prompt_tokens - before.prompt_tokens,
            output_tokens=now.completion_tokens - before.completion_tokens,
            cached_read_tokens=now.cached_tokens - before.cached_tokens,
        )  # fmt: skip
        if reply is None:
            return PromptResponse(stop_reason="end_turn", usage=usage)
        return ended(reply, usage)

    async def _answered(self, prompt: Prompt) -> Record | None:
        """Answer the question that a prompt answers. Returns the answer's record; None if the prompt is a message."""
        if prompt.files:
            return None
        waiting = [question for question in self._questions.waiting if self._takes_prompt(question)]
        question = next((one for one in waiting if is_answer(one, prompt.text)), None)
        if question is None:
            return None
        return await answer(self.session, [ClientAnswer(question.n, question_digest(question), prompt.text)])

    async def _reply(self, said: Record) -> Record | None:
        """Wait for the root's reply, until it was sent. None if the person is asked something that takes words."""
        exchange = Exchange(self.session, said)
        before = self._prompt_needed(exchange)
        if before is not None:
            # The message waits for the answer to a question that was asked before it.
            await self._tell(self._updates.asks(question_words(before, later=True)))
            return None

        async with aclosing(aiter(exchange)) as events:
            async for event in events:
                if isinstance(event, RecordAppended) and self._prompt_needed(exchange) is not None:
                    await self._told(event.record.n)
                    return None
        await self._told(exchange.reply.n)
        return exchange.reply

    async def cancel(self) -> None:
        """Stop the work of the root and of all agents below it. A waiting prompt ends as cancelled."""
        self._cancelled = True
        if self.session.state.root.active:
            await self.session.cancel("/")

    async def end(self) -> None:
        """Stop updates, because the client no longer has the session open."""
        for task in (*self._asking.values(), *([self._following] if self._following else [])):
            task.cancel()
        async with self._moved:
            self._over = True
            self._moved.notify_all()

    # --- what happens ---------------------------------------------------------------------------

    async def _follow(self) -> None:
        try:
            while await self._watch():
                self._updates.lost()
        except ConnectionError:
            pass  # there is no client to update; the session ends with the process
        finally:
            self._over = True
            async with self._moved:
                self._moved.notify_all()

    async def _watch(self) -> bool:
        """Send updates until the session is closed. Returns True if it must start again because events were missed."""
        async with self.session.watch() as events:
            for record in self.session.records(self._sent):
                await self._take(record)
            self._ask_and_withdraw()
            live = LiveText(self.session, self._sent)
            try:
                async for event in events:
                    if not isinstance(event, RecordAppended) or event.record.n > self._sent:
                        for one in live.take(event):
                            await self._happened(one)
            except Lagging:
                return True
        return False

    async def _happened(self, event: Event) -> None:
        match event:
            case RecordAppended(record=record):
                await self._take(record)
                self._ask_and_withdraw()
            case Delta():
                await self._tell(self._updates.write(event))
            case OutputEvent():
                await self._tell(self._updates.prints(event))

    async def _take(self, record: Record) -> None:
        self._questions.add(record)
        await self._tell(self._updates.take(record))
        if isinstance(record.content, FormAsk) and self._takes_prompt(record):
            await self._tell(self._updates.asks(question_words(record)))
        await self._tell(await self._changed(record))
        async with self._moved:
            self._sent = record.n
            self._moved.notify_all()

    async def _changed(self, record: Record) -> list[Update]:
        """The files that running calls have changed, and the new ones among them that are in the directory by now."""
        settles = isinstance(record.content, Settle)
        effects = (
            self.session.records(record.content.of - 1)[0] if isinstance(record.content, Settle) else record
        )
        content = effects.content
        if not isinstance(content, Effects) or isinstance(content.changes, Blob):
            return []
        if settles != bool(content.apply):
            return []

        places = files.locations(self.session.workspace, [change.path for change in content.changes])
        edits = []
        if settles:
            edits = await asyncio.to_thread(files.created, self.session.workspace, content.changes)
        calls = []
        for number in content.calls:
            call = self.session.records(number - 1)[0]
            if isinstance(call.content, Call):
                calls.append((call.agent, call.content.turn, call.content.action))
        return self._updates.changed(calls, places, edits)

    async def _tell(self, updates: Sequence[Update]) -> None:
        for update in updates:
            await self._client.update(self.session.id, update)

    async def _told(self, n: int) -> None:
        """Wait until record `n` was reported to the client."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._sent >= n or self._over)

    # --- what is asked --------------------------------------------------------------------------

    def _takes_prompt(self, question: Record) -> bool:
        """Whether a question takes words, and the client has no place for them but its next prompt."""
        return needs_words(question) and not self._client.has_forms

    def _prompt_needed(self, exchange: Exchange) -> Record | None:
        """The oldest question that takes a prompt, once all that happened before it was reported; None if none waits."""
        if not exchange.asks:
            return None
        return next((one for one in exchange.questions.waiting if self._takes_prompt(one)), None)

    def _ask_and_withdraw(self) -> None:
        waiting = {one.n: one for one in self._questions.waiting if not self._takes_prompt(one)}
        for n in [n for n in self._asking if n not in waiting]:
            self._asking.pop(n).cancel()
        for n, record in waiting.items():
            if n not in self._asking:
                asking = self._fill_in(record) if needs_words(record) else self._ask(record)
                self._asking[n] = self._spawn(asking)

    async def _fill_in(self, record: Record) -> None:
        """Ask by a form."""
        asked = record.content
        assert isinstance(asked, FormAsk)
        seen = question_digest(record)
        try:
            for _ in range(_FORM_TRIES):
                values = await self._values(record, schema_of(asked.fields))
                if values is None:
                    break
                if await self._filled_in(record, values, seen):
                    return
            await self.session.answer_form(record.n, "decline", seen=seen)
        except ConnectionError:
            pass  # the client is gone without an answer, so the question keeps waiting
        except IactError:
            pass  # settled in the meantime, as in `_ask`

    async def _values(self, record: Record, schema: Mapping[str, JSON]) -> Mapping[str, JSON] | None:
        """What the user fills in; None if nothing, or if the client can't ask.

        Raises:
            ConnectionError: the client is gone.
        """
        try:
            return await self._client.form(self.session.id, told(record), schema, record=record.n)
        except RequestError:
            return None

    async def _filled_in(self, record: Record, values: Mapping[str, JSON], seen: str) -> bool:
        """Answer a form. Returns whether nothing is left to ask: the values fit, or the question is over."""
        try:
            await self.session.answer_form(record.n, "accept", values, seen=seen)
        except UsageError:
            return all(question.n != record.n for question in self._questions.waiting)
        return True

    async def _ask(self, record: Record) -> None:
        call, options = questions.request(record)
        seen = question_digest(record)
        try:
            option = await self._option(call, options)
            if isinstance(record.content, HostAsk):
                lasts = questions.host(option)
                await self.session.clear_host(record.n, lasts is not None, lasts or "once", seen=seen)
            elif isinstance(record.content, FormAsk):
                await self.session.answer_form(record.n, questions.form(option), seen=seen)
            else:
                await self.session.clear(record.n, *questions.clearance(option), seen=[seen])
        except ConnectionError:
            pass  # the client is gone without an answer, so the question keeps waiting
        except IactError:
            pass  # settled in the meantime by the time limit, a cancellation, or the end of the session

    async def _option(self, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str:
        """The option that the user chooses. Empty, which means no, if the client can't ask.

        Raises:
            ConnectionError: the client is gone.
        """
        try:
            return questions.chosen(await self._client.permission(self.session.id, call, options))
        except RequestError:
            return ""

    async def _review(self, reply: Record) -> None:
        """Ask the user about waiting changes to their directory."""
        effects = self.session.effects
        rows = await effects.rows() if effects.on else []
        if not rows:
            return
        since = self.session.view.record
        folder = self.session.workspace
        seen = SeenChanges(whole=together(row["digest"] for row in rows))
        changes: list[Content] = []
        for row in rows[: files.MOST]:
            texts = await effects.texts(row["path"])
            patch = "" if texts is not None else await effects.patch(row["path"])
            changes.append(questions.change(folder, row, texts, patch))
        call = questions.review(f"review#{reply.n}", folder, rows, changes)
        start = questions.begun(call)
        await self._client.update(self.session.id, start)
        try:
            match await self._option(call, questions.REVIEW):
                case "apply":
                    settled = await effects.apply(None, since=since, seen=seen)
                case "drop":
                    settled = await effects.drop(None, since=since, seen=seen)
                case _:
                    left = f"They wait. See them with: iact workspace diff --session {self.session.id}"
                    await self._settled(call.tool_call_id, "failed", left)
                    return
        except UsageError as error:  # another change came, or they were settled elsewhere
            await self._settled(call.tool_call_id, "failed", str(error))
            return

        told = [f"{one.path}: {one.why}" for one in (*settled.notes, *settled.left)]
        await self._settled(call.tool_call_id, "completed", "\n".join(told) or "Done.")

    async def _settled(self, name: str, status: questions.Settled, text: str) -> None:
        update = ToolCallProgress(
            session_update="tool_call_update", tool_call_id=name, status=status, content=[shown(text)]
        )
        await self._client.update(self.session.id, update)


def ended(reply: Record, usage: Usage) -> PromptResponse:
    """The response that ends a prompt, in the protocol's terms.

    Raises:
        RequestError: there is no answer; the message says why.
    """
    content = reply.content
    assert isinstance(content, Reply)
    failure = failure_of(reply)
    if failure is not None:
        about = {"code": failure.kind.code, "retry": failure.kind.again}
        raise RequestError(_FAILED, failure.sentence, about)
    if content.status == "cancelled":
        return PromptResponse(stop_reason="cancelled", usage=usage)
    if content.status == "bound":
        tokens = content.bound in ("tokens", "context", "money", "quota")
        return PromptResponse(stop_reason="max_tokens" if tokens else "max_turn_requests", usage=usage)
    # The protocol has no word for a goal that was not reached.
    verdict = verdict_on(content)
    told = {"iact/verdict": verdict_json(verdict)} if content.plan else None
    if verdict.outcome == "stopped":
        reason: StopReason = "cancelled" if verdict.by == "person" else "max_turn_requests"
        return PromptResponse(stop_reason=reason, usage=usage, field_meta=told)
    return PromptResponse(stop_reason="end_turn", usage=usage, field_meta=told)
