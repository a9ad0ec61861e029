"""A fold from records and live text to AG-UI events.

Agents' text becomes messages, piece by piece. Everything that is called becomes a tool call. A child is a subagent, whose
messages and calls carry its name. A plan's steps are steps. Records are authoritative: a streamed message ends with the
text of its record. The protocol requires that everything is closed at the end of a run, so a run that stops for a
question suspends the working agents, and the next run begins them again. Nothing here waits, asks or sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from ag_ui.core import (
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    StepFinishedEvent,
    StepStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentFinishedSuspendedOutcome,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from iact.core.ports import JSON
from iact.core.records.calls import Call, ClearanceAsk, Gate, Result
from iact.core.records.dialogue import Generation, Reply, Turn
from iact.core.records.forms import FormAsk, FrontEndCall
from iact.core.records.plans import Fire, Node
from iact.core.records.record import Record
from iact.core.views.ending import outcome_of
from iact.core.views.events import Delta, Event, RecordAppended
from iact.core.views.text import ActionBlock, IsAction, looks_like_action, pieces
from iact.faces.ag_ui.heard import name
from iact.faces.root_text import TextStream

_ROOT: Final = "/"
_FRONT_END: Final = "FRONTEND"
"""The action that calls a tool of the front end."""
_LONGEST: Final = 100_000
"""The maximum number of characters of a result that a front end receives. The journal has everything."""


@dataclass(slots=True)
class _Child:
    """A child or a plan that works for a call."""

    run: str
    tools: list[str] = field(default_factory=list)
    """The calls that its reply answers."""
    steps: dict[str, None] = field(default_factory=dict)
    """A plan's steps that run."""
    speaks: bool = False
    """Whether it is a called agent, whose model's text is its message; the text of a plan's model is the plan itself."""
    told: bool = False
    """Whether this run has reported its start."""


