"""The spans of a session, folded from its records, for third-party tracing tools.

A session is one trace, unless the program that sends a message names its own: the work on that message is then part of
that program's trace, below the span that it named, and linked to the session's. The root of a session's trace is
`create_agent`, a moment at its start, so it exists however the session continues. All other spans are below it:

    create_agent root
      invoke_agent root             a message from the user, until the root's reply to it
        chat MODEL                  the model wrote
        search_memory               memory was asked
        execute_tool FUNCTION       a call, from the gate's question to its outcome; the gate's decision is an event on it
        invoke_agent CHILD          a message to a child, until its reply; one such span for each
        invoke_agent PLAN           a plan, until its report
          plan PLAN                 its planner thought, which is a `chat` below it
          invoke_workflow MODE      one version of the plan, with its calls, its children and its judges

The parent of an agent's work is what its caller was doing at the time. If a person causes work in a child whose caller is
at rest, the parent is what the caller did last, which may have ended: a span may outlive its parent.

Spans are emitted when they end, and never change afterwards. So the spans of the beginning of a journal are among those of
the whole journal. Work interrupted by a crash continues with the records written after the session is reopened: calls
end as `interrupted`, text without a record never existed, and an agent's work ends with its reply, however often its
process was killed in between. Work that no record ends has no end.

A fork is a session with its own trace, which begins with the fork's own records and is linked to what the source's root
was doing. Work that continues in the fork has a span there, linked to the span in the source.

Records contain the time at which a model had finished writing and, in most cases, how long that took. Where they don't
(answers about plans, stopped texts), a span begins when its step began, or with the agent's previous record.

The conventions: https://github.com/open-telemetry/semantic-conventions-genai. Attributes `iact.*` are specific to iact.
What people, models and tools said is left out of spans, unless it is requested.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from iact.core.records.calls import Call, ClearanceAnswer, ClearanceAsk, Gate, Result
from iact.core.records.control import Inject, Pause, Resume, RetryStep, SetModels, StartPlan, Withdraw
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
    is_traceparent,
)
from iact.core.records.parts import RoleTerms, Tokens
from iact.core.records.plans import Ask, Draft, Node, Plan
from iact.core.records.record import Record
from iact.core.records.session import Adopt, Fork, Migrate, Open
from iact.core.views.ending import outcome_of, verdict_on
from iact.faces.otel.span import (
    Attribute,
    Span,
    SpanEvent,
    SpanKind,
    SpanLink,
    nanoseconds,
    span_id,
    trace_id,
)

_PLANNING: Final = frozenset({"plan", "correct", "replan", "patch", "profile", "repair"})
"""Questions about a plan whose answers are steps. Answers to other questions are judgements."""
_ABOVE_OTHERS: Final = frozenset({"invoke_agent", "invoke_workflow", "plan"})
"""Operations whose spans have others below them."""
_MEMORY: Final = {"RECALL": "search_memory", "REMEMBER": "create_memory"}
"""Core actions that are memory operations."""
_EMBEDDED: Final = ("SmolLM2", "Qwen2.5-Coder-1.5B-Instruct", "Qwen2.5-Coder-0.5B-Instruct")
"""Names of models that ran in the process itself."""
_OTHER: Final = "_OTHER"
"""The conventions' name for an error without a name."""


@dataclass(slots=True)
class _OpenSpan:
    """A span that has not ended."""

    trace: str
    id: str
    parent: str
    name: str
    kind: SpanKind
    start: int
    attributes: dict[str, Attribute]
    events: list[SpanEvent] = field(default_factory=list)
    links: tuple[SpanLink, ...] = ()
    denied: bool = False

    def told(self, end: int | None, error: str = "") -> Span:
        attributes = {**self.attributes, "error.type": error} if error else dict(self.attributes)
        if end is not None:
            end = max(end, self.start)
        return Span(
            self.trace, self.id, self.parent, self.name, self.kind, self.start, end, attributes,
            tuple(self.events), self.links, error,
        )  # fmt: skip


