"""A journal as an Inspect log: a session is a sample, and each record that has an equivalent in Inspect is an event.

A dialogue is a span of type `agent` inside its caller's span, from the message that opens it to its reply. A model's text
is a `model` event with the exact context it was sent, an action is a `tool` event with the gate's verdict in its metadata,
and a person's or endpoint's decision about a call is an `approval`. What models never see (notices, plan versions,
controls) becomes `info`. Ids are made from the session id and record numbers, so a journal always has the same log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, TypedDict

from inspect_ai.dataset import Sample
from inspect_ai.event import (
    ApprovalEvent,
    Event,
    InfoEvent,
    ModelEvent,
    SampleInitEvent,
    SpanBeginEvent,
    SpanEndEvent,
    ToolEvent,
)
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalPlan,
    EvalPlanStep,
    EvalResults,
    EvalSample,
    EvalSampleLimit,
    EvalSpec,
    EvalStats,
    EvalStatus,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    Content,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.tool import ToolCall, ToolCallError

from iact.core.errors import JournalError, UsageError
from iact.core.ports import JSON
from iact.core.ports import ChatMessage as OwnMessage
from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result, Select
from iact.core.records.control import Inject
from iact.core.records.dialogue import (
    Choose,
    Compress,
    Discard,
    Distill,
    Draw,
    Generation,
    Recall,
    Reply,
    Say,
    Spawn,
    Turn,
)
from iact.core.records.parts import Bounds, GrantTerms, Tokens
from iact.core.records.plans import Ask, Fire
from iact.core.records.record import Record
from iact.core.records.session import Adopt, Close, Fork, Module, Open
from iact.core.stored.replay import contexts_of
from iact.core.views.ending import verdict_json, verdict_on
from iact.core.views.text import ActionBlock, IsAction, pieces

_SOLVER: Final = "iact/agent"
_QUIET: Final = (Draw, Module, Close, Fire, Spawn, Select, Open)
"""Record kinds that add nothing for a reader, because another event has the same information."""

_Limit = Literal["turn", "token", "time", "context", "cost", "custom"]
_LIMITS: Final[dict[str, _Limit]] = {
    "turns": "turn",
    "tokens": "token",
    "time": "time",
    "context": "context",
    "money": "cost",
}
_STOPS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "max_tokens", "cut": "tool_calls"}
_ERRORS: Final[dict[str, Literal["permission", "cancelled", "unknown", "sandbox_unavailable"]]] = {
    "error": "unknown",
    "incomplete": "sandbox_unavailable",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "interrupted": "cancelled",
    "forked": "cancelled",
}
"""Errors by the status of an action. A denied call looks like an unreachable one, as it does to the model."""


def log_of(records: Sequence[Record], blobs: Callable[[str], bytes], is_action: IsAction) -> EvalLog:
    """The log of a session. `blobs` reads a blob by its SHA-256. `is_action` reports whether a word begins an action.

    Raises:
        UsageError: the session has no message yet.
        ReplayMismatch, JournalError: the records are no valid session, or a blob that a context needs is missing.
    """
    if not any(isinstance(record.content, Say) for record in records):
        raise UsageError("Nothing was said in this session, so there is no sample to log.")
    read = _Read(blobs, is_action)
    for record, seen in contexts_of(records, blobs):
        read.take(record, seen)
    return read.told()


class _Place(TypedDict):
    """The fields that locate an event. `working_start`: seconds since the first record."""

    uuid: str
    span_id: str | None
    timestamp: datetime
    working_start: float


@dataclass(slots=True)
class _Read:
    """The records so far, as events."""

    blobs: Callable[[str], bytes]
    is_action: IsAction
    session: str = ""
    first: Record | None = None
    last: Record | None = None
    model: str = ""
    grant: GrantTerms | None = None
    bounds: Bounds = field(default_factory=Bounds)
    said: str = ""
    reply: Reply | None = None
    resting: bool = True
    events: list[Event] = field(default_factory=list)
    messages: list[ChatMessage] = field(default_factory=list)
    output: ModelOutput = field(default_factory=ModelOutput)
    usage: dict[str, ModelUsage] = field(default_factory=dict)
    roles: dict[str, ModelUsage] = field(default_factory=dict)
    turns: int = 0
    spans: dict[str, str] = field(default_factory=dict)
    """The open dialogue span of each agent, by path."""
    tools: dict[tuple[str, int, int], ToolEvent] = field(default_factory=dict)
    """Tool events by agent, turn and action."""
    calls: dict[str, list[ToolEvent]] = field(default_factory=dict)
    """Calls to each child that it has not replied to, by the child's path."""
    actions: dict[tuple[str, int], Sequence[ActionBlock]] = field(default_factory=dict)
    """The actions of each turn, by agent and record."""
    fired: dict[tuple[str, int], str] = field(default_factory=dict)
    """Arguments by plan and firing, if the record contains them."""
    seen: dict[str, list[tuple[OwnMessage, ChatMessage]]] = field(default_factory=dict)
    """The messages of each agent's last context, with which its next context begins."""

    # --- one record -------------------------------------------------------------------------------

    def take(self, record: Record, seen: Sequence[OwnMessage]) -> None:
        """Handle the next record. `seen`: the context that its model call was sent, if it is one."""
        self.first = self.first or record
        self.last = record

        # What it says of the session as a whole, also if it is no event.
        match record.content:
            case Open() | Adopt() as terms:
                self._opened(terms)
            case Fork(session=session):
                self.session = session

        match record.content:
            case Say():
                self._said(record)
            case Turn(generation=generation):
                self._wrote(record, generation, seen)
            case Reply() as reply:
                self._replied(record, reply, seen)
            case (
                Discard(usage=usage)
                | Compress(usage=usage)
                | Ask(usage=usage)
                | Choose(usage=usage)
                | Distill(usage=usage)
            ):
                self._thought(record, usage)
            case Gate() as gate:
                self._annotate(self._tool(record, gate.turn, gate.action, gate.function), "gate", record)
            case ClearanceAsk() as ask:
                tool = self._tool(record, ask.turn, ask.action, ask.function)
                tool.arguments = dict(ask.params)
                self._annotate(tool, "clearance", record)
            case ClearanceAnswer() as answer:
                self._answered(record, answer)
            case Fire() as fire:
                if record.body:
                    self.fired[record.agent, fire.action] = record.body
                if fire.to:
                    self._begin(fire.to, record.agent, record)
            case Call() as call:
                tool = self._tool(record, call.turn, call.action, call.function)
                if call.to:
                    tool.agent = call.to
                    tool.agent_span_id = self._begin(call.to, record.agent, record)
                    self.calls.setdefault(call.to, []).append(tool)
            case Result() as result:
                self._ended(record, result)
            case Recall():
                self._info(record, "memory")
            case Inject():
                self._info(record, "control")
                if record.agent == "/":
                    self._hear(record)
            case _ if not isinstance(record.content, _QUIET):
                self._info(record, record.kind)

    def _opened(self, terms: Open | Adopt) -> None:
        self.session = terms.session
        self.grant = terms.grant
        self.bounds = terms.bounds
        self.model = next(iter(role.model for role in terms.models.values()), "")

    def _said(self, record: Record) -> None:
        self.resting = False
        self.said = self.said or record.body
        if "/" not in self.spans:
            if not self.events:
                self._init(record)
            self._begin("/", "/", record)
        self._hear(record)
        self._info(record, "say")

    def _init(self, record: Record) -> None:
        sample = Sample(input=record.body, id=self.session, metadata=self._metadata())
        self._add(SampleInitEvent(sample=sample, **self._at(record, None)))
        self._add(
            SpanBeginEvent(id=self.session, type="solver", name=_SOLVER, **self._at(record, self.session))
        )

    def _hear(self, record: Record) -> None:
        self.messages.append(ChatMessageUser(content=record.body, id=self._id(record)))

    # --- what models wrote ------------------------------------------------------------------------

    def _wrote(self, record: Record, generation: Generation, seen: Sequence[OwnMessage]) -> None:
        """Handle a turn, with the actions in its text."""
        blocks = [piece for piece in pieces(record.body, self.is_action) if isinstance(piece, ActionBlock)]
        self.actions[record.agent, record.n] = blocks

        calls = [
            ToolCall(
                id=_call_id(record.agent, record.n, block.index),
                function=block.name,
                arguments=_arguments(block),
            )
            for block in blocks
        ]
        self._spoke(record, generation, seen, calls)

    def _spoke(
        self, record: Record, generation: Generation, seen: Sequence[OwnMessage], calls: list[ToolCall]
    ) -> None:
        """Handle a text that an agent's model wrote in its dialogue."""
        self.turns += 1
        text = record.body
        content: str | list[Content] = text
        if generation.reasoning:
            content = [ContentReasoning(reasoning=generation.reasoning), ContentText(text=text)]

        message = ChatMessageAssistant(
            id=self._id(record),
            content=content,
            tool_calls=calls or None,
            model=generation.model,
            source="generate",
        )

        stop: StopReason = "tool_calls" if calls else _STOPS[generation.finish]
        output = ModelOutput(
            model=generation.model,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            completion=text,
            usage=self._count(generation.model, generation.role, generation.usage),
            time=generation.ms / 1000,
        )
        self._model(record, generation.model, generation.role, self._input(record, seen), output)

        if record.agent == "/":
            self.messages.append(message)
            self.output = output

    def _thought(self, record: Record, usage: Tokens) -> None:
        """Handle a model call that is not a turn of a dialogue. The journal has the answer and a digest of the question."""
        model = record.text("model") or self.model
        counted = self._count(model, record.text("role"), usage)
        output = ModelOutput.from_content(model, record.body)
        output.usage = counted
        self._model(record, model, record.text("role"), [], output)

    def _model(
        self, record: Record, model: str, role: str, context: list[ChatMessage], output: ModelOutput
    ) -> None:
        for choice in output.choices:
            choice.message.id = self._id(record)
        event = ModelEvent(
            model=model,
            role=role or None,
            input=context,
            tools=[],
            tool_choice="none",
            config=GenerateConfig(),
            output=output,
            completed=_time(record),
            working_time=output.time,
            **self._at(record, self._span(record.agent)),
        )
        event.metadata = {"record": record.n, "kind": record.kind, **_said_of(record)}
        self._add(event)

    def _input(self, record: Record, seen: Sequence[OwnMessage]) -> list[ChatMessage]:
        """A context as Inspect messages. A message that the agent had seen before keeps its id."""
        before = self.seen.get(record.agent, [])
        context: list[tuple[OwnMessage, ChatMessage]] = []
        for place, own in enumerate(seen):
            is_known = place < len(before) and before[place][0] == own
            context.append(before[place] if is_known else (own, self._message(record, place, own)))

        self.seen[record.agent] = context
        return [message for _, message in context]

    def _message(self, record: Record, place: int, own: OwnMessage) -> ChatMessage:
        identity = f"{self._id(record)}-{place}"
        parts = "".join(f"\n[${part.name}: {part.media}, SHA-256 {part.sha256}]" for part in own.parts)
        content = own.content + parts

        match own.role:
            case "system":
                return ChatMessageSystem(content=content, id=identity)
            case "assistant":
                return ChatMessageAssistant(content=content, id=identity)
            case _:
                return ChatMessageUser(content=content, id=identity)

    def _count(self, model: str, role: str, tokens: Tokens) -> ModelUsage:
        used = ModelUsage(
            input_tokens=tokens.prompt - tokens.cached,
            output_tokens=tokens.completion,
            total_tokens=tokens.prompt + tokens.completion,
            input_tokens_cache_read=tokens.cached,
        )
        self.usage[model] = self.usage.get(model, ModelUsage()) + used
        if role:
            self.roles[role] = self.roles.get(role, ModelUsage()) + used
        return used

    def _replied(self, record: Record, reply: Reply, seen: Sequence[OwnMessage]) -> None:
        if reply.generation is not None:
            self._spoke(record, reply.generation, seen, [])
        else:
            self._info(record, "reply")

        if record.agent == "/":
            self.reply = reply
            self.resting = True
            if reply.generation is None:
                self.messages.append(ChatMessageAssistant(content=record.body, id=self._id(record)))
                self.output = ModelOutput.from_content(self.model, record.body)
                self.output.choices[0].message.id = self._id(record)
        for tool in self.calls.pop(record.agent, []):
            tool.result, tool.completed, tool.pending = record.body, _time(record), None
            if reply.status != "ok":
                tool.error = ToolCallError("limit" if reply.status == "bound" else "unknown", reply.status)
        self._end(record.agent, record)

    # --- actions ----------------------------------------------------------------------------------

    def _tool(self, record: Record, turn: int, action: int, function: str) -> ToolEvent:
        key = record.agent, turn, action
        tool = self.tools.get(key)
        if tool is None:
            tool = ToolEvent(
                id=_call_id(*key),
                function=function,
                arguments=self._given(record, turn, action),
                pending=True,
                **self._at(record, self._span(record.agent)),
            )
            tool.metadata = {"record": record.n, "turn": turn, "action": action}
            self.tools[key] = tool
            self._add(tool)
        return tool

    def _given(self, record: Record, turn: int, action: int) -> dict[str, JSON]:
        """The arguments of an action, as its agent wrote them, or as its plan's record contains them."""
        for block in self.actions.get((record.agent, turn), ()):
            if block.index == action:
                return _arguments(block)

        fired = self.fired.get((record.agent, action))
        return {"arguments": fired} if fired else {}

    def _annotate(self, tool: ToolEvent, name: str, record: Record) -> None:
        known = tool.metadata or {}
        tool.metadata = {**known, name: [*known.get(name, []), {"record": record.n, **record.fields}]}

    def _answered(self, record: Record, answer: ClearanceAnswer) -> None:
        tool = self._tool(record, answer.turn, answer.action, answer.function)
        call = ToolCall(id=tool.id, function=tool.function, arguments=tool.arguments)
        event = ApprovalEvent(
            message="",
            call=call,
            approver=answer.by,
            decision="approve" if answer.allow else "reject",
            explanation=answer.reason or None,
            **self._at(record, self._span(record.agent)),
        )
        event.metadata = {"record": record.n, "ask": answer.ask}
        self._add(event)

    def _ended(self, record: Record, result: Result) -> None:
        """Complete the event of an action with its outcome."""
        tool = self._tool(record, result.turn, result.action, result.function)
        tool.result = self._output(record, result)
        error = _ERRORS.get(result.status)
        tool.error = None if error is None else ToolCallError(error, record.body)

        tool.pending = None
        tool.completed = _time(record)
        tool.working_time = None if result.ms is None else result.ms / 1000
        tool.message_id = self._id(record)
        tool.metadata = {**(tool.metadata or {}), "result": record.n, "status": result.status}

        # It has its result, so a child's reply is not for it any more.
        for waiting in self.calls.values():
            if tool in waiting:
                waiting.remove(tool)

        # Inspect's conversation of a sample is that of the root.
        if record.agent == "/":
            self.messages.append(
                ChatMessageTool(
                    id=self._id(record),
                    content=tool.result,
                    tool_call_id=tool.id,
                    function=tool.function,
                    error=tool.error,
                )
            )

    def _output(self, record: Record, result: Result) -> str:
        if result.blob is None:
            return record.body

        is_text = not result.media or result.media.startswith("text/")
        if is_text:
            try:
                return self.blobs(result.blob.sha256).decode(errors="replace")
            except JournalError:
                pass
        return f"[{result.media or 'text'}, {result.blob.size} bytes, SHA-256 {result.blob.sha256}]"

    # --- spans and other events -------------------------------------------------------------------

    def _begin(self, path: str, caller: str, record: Record) -> str:
        """The span of a dialogue. A dialogue that continues keeps its span."""
        span = self.spans.get(path)
        if span is not None:
            return span

        parent = self._span(caller)
        span = f"{self.session}{path}@{record.n}"
        self.spans[path] = span
        event = SpanBeginEvent(id=span, parent_id=parent, type="agent", name=path, **self._at(record, span))
        event.metadata = {"record": record.n}
        self._add(event)
        return span

    def _end(self, path: str, record: Record) -> None:
        span = self.spans.pop(path, None)
        if span is not None:
            self._add(SpanEndEvent(id=span, **self._at(record, span, "end")))

    def _span(self, path: str) -> str:
        """The span for an agent's events: its dialogue, that of its nearest ancestor, or the session's."""
        while path not in self.spans and path != "/":
            path = path.rpartition("/")[0] or "/"
        return self.spans.get(path, self.session)

    def _info(self, record: Record, source: str) -> None:
        if not self.events:
            return  # before the first message there is no sample
        data: dict[str, JSON] = {"agent": record.agent, **_said_of(record)}
        if record.body:
            data["text"] = record.body
        event = InfoEvent(source=f"iact:{source}", data=data, **self._at(record, self._span(record.agent)))
        event.metadata = {"record": record.n}
        self._add(event)

    def _at(self, record: Record, span: str | None, what: str = "") -> _Place:
        first = self.first or record
        since = (_time(record) - _time(first)).total_seconds()
        identity = f"{self._id(record)}-{what or len(self.events)}"
        return _Place(uuid=identity, span_id=span, timestamp=_time(record), working_start=since)

    def _id(self, record: Record) -> str:
        return f"{self.session}-{record.n}"

    def _add(self, event: Event) -> None:
        self.events.append(event)

    # --- the whole --------------------------------------------------------------------------------

    def _metadata(self) -> dict[str, JSON]:
        metadata: dict[str, JSON] = {"session": self.session}
        if self.grant is not None:
            metadata |= {"scope": self.grant.scope, "intent": self.grant.intent}
        if self.resting and self.reply is not None:
            # Inspect has no word for a goal that was not reached: a sample is a success if it ran to its end.
            metadata["verdict"] = verdict_json(verdict_on(self.reply))

        return metadata

    def told(self) -> EvalLog:
        assert self.first is not None
        assert self.last is not None
        for path in sorted(self.spans, key=len, reverse=True):
            self._end(path, self.last)
        self._add(SpanEndEvent(id=self.session, **self._at(self.last, self.session)))
        began, ended = self.first.at, self.last.at
        seconds = (_time(self.last) - _time(self.first)).total_seconds()
        status = self._status()
        sample = EvalSample(
            id=self.session,
            epoch=1,
            input=self.said,
            target="",
            messages=self.messages,
            output=self.output,
            metadata=self._metadata(),
            events=self.events,
            model_usage=self.usage,
            role_usage=self.roles,
            started_at=began,
            completed_at=ended,
            total_time=seconds,
            uuid=self.session,
            error=self._error(),
            limit=self._limit(),
            turn_count=self.turns,
        )
        return EvalLog(
            status=status,
            eval=EvalSpec(
                eval_id=self.session,
                run_id=self.session,
                created=began,
                task="session",
                task_id=self.session,
                solver=_SOLVER,
                dataset=EvalDataset(name="session", samples=1, sample_ids=[self.session]),
                model=self.model,
                config=EvalConfig(),
                metadata=self._metadata(),
            ),
            plan=EvalPlan(steps=[EvalPlanStep(solver=_SOLVER, params=self._metadata())]),
            results=EvalResults(total_samples=1, completed_samples=int(status == "success")),
            stats=EvalStats(
                started_at=began,
                completed_at=ended,
                model_usage=self.usage,
                role_usage=self.roles,
            ),
            error=self._error(),
            samples=[sample],
        )

    def _status(self) -> EvalStatus:
        if not self.resting or self.reply is None:
            return "started"
        match self.reply.status:
            case "failed":
                return "error"
            case "cancelled":
                return "cancelled"
            case _:
                return "success"

    def _error(self) -> EvalError | None:
        if self._status() != "error":
            return None
        return EvalError(message=self.output.completion, traceback="", traceback_ansi="")

    def _limit(self) -> EvalSampleLimit | None:
        bound = self.reply.bound if self.reply is not None else ""
        if not bound:
            return None
        bounds = self.bounds
        most = {
            "turns": bounds.turns,
            "tokens": bounds.tokens,
            "time": bounds.activation,
            "money": bounds.money or 0.0,
        }
        return EvalSampleLimit(type=_LIMITS.get(bound, "custom"), limit=most.get(bound, 0.0), reason=bound)


def _time(record: Record) -> datetime:
    return datetime.fromisoformat(record.at)


def _call_id(agent: str, turn: int, action: int) -> str:
    return f"{agent}:{turn}.{action}"


def _arguments(block: ActionBlock) -> dict[str, JSON]:
    """An action's arguments as the agent wrote them: the words after its name, and its body."""
    given: Iterable[tuple[str, str]] = (("arguments", block.arguments), ("body", block.body))
    return {name: value for name, value in given if value}


def _said_of(record: Record) -> dict[str, JSON]:
    """The fields of a record's header for which events have no fields."""
    return {name: value for name, value in record.fields.items() if name not in {"usage", "reasoning"}}