class EventFold:
    """The events of one run. It must be given the earlier records as `before`, and then all events."""

    def __init__(
        self, session: str, is_action: Callable[[str], IsAction | None], before: Iterable[Record] = ()
    ) -> None:
        self._session = session
        self._is_action = is_action
        self._texts: dict[str, TextStream] = {}
        self._record = 0
        self._messages: dict[str, str] = {}
        """The message that each agent is writing."""
        self._thought = ""
        self._thinking = False
        """Whether any of the root's reasoning in this turn was reported."""
        self._count = 0
        self._said: dict[str, tuple[int, str]] = {}
        """The record and the message of each agent's newest turn."""
        self._blocks: dict[str, tuple[int, dict[int, ActionBlock]]] = {}
        self._fired: dict[tuple[str, int, int], Fire] = {}
        self._begun: set[str] = set()
        """Tool calls without a result yet."""
        self._children: dict[str, _Child] = {}
        self._models: dict[str, list[int]] = {}
        """The tokens of each model: read, read from its cache, written."""

        for record in before:
            for _ in self.take(RecordAppended(record)):
                pass

        # Who works on what goes on from earlier runs; what was used, written and reported does not.
        self._models.clear()
        for child in self._children.values():
            child.told = False
        self._texts.clear()
        self._messages.clear()
        self._thought = ""
        self._said.clear()

    @property
    def record(self) -> int:
        """The last record that was reported."""
        return self._record

    @property
    def usage(self) -> list[TokenUsage]:
        """The tokens of this run, by model."""
        return [
            TokenUsage(
                model=model, input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion,
                cached_input_tokens=cached,
            )
            for model, (prompt, cached, completion) in self._models.items()
        ]  # fmt: skip

    def take(self, event: Event) -> Iterator[BaseEvent]:
        """Handle the next event of the session."""
        if isinstance(event, Delta):
            if event.agent == _ROOT:
                yield from self._thinks(event)
            child = self._children.get(event.agent)
            if event.agent == _ROOT or (child is not None and child.speaks):
                yield from self._writes(event.agent, event)
        elif isinstance(event, RecordAppended):
            if event.record.agent == _ROOT:
                yield from self._thought_of(event.record)
            if isinstance(event.record.content, Turn | Reply):
                yield from self._writes(event.record.agent, event)
            self._record = event.record.n
            yield from self._take(event.record)

    def end(self, *, suspended: dict[str, list[str]] | None) -> Iterator[BaseEvent]:
        """Close everything that the protocol requires. `suspended`: the interrupts of each agent, if the run stops for any."""
        yield from self._thought_ends()
        for agent, message in self._messages.items():
            yield TextMessageEndEvent(message_id=message, subagent_run_id=self.owner(agent))
        self._messages.clear()

        # The deepest first: a subagent ends before the one that called it.
        for path in sorted(self._children, key=lambda path: -path.count("/")):
            child = self._children[path]
            if not child.told:
                continue

            for step in child.steps:
                yield StepFinishedEvent(step_name=step, subagent_run_id=child.run)
            if suspended is None:
                yield SubagentErrorEvent(subagent_run_id=child.run, message="It was ended.", code="cancelled")
            else:
                outcome = SubagentFinishedSuspendedOutcome(interrupt_ids=suspended.get(path, []))
                yield SubagentFinishedEvent(subagent_run_id=child.run, outcome=outcome)

    def tool_of(self, question: Record) -> str | None:
        """The tool call that a question is about."""
        asked = question.content
        if not isinstance(asked, ClearanceAsk) or asked.function == _FRONT_END:
            return None
        return self._tool(asked.turn, asked.action)

    def owner(self, agent: str) -> str | None:
        """The current subagent of an agent."""
        return self._children[agent].run if agent in self._children else None

    # --- text ------------------------------------------------------------------------

    def _writes(self, agent: str, event: Event) -> Iterator[BaseEvent]:
        """The events of an agent's text, which an event of the session continues or ends."""
        stream = self._texts.get(agent)
        if stream is None:
            stream = TextStream(agent)
            self._texts[agent] = stream

        for piece in stream.take(event):
            yield from self._child(agent)
            owner = self.owner(agent)
            if piece is None:
                message = self._messages.pop(agent)
                yield TextMessageEndEvent(message_id=message, subagent_run_id=owner)
                turn = event.record.n if isinstance(event, RecordAppended) else 0
                self._said[agent] = turn, message
                continue

            if agent not in self._messages:
                if agent == _ROOT:
                    yield from self._thought_ends()
                self._messages[agent] = self._name("m")
                yield TextMessageStartEvent(
                    message_id=self._messages[agent], role="assistant", subagent_run_id=owner
                )
            yield TextMessageContentEvent(
                message_id=self._messages[agent], delta=piece, subagent_run_id=owner
            )

    def _thinks(self, event: Delta) -> Iterator[BaseEvent]:
        """The events of the root's reasoning, which a piece of text continues or ends."""
        if not event.thought or event.restart:
            yield from self._thought_ends()
        if not event.thought or not event.text:
            return

        self._thinking = True
        if not self._thought:
            self._thought = self._name("r")
            yield ReasoningStartEvent(message_id=self._thought)
            yield ReasoningMessageStartEvent(message_id=self._thought, role="reasoning")
        yield ReasoningMessageContentEvent(message_id=self._thought, delta=event.text)

    def _thought_of(self, record: Record) -> Iterator[BaseEvent]:
        """The reasoning in a turn's record, if none of it was streamed."""
        if not isinstance(record.content, Turn | Reply):
            return
        generation = record.content.generation
        if generation is not None and generation.reasoning and not self._thinking:
            yield from self._thinks(Delta(_ROOT, generation.reasoning, thought=True))
        self._thinking = False

    def _thought_ends(self) -> Iterator[BaseEvent]:
        if self._thought:
            yield ReasoningMessageEndEvent(message_id=self._thought)
            yield ReasoningEndEvent(message_id=self._thought)
            self._thought = ""

    # --- records --------------------------------------------------------------------------------

    def _take(self, record: Record) -> Iterator[BaseEvent]:
        content = record.content
        match content:
            case Turn() | Reply():
                yield from self._spoke(record, content)
            case Fire():
                self._fired[record.agent, content.turn, content.action] = content
            case FormAsk() if content.tool is not None:
                yield from self._runs(record, content.tool)
            case ClearanceAsk() | Gate() | Call() if content.function == _FRONT_END:
                return  # the front end is notified when it must run the tool
            case ClearanceAsk() if content.to == "person":
                yield from self._begin(record.agent, content.turn, content.action, content.function)
            case Gate(allow=False):
                yield from self._begin(record.agent, content.turn, content.action, content.function)
                why = f"Denied by {content.by}: {content.reason}".rstrip(": ")
                yield from self._result(record.agent, self._tool(content.turn, content.action), why)
            case Call():
                yield from self._begin(record.agent, content.turn, content.action, content.function)
                if content.to:
                    yield from self._called(record, content)
            case Result():
                yield from self._ended(record, content)
            case Node():
                yield from self._stepped(record.agent, content)

    def _called(self, record: Record, call: Call) -> Iterator[BaseEvent]:
        """A call of a child or a plan: one that works already takes it on, too."""
        child = self._children.get(call.to)
        if child is None:
            child = _Child(name(self._session, record.n, "s", 0))
            self._children[call.to] = child

        child.tools.append(self._tool(call.turn, call.action))
        child.speaks = call.function.startswith("CALL")
        yield from self._child(call.to)

    def _spoke(self, record: Record, content: Turn | Reply) -> Iterator[BaseEvent]:
        """An agent's turn or reply: what it used, which actions it has, and what ends with it."""
        if content.generation is not None:
            self._count_usage(content.generation)
        if isinstance(content, Turn):
            is_action = self._is_action(record.agent) or looks_like_action
            blocks = (piece for piece in pieces(record.body, is_action) if isinstance(piece, ActionBlock))
            self._blocks[record.agent] = record.n, {block.index: block for block in blocks}

        if record.agent == _ROOT:
            yield from self._thought_ends()
            return

        yield from self._child(record.agent)
        if isinstance(content, Reply):
            yield from self._replied(record, content)

    def _count_usage(self, generation: Generation) -> None:
        used = self._models.setdefault(generation.model, [0, 0, 0])
        used[0] += generation.usage.prompt
        used[1] += generation.usage.cached
        used[2] += generation.usage.completion

    def _replied(self, record: Record, reply: Reply) -> Iterator[BaseEvent]:
        """A child's or a plan's reply: it ends, and so do the calls that it worked for."""
        child = self._children.pop(record.agent)
        for step in child.steps:
            yield StepFinishedEvent(step_name=step, subagent_run_id=child.run)

        outcome = outcome_of(reply)
        if outcome == "reached":
            yield SubagentFinishedEvent(subagent_run_id=child.run)
        else:
            message = record.body[:2000] or f"Its work ended: {reply.status}."
            yield SubagentErrorEvent(subagent_run_id=child.run, message=message, code=reply.bound or outcome)

        for tool in child.tools:
            yield from self._result(_above(record.agent), tool, record.body)

    # --- tool calls -----------------------------------------------------------------------------

    def _tool(self, turn: int, action: int) -> str:
        return name(self._session, turn, "c", action)

    def _begin(self, agent: str, turn: int, action: int, function: str) -> Iterator[BaseEvent]:
        tool = self._tool(turn, action)
        if tool in self._begun:
            return

        self._begun.add(tool)
        yield from self._child(agent)
        owner = self.owner(agent)

        # Of a turn that this run did not report, the message's name follows from its record.
        newest, message = self._said.get(agent, (0, ""))
        parent = message if newest == turn else name(self._session, turn, "m", 0)
        yield ToolCallStartEvent(
            tool_call_id=tool, tool_call_name=function, parent_message_id=parent, subagent_run_id=owner
        )
        given = json.dumps(self._given(agent, turn, action), ensure_ascii=False)
        yield ToolCallArgsEvent(tool_call_id=tool, delta=given, subagent_run_id=owner)
        yield ToolCallEndEvent(tool_call_id=tool, subagent_run_id=owner)

    def _runs(self, record: Record, asked: FrontEndCall) -> Iterator[BaseEvent]:
        """Ask the front end to run one of its tools. The call has no result until the front end sends one."""
        yield from self._child(record.agent)
        owner = self.owner(record.agent)
        tool = name(self._session, record.n, "f", 0)
        yield ToolCallStartEvent(
            tool_call_id=tool, tool_call_name=asked.name, parent_message_id=name(self._session, record.n, "m", 0),
            subagent_run_id=owner,
        )  # fmt: skip
        given = json.dumps(dict(asked.arguments), ensure_ascii=False)
        yield ToolCallArgsEvent(tool_call_id=tool, delta=given, subagent_run_id=owner)
        yield ToolCallEndEvent(tool_call_id=tool, subagent_run_id=owner)

    def _given(self, agent: str, turn: int, action: int) -> dict[str, JSON]:
        """An action's input, as its agent wrote it."""
        fired = self._fired.pop((agent, turn, action), None)
        if fired is not None:
            return {"step": fired.node}

        newest, blocks = self._blocks.get(agent, (0, {}))
        if newest != turn or action not in blocks:
            return {}
        block = blocks[action]
        return {"arguments": block.arguments, "body": block.body}

    def _ended(self, record: Record, result: Result) -> Iterator[BaseEvent]:
        tool = self._tool(result.turn, result.action)
        if result.status == "ok" and any(tool in child.tools for child in self._children.values()):
            return  # it was passed to an agent, and ends with that agent's reply

        for child in self._children.values():
            child.tools = [other for other in child.tools if other != tool]
        text = record.body
        if not text and result.blob is not None:
            text = f"{result.blob.size} bytes of {result.media or 'text'}"
        yield from self._result(record.agent, tool, text or result.status)

    def _result(self, agent: str, tool: str, text: str) -> Iterator[BaseEvent]:
        if tool not in self._begun:
            return  # it was denied, which was reported, or it only concerns the agent

        self._begun.discard(tool)
        content = text
        if len(text) > _LONGEST:
            content = f"{text[:_LONGEST]}\n… ({len(text) - _LONGEST} more characters)"
        yield ToolCallResultEvent(
            message_id=self._name("t"),
            tool_call_id=tool,
            content=content,
            role="tool",
            subagent_run_id=self.owner(agent),
        )

    # --- children and steps ---------------------------------------------------------------------

    def _child(self, path: str) -> Iterator[BaseEvent]:
        """Report the start of a child and of its ancestors in this run, if that was not done yet."""
        if path == _ROOT:
            return

        child = self._children.setdefault(path, _Child(name(self._session, self._record, "s", 0)))
        if child.told:
            return

        child.told = True
        above = _above(path)
        yield from self._child(above)
        yield SubagentStartedEvent(
            subagent_run_id=child.run,
            name=path,
            parent_subagent_run_id=self.owner(above),
            parent_tool_call_id=child.tools[-1] if child.tools else None,
        )

        for step in child.steps:
            yield StepStartedEvent(step_name=step, subagent_run_id=child.run)

    def _stepped(self, path: str, node: Node) -> Iterator[BaseEvent]:
        """A step of a plan begins or ends. One that waits for a person has not ended."""
        yield from self._child(path)
        if path not in self._children:
            return

        child = self._children[path]
        is_open = node.node in child.steps
        if node.to == "running" and not is_open:
            child.steps[node.node] = None
            yield StepStartedEvent(step_name=node.node, subagent_run_id=child.run)
        elif node.to not in ("running", "waiting_human") and is_open:
            del child.steps[node.node]
            yield StepFinishedEvent(step_name=node.node, subagent_run_id=child.run)

    def _name(self, kind: str) -> str:
        self._count += 1
        return name(self._session, self._record, kind, self._count)


def _above(path: str) -> str:
    return path.rpartition("/")[0] or _ROOT