@dataclass(slots=True)
class _Agent:
    """The state of an agent or a plan that its spans need."""

    path: str
    caller: str
    role: str
    mode: str = ""
    """The mode of a plan."""
    is_plan: bool = False
    work: _OpenSpan | None = None
    """Its current work, from a message to its reply."""
    version: _OpenSpan | None = None
    """The running version of a plan."""
    last: str = ""
    """The span of its last work."""
    last_version: str = ""
    unread: dict[int, bool] = field(default_factory=dict)
    """Messages that no model has read, by record, and whether they wait for the end of the current answer."""
    begun: bool = False
    """Whether its current work has produced anything."""
    before: int = 0
    """The time of its last record."""
    asked: dict[int, int] = field(default_factory=dict)
    """When a plan's questions were asked, as far as records show."""
    steps: dict[str, int] = field(default_factory=dict)
    """When a plan's steps began to run."""

    @property
    def name(self) -> str:
        """The name for tracing tools."""
        return self.path.rpartition("/")[2] or "root"

    @property
    def within(self) -> str:
        """The parent span of what it does now, or an empty string if it did nothing yet."""
        now = self.version or self.work
        return now.id if now is not None else self.last_version or self.last


class SpanFold:
    """Takes records one after another and returns the spans that end with each. `content`: include what was said."""

    def __init__(self, *, content: bool = False) -> None:
        self._content = content
        self._session = ""
        self._trace = ""
        self._root = ""
        self._now = 0
        self._models: Mapping[str, RoleTerms] = {}
        self._agents: dict[str, _Agent] = {}
        self._tools: dict[tuple[str, int, int], _OpenSpan] = {}
        self._record, self._opened = 0, Counter[str]()
        """The newest record at which spans were opened, and how many of each description."""
        self._ended: list[Span] = []
        self._callers: dict[int, str] = {}
        """The traces of the programs that sent messages which no work has begun with, by record, as `traceparent`."""
        self._traces: dict[str, str] = {}
        """The traces of spans that may have others below them and are in another trace than the session's."""

    @property
    def session(self) -> str:
        """The session, as of the last record taken."""
        return self._session

    @property
    def trace_id(self) -> str:
        """The trace of the session, as of the last record taken."""
        return self._trace

    def take(self, record: Record) -> tuple[Span, ...]:
        """The spans that end with this record. If the record begins a fork, earlier spans belong to another trace."""
        self._now = max(self._now, nanoseconds(record.at))
        self._ended = []
        self._read(record)
        agent = self._agents.get(record.agent)
        if agent is not None and not isinstance(record.content, Draft | Draw):
            agent.before = self._now
        return tuple(self._ended)

    def under_way(self) -> Iterator[Span]:
        """The unfinished spans, callers before their children."""
        for agent in self._agents.values():
            for one in (agent.work, agent.version):
                if one is not None:
                    yield one.told(None)
        for one in self._tools.values():
            yield one.told(None)

    # --- records ----------------------------------------------------------------------------------

    def _read(self, record: Record) -> None:
        match record.content:
            case Open(session=session, models=models):
                self._models = models
                self._begin(session, record, ())
            case Fork(session=session) as fork:
                self._fork(session, record, goes_on=not fork.drops)
            case Adopt(session=session, models=models):
                self._models = models
                self._fork(session, record, goes_on=False)
            case SetModels(models=models) | Migrate(models=models):
                self._models = models
            case Spawn() as spawn:
                self._spawn(record, spawn)
            case _ if not self._trace:
                return  # records before the beginning don't belong to a session
            case Say(waits=waits, traceparent=traceparent):
                if is_traceparent(traceparent):
                    self._callers[record.n] = traceparent
                self._message(record, self._agent("/"), waits=waits, text=record.body)
            case Inject(node=""):
                self._message(record, self._agent(record.agent), text=record.body)
            case StartPlan() | RetryStep():
                self._message(record, self._agent(record.agent), text=record.body)
            case Withdraw(of=of):
                self._withdraw(self._agent(record.agent), of)
            case Call(to=to) if to:
                self._at_work(record)
                self._message(record, self._agent(to))
            case Gate() | ClearanceAsk() | ClearanceAnswer() | Call() | Result() as content:
                self._call(record, content)
            case Turn(generation=made):
                self._wrote(record, made)
            case Reply() as reply:
                self._reply(record, reply)
            case Discard() as stopped:
                self._stopped(record, stopped)
            case (
                Compress(model=model, usage=usage)
                | Choose(model=model, usage=usage)
                | Distill(model=model, usage=usage)
            ):
                self._chat(record, self._before(record), model, usage)
            case Ask() as answer:
                self._answered(record, answer)
            case Recall() as recall:
                found = {"gen_ai.memory.record.count": len(recall.rows)}
                self._memory(record, "search_memory", self._now - recall.ms * 1_000_000, found, "")
            case Draw(thought=thought) | Draft(thought=thought) if thought:
                agent = self._agent(record.agent)
                agent.asked.setdefault(thought, self._now if record.kind == "draw" else agent.before)
            case Plan() as plan:
                self._version(record, plan)
            case Node(node=node, to="running"):
                self._agent(record.agent).steps[node] = self._now
            case Pause(node="") | Resume(node=""):
                work = self._agent(record.agent).work
                if work is not None:
                    self._event(work, f"iact.{record.text('op')}d", {})

    def _begin(self, session: str, record: Record, links: tuple[SpanLink, ...]) -> None:
        """Begin the trace of a session, with the root span above all others."""
        self._session, self._trace = session, trace_id(session)
        agents, self._agents = self._agents, {}
        for old in agents.values():
            self._agents[old.path] = _Agent(old.path, old.caller, old.role, old.mode, old.is_plan)
        root = self._agents.setdefault("/", _Agent("/", "user", "smart"))
        made = self._open(
            record.n, root, "create_agent", root.name, "", self._now, kind="client", links=links
        )
        made.attributes |= self._speaks(root)
        self._root = made.id
        self._ended = [made.told(self._now)]

    def _fork(self, session: str, record: Record, *, goes_on: bool) -> None:
        """Drop the source's unfinished spans without ending them, because they continue there."""
        source, before, tools = self._trace, self._agents, self._tools
        self._tools = {}
        self._callers.clear()
        root = before.get("/")
        link = (root.within if root is not None else "") or self._root
        self._begin(session, record, (SpanLink(self._traces.get(link, source), link),) if source else ())
        if not goes_on:
            return
        for path, old in before.items():
            agent = self._agents[path]
            agent.unread = dict(old.unread)
            for one in (old.work, old.version):
                if one is None:
                    continue
                again = self._again(record, one, self._parent(agent) if one is old.work else agent.within)
                if one is old.work:
                    agent.work, agent.last = again, again.id
                else:
                    agent.version, agent.last_version = again, again.id
        for key, call in tools.items():
            self._tools[key] = self._again(record, call, self._agents[key[0]].within or self._root)

    def _again(self, record: Record, one: _OpenSpan, parent: str) -> _OpenSpan:
        """A span of the source, continued in a fork."""
        return replace(
            one, trace=self._trace, id=span_id(self._session, record.n, one.id), parent=parent, start=self._now, events=[],
            attributes={**one.attributes, "gen_ai.conversation.id": self._session, "iact.record": record.n},
            links=(SpanLink(one.trace, one.id),),
        )  # fmt: skip

    def _spawn(self, record: Record, spawn: Spawn) -> None:
        caller = self._agents.get(spawn.caller)
        role = spawn.model or (caller.role if caller is not None else "smart")
        mode = spawn.plan.mode if spawn.plan is not None else ""
        self._agents[record.agent] = _Agent(record.agent, spawn.caller, role, mode, spawn.plan is not None)

    # --- the work of agents -----------------------------------------------------------------------

    def _agent(self, path: str) -> _Agent:
        known = self._agents.get(path)
        if known is None:
            above = path.rpartition("/")[0] or "/"
            known = self._agents[path] = _Agent(path, "user" if path == "/" else above, "smart")
        return known

    def _message(self, record: Record, agent: _Agent, *, waits: bool = False, text: str = "") -> None:
        """Handle a message to an agent: it begins to work, or reads the message after its current work."""
        agent.unread[record.n] = waits
        if agent.work is None:
            self._start(record.n, agent, self._now, text)

    def _start(self, n: int, agent: _Agent, at: int, text: str = "") -> _OpenSpan:
        """Begin a piece of an agent's work. `n`: the record that causes it."""
        work = self._open(n, agent, "invoke_agent", agent.name, self._parent(agent), at)
        traceparent = self._callers.pop(n, "")
        if traceparent:
            _, work.trace, work.parent, _ = traceparent.split("-")
            work.links = (SpanLink(self._trace, self._root),)
            self._traces[work.id] = work.trace
        work.attributes |= self._speaks(agent)
        if agent.mode:
            work.attributes["iact.plan.mode"] = agent.mode
        if text and self._content:
            work.attributes["gen_ai.input.messages"] = _messages("user", text)
        agent.work, agent.last, agent.begun, agent.last_version = work, work.id, False, ""
        return work

    def _at_work(self, record: Record, at: int | None = None) -> _Agent:
        """The working agent of a record. If no record began its work, it begins with this one."""
        agent = self._agent(record.agent)
        if agent.work is None:
            self._start(record.n, agent, self._now if at is None else min(at, self._now))
        agent.begun = True
        return agent

    def _parent(self, agent: _Agent) -> str:
        """The parent span of an agent's work: its caller's current or last work."""
        caller = self._agents.get(agent.caller)
        return (caller.within if caller is not None else "") or self._root

    def _withdraw(self, agent: _Agent, of: int) -> None:
        if agent.unread.pop(of, None) is not None and not agent.unread and not agent.begun:
            agent.work = None

    def _reply(self, record: Record, reply: Reply) -> None:
        agent = self._agent(record.agent)
        if reply.generation is not None:
            self._wrote(record, reply.generation)
            left = dict(agent.unread)
        else:
            left = {n: True for n, waits in agent.unread.items() if waits}
        agent.unread = left
        if agent.work is None:
            return  # it was dropped with a fork
        if agent.version is not None:
            self._end(agent.version, _error_of(reply))
            agent.version = None
        if self._content:
            agent.work.attributes["gen_ai.output.messages"] = _messages("assistant", record.body)
        if reply.plan:
            agent.work.attributes["iact.plan.outcome"] = reply.plan
            agent.work.attributes["iact.plan.reached"] = verdict_on(reply).reached
        self._end(agent.work, _error_of(reply))
        agent.work = None
        agent.asked.clear()
        agent.steps.clear()
        if left:
            self._start(min(left), agent, self._now)

    # --- models -----------------------------------------------------------------------------------

    def _wrote(self, record: Record, made: Generation) -> None:
        """Handle a text that a model wrote for an agent."""
        at = self._now - made.ms * 1_000_000
        agent = self._at_work(record, at)
        for n in made.took:
            agent.unread.pop(n, None)
            self._callers.pop(n, None)
        attributes: dict[str, Attribute] = {
            "gen_ai.response.finish_reasons": (made.finish,),
            "gen_ai.response.time_to_first_chunk": made.first_ms / 1000,
        }
        waits = [
            SpanEvent("iact.wait", self._now, {"iact.wait.state": one.state, "iact.wait.ms": one.ms})
            for one in made.waits
        ]
        self._chat(record, at, made.model, made.usage, more=attributes, events=waits)

    def _stopped(self, record: Record, stopped: Discard) -> None:
        agent = self._agent(record.agent)
        at = agent.asked.pop(stopped.thought, 0) or self._before(record)
        for n in stopped.read:
            agent.unread.pop(n, None)
        self._chat(record, at, self._model(agent), stopped.usage, error=stopped.reason)

    def _answered(self, record: Record, answer: Ask) -> None:
        """Handle a model's answer to a question about a plan."""
        agent = self._at_work(record)
        put = agent.asked.pop(answer.thought, 0) or agent.steps.get(answer.node, 0) or self._before(record)
        put = max(put, agent.work.start) if agent.work is not None else put
        error = _OTHER if answer.failed else ""
        more: dict[str, Attribute] = {"iact.question": answer.question}
        if answer.question not in _PLANNING:
            self._chat(record, put, answer.model, answer.usage, error=error, more=more)
            return
        assert agent.work is not None
        plan = self._open(record.n, agent, "plan", agent.name, agent.work.id, put)
        plan.attributes |= more
        self._chat(record, put, answer.model, answer.usage, error=error, more=more, parent=plan.id)
        self._end(plan, error)

    def _chat(
        self, record: Record, at: int, model: str, usage: Tokens, *, error: str = "", parent: str = "",
        more: Mapping[str, Attribute] | None = None, events: Iterable[SpanEvent] = (),
    ) -> None:  # fmt: skip
        """Add a span for a model call, from `at` until now."""
        agent = self._at_work(record, at)
        assert agent.work is not None
        at = max(min(at, self._now), agent.work.start)  # milliseconds are rounded
        kind: SpanKind = "internal" if model.startswith(_EMBEDDED) else "client"
        # A question that was asked before the current version began does not belong to that version.
        here = agent.within if agent.version is None or at >= agent.version.start else agent.work.id
        chat = self._open(record.n, agent, "chat", model, parent or here, at, kind=kind)
        chat.attributes |= {
            "gen_ai.provider.name": _provider(model),
            "gen_ai.request.model": model,
            "gen_ai.request.stream": True,
            "gen_ai.usage.input_tokens": usage.prompt,
            "gen_ai.usage.output_tokens": usage.completion,
            "gen_ai.usage.cache_read.input_tokens": usage.cached,
            **(more or {}),
        }
        if usage.estimated:
            chat.attributes["iact.usage.estimated"] = True
        if self._content and record.body:
            chat.attributes["gen_ai.output.messages"] = _messages("assistant", record.body)
        chat.events.extend(events)
        self._end(chat, error)

    # --- plans ------------------------------------------------------------------------------------

    def _version(self, record: Record, plan: Plan) -> None:
        agent = self._at_work(record)
        assert agent.work is not None
        if agent.version is not None:
            self._end(agent.version)
        # The conventions want a name of low cardinality, and models choose the names of plans.
        name = agent.mode or "plan"
        version = self._open(record.n, agent, "invoke_workflow", name, agent.work.id, self._now)
        version.attributes |= {
            "gen_ai.workflow.name": name,
            "iact.plan.version": plan.version,
            "iact.plan.steps": len(plan.add),
        }
        agent.version, agent.last_version = version, version.id

    # --- calls ------------------------------------------------------------------------------------

    def _call(self, record: Record, said: Gate | ClearanceAsk | ClearanceAnswer | Call | Result) -> None:
        """Handle the progress of an action that is not a message to another agent."""
        key = record.agent, said.turn, said.action
        if isinstance(said, Result):
            self._result(record, said, self._tools.pop(key, None))
            return
        call = self._tools.get(key)
        if call is None:
            call = self._tools[key] = self._tool(record, said.function, said.turn, said.action)
        match said:
            case Gate():
                call.denied = not said.allow
                attributes: dict[str, Attribute] = {
                    "iact.gate.allow": said.allow, "iact.gate.by": said.by, "iact.gate.impact": said.impact,
                }  # fmt: skip
                if self._content:
                    attributes["iact.gate.reason"] = said.reason
                self._event(call, "iact.gate.verdict", attributes)
            case ClearanceAsk():
                self._event(
                    call, "iact.clearance.asked", {"iact.clearance.to": said.to, "iact.gate.by": said.rule}
                )
                if self._content:
                    call.attributes["gen_ai.tool.call.arguments"] = json.dumps(
                        dict(said.params), ensure_ascii=False, sort_keys=True
                    )
            case ClearanceAnswer():
                told: dict[str, Attribute] = {
                    "iact.clearance.allow": said.allow,
                    "iact.clearance.by": said.by,
                }
                self._event(call, "iact.clearance.answered", told)
            case Call():
                self._event(call, "iact.call", {})

    def _tool(self, record: Record, function: str, turn: int, action: int) -> _OpenSpan:
        agent = self._at_work(record)
        call = self._open(record.n, agent, "execute_tool", function, agent.within, self._now)
        call.attributes |= {
            "gen_ai.tool.name": function,
            "gen_ai.tool.call.id": f"{turn}.{action}",
            "gen_ai.tool.type": "function",
        }
        return call

    def _result(self, record: Record, result: Result, call: _OpenSpan | None) -> None:
        if result.function in _MEMORY:
            begun = self._before(record) if result.ms is None else self._now - result.ms * 1_000_000
            count = len(result.rows) if result.function == "RECALL" else int(result.status == "ok")
            found = {"gen_ai.memory.record.count": count}
            self._memory(record, _MEMORY[result.function], begun, found, _error(result, denied=False))
            return
        if call is None:
            if "." not in result.function or result.status == "forked":
                return  # a core action without a gate decision, or a call that the source of a fork had begun
            call = self._tool(record, result.function, result.turn, result.action)
        if result.ms is not None:
            call.attributes["iact.call.ms"] = result.ms
        if self._content and record.body:
            call.attributes["gen_ai.tool.call.result"] = record.body
        self._end(call, _error(result, denied=call.denied))

    def _memory(
        self, record: Record, operation: str, at: int, found: Mapping[str, Attribute], error: str
    ) -> None:
        agent = self._at_work(record, at)
        assert agent.work is not None
        at = max(min(at, self._now), agent.work.start)
        asked = self._open(record.n, agent, operation, "", agent.within, at)
        asked.attributes |= found
        if self._content and record.body:
            asked.attributes["gen_ai.memory.records"] = record.body
        self._end(asked, error)

    # --- spans ------------------------------------------------------------------------------------

    def _open(
        self, n: int, agent: _Agent, operation: str, name: str, parent: str, at: int, *,
        kind: SpanKind = "internal", links: tuple[SpanLink, ...] = (),
    ) -> _OpenSpan:  # fmt: skip
        attributes: dict[str, Attribute] = {
            "gen_ai.operation.name": operation,
            "gen_ai.conversation.id": self._session,
            "gen_ai.agent.id": agent.path,
            "gen_ai.agent.name": agent.name,
            "iact.record": n,
        }
        told = f"{operation} {name}".rstrip()
        # A message that is read after the previous work has ended can begin two pieces of work, even at the same time.
        told_apart = f"{agent.path} {operation} {at}"
        if n != self._record:
            self._record, self._opened = n, Counter()
        self._opened[told_apart] += 1
        if self._opened[told_apart] > 1:
            told_apart += f" {self._opened[told_apart]}"
        made = span_id(self._session, n, told_apart)
        trace = self._traces.get(parent, self._trace)
        if trace != self._trace and operation in _ABOVE_OTHERS:
            self._traces[made] = trace
        return _OpenSpan(trace, made, parent, told, kind, at, attributes, links=links)

    def _end(self, one: _OpenSpan, error: str = "") -> None:
        self._ended.append(one.told(self._now, error))

    def _event(self, one: _OpenSpan, name: str, attributes: Mapping[str, Attribute]) -> None:
        one.events.append(SpanEvent(name, self._now, dict(attributes)))

    def _before(self, record: Record) -> int:
        """The time of an agent's previous record. It is used as a start if the actual start is unknown."""
        agent = self._agent(record.agent)
        begun = agent.work.start if agent.work is not None else 0
        return max(agent.before, begun) or self._now

    def _model(self, agent: _Agent) -> str:
        terms = self._models.get(agent.role) or self._models.get("smart")
        return terms.model if terms is not None else "unknown"

    def _speaks(self, agent: _Agent) -> dict[str, Attribute]:
        model = self._model(agent)
        return {"gen_ai.provider.name": _provider(model), "gen_ai.request.model": model}


def _provider(model: str) -> str:
    """The provider of a model's API. Records name no endpoint, and all endpoints speak OpenAI's API."""
    return "iact" if model.startswith(_EMBEDDED) else "openai"


def _error(result: Result, *, denied: bool) -> str:
    """The kind of error that a call ended with, or an empty string if it succeeded."""
    if result.status == "ok":
        return ""
    if denied:
        return "denied"
    named = (result.data or {}).get("type")
    return named if result.status == "error" and isinstance(named, str) and named else result.status


def _error_of(reply: Reply) -> str:
    """What kept work from reaching its goal, as an error type; empty if nothing did."""
    outcome = outcome_of(reply)
    if outcome == "reached":
        return ""
    return reply.bound or (reply.status if reply.status != "ok" else outcome)


def _messages(role: str, text: str) -> str:
    """A message in the format of the conventions."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


def spans(records: Iterable[Record], *, content: bool = False) -> tuple[Span, ...]:
    """The spans of a session, in the order in which they ended. Unfinished ones come last."""
    fold = SpanFold(content=content)
    ended = [span for record in records for span in fold.take(record)]
    # What the source of a fork did belongs to the source.
    own = (span for span in ended if span.attributes["gen_ai.conversation.id"] == fold.session)
    return *own, *fold.under_way()
