"""A fold from records and live text to updates of the Agent Client Protocol.

Records are authoritative. Streamed text is sent before its record, and the record adds only what is missing, so the same
fold works for loaded and for watched sessions. The root's text without its actions becomes messages; actions, and
everything below the root, become tool calls. A called agent is a tool call that stays open until the agent replies, and
contains what the agent wrote. Nothing here waits, asks or sends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    FileEditToolCallContent,
    PlanEntry,
    SessionInfoUpdate,
    TextContentBlock,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

from iact.core.ports import JSON
from iact.core.records.calls import Call, ClearanceAsk, Gate, Result
from iact.core.records.control import Inject
from iact.core.records.dialogue import Discard, Generation, Reply, Say, Turn, Upload
from iact.core.records.forms import FormAnswer, FormAsk
from iact.core.records.hosts import HostAnswer, HostAsk, rule_of
from iact.core.records.plans import Extend, Fire, Node, Plan
from iact.core.records.record import Record
from iact.core.stored.listing import short_title
from iact.core.views.ending import outcome_of
from iact.core.views.events import Delta, OutputEvent
from iact.core.views.question_text import asks_title
from iact.core.views.text import (
    ActionBlock,
    IsAction,
    argument,
    looks_like_action,
    pieces,
    without_actions,
)
from iact.faces.acp.files import location
from iact.faces.failure import failure_of
from iact.faces.root_text import CertainText, prose

Update: TypeAlias = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | SessionInfoUpdate
    | UsageUpdate
)
Content: TypeAlias = ContentToolCallContent | FileEditToolCallContent
"""What a tool call shows: a text, or the change of a file."""
ToolKind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "fetch", "other"]
Status: TypeAlias = Literal["pending", "in_progress", "completed", "failed"]

_ROOT: Final = "/"
_TITLE: Final = 120
"""The maximum number of characters in the title of a tool call."""
_LONGEST: Final = 20_000
"""The maximum number of characters that a tool call shows. The journal has everything."""
_RUNNING: Final = 4_000
"""The maximum number of characters of a tool's output that are shown while it runs."""
_MODULES: Final[Mapping[str, ToolKind]] = {
    "shell": "execute", "python": "execute", "app": "execute", "web": "fetch", "browser": "fetch",
}  # fmt: skip
_VERBS: Final[Mapping[str, ToolKind]] = {
    "read": "read", "list": "read", "show": "read", "write": "edit", "edit": "edit", "patch": "edit",
    "append": "edit", "delete": "delete", "remove": "delete", "move": "move", "rename": "move", "search": "search",
    "find": "search", "grep": "search",
}  # fmt: skip
_STEP: Final[Mapping[str, Literal["in_progress", "completed"]]] = {
    "running": "in_progress", "waiting_human": "in_progress", "failed_retryable": "in_progress",
    "executed": "completed", "failed": "completed", "cancelled": "completed", "skipped": "completed",
}  # fmt: skip
"""The protocol's status for a step's state. Its plans have no failed status; states not listed are pending."""
_FILES: Final = "files."
"""How the names of functions begin that work on a file."""
_UNWELL: Final = frozenset({"failed", "cancelled", "skipped"})


def tool_call_id(agent: str, turn: int, action: int) -> str:
    """The stable id of an action."""
    return f"{agent}#{turn}.{action}"


def form_id(ask: int) -> str:
    """The id of a module's question."""
    return f"form#{ask}"


def host_id(ask: int) -> str:
    """The id of a question about a host."""
    return f"host#{ask}"


def kind_of(function: str) -> ToolKind:
    """The kind of tool that a function is, for an editor's icon."""
    module, _, verb = function.partition(".")
    return _MODULES.get(module) or _VERBS.get(verb, "other")


def said(text: str) -> TextContentBlock:
    """Text as a block."""
    return TextContentBlock(type="text", text=text)


def shown(text: str, most: int = _LONGEST) -> ContentToolCallContent:
    """Text of a tool call. If it is long, only its end."""
    cut = text if len(text) <= most else f"… ({len(text) - most} characters before this)\n{text[-most:]}"
    return ContentToolCallContent(type="content", content=said(cut))


class _Speech:
    """What was sent of the text that the root is writing."""

    def __init__(self) -> None:
        self.text = ""
        self.certain = CertainText()
        self.thought = ""
        self.deaf = False
        """Whether some of it was missed, so the rest is sent with its record."""


class Updates:
    """The updates of one session. It must be given every record in order, and the streamed text."""

    def __init__(
        self,
        session: str,
        *,
        is_action: Callable[[str], IsAction | None] = lambda path: None,
        windows: Mapping[str, int] | None = None,
        folder: Path | None = None,
    ) -> None:
        """`is_action`: which words begin an action of an agent. `windows`: the models' context windows in tokens, by role.
        `folder`: where paths of the session's files are.
        """
        self._session = session
        self._is_action = is_action
        self._windows = windows or {}
        self._folder = folder
        self._messages = 0
        self._has_title = False
        """Whether the client knows the session's title."""
        self._speech = _Speech()
        self._turns: dict[int, str] = {}
        """What the root wrote beside its actions in each turn of this task, by record."""
        self._blocks: dict[str, tuple[int, dict[int, ActionBlock]]] = {}
        """The record and the actions of each agent's newest turn."""
        self._fired: dict[tuple[str, int, int], Fire] = {}
        self._begun: set[str] = set()
        """Tool calls that were reported and have not ended."""
        self._children: dict[str, tuple[str, list[str]]] = {}
        """Called agents and plans: the tool call, and what they have written since."""
        self._calls: dict[int, tuple[str, str]] = {}
        """Running calls by record: the tool call, and the end of its output."""
        self._plans: dict[str, dict[str, PlanEntry]] = {}
        self._edits: dict[str, tuple[FileEditToolCallContent, ...]] = {}
        """The changes of files by each running call, as far as they are shown."""

    # --- live text ------------------------------------------------------------------------------

    def lost(self) -> None:
        """Note that pieces of text were missed. The root's current text is then sent with its record."""
        self._speech.deaf = True

    def write(self, delta: Delta) -> list[Update]:
        """Handle a piece of streamed text. Only the root's is sent, as a message or a thought; others follow when done."""
        if delta.agent != _ROOT or self._speech.deaf:
            return []
        if delta.restart:
            self._next_message()
        if not delta.text:
            return []
        if delta.thought:
            self._speech.thought += delta.text
            return [self._thought(delta.text)]
        certain = self._speech.certain.feed(delta.text)
        if not self._speech.text:
            certain = certain.lstrip()
        self._speech.text += certain
        return [self._message(certain)] if certain else []

    def prints(self, event: OutputEvent) -> list[Update]:
        """Handle the output of a running tool."""
        if event.call not in self._calls:
            return []
        name, before = self._calls[event.call]
        printed = (before + event.text)[-_RUNNING:]
        self._calls[event.call] = name, printed
        return [_progress(name, event.agent, "in_progress", [shown(printed)])]

    # --- records --------------------------------------------------------------------------------

    def take(self, record: Record, *, replayed: bool = False) -> list[Update]:
        """Handle the next record. `replayed`: the client did not see it happen, so the user's messages are sent as well."""
        content = record.content
        match content:
            case Say() if not replayed:
                return self._titled(record)
            case Say() | Upload() | Inject() if replayed:
                self._has_title = self._has_title or isinstance(content, Say)
                return self._user(record)
            case Turn() | Reply():
                return self._spoke(record, content, replayed=replayed)
            case Discard() if record.agent == _ROOT:
                rest = self._rest(prose(record.body))
                self._next_message()
                return rest
            case Fire():
                self._fired[record.agent, content.turn, content.action] = content
            case ClearanceAsk() if content.to == "person":
                return self._at(record.agent, content.turn, content.action, content.function, "pending")
            case Gate(allow=False):
                return self._at(
                    record.agent, content.turn, content.action, content.function, "failed",
                    [shown(f"Denied by {content.by}: {content.reason}".rstrip(": "))],
                )  # fmt: skip
            case Call():
                return self._called(record, content)
            case Result():
                return self._ended(record, content)
            case HostAsk():
                title = f"{content.module} wants to reach {rule_of(content.host, content.port)}"
                self._begun.add(host_id(record.n))
                return [_start(host_id(record.n), record.agent, title, "fetch", "pending")]
            case HostAnswer():
                return self._end(
                    host_id(content.ask), record.agent, "completed" if content.allow else "failed"
                )
            case FormAsk():
                self._begun.add(form_id(record.n))
                title = asks_title(content)
                return [_start(form_id(record.n), record.agent, title, "other", "pending")]
            case FormAnswer():
                done = content.decision == "accept"
                return self._end(form_id(content.ask), record.agent, "completed" if done else "failed")
            case Plan() | Extend():
                return self._planned(record.agent, content)
            case Node():
                return self._stepped(record.agent, content)
        return []

    # --- what is said ---------------------------------------------------------------------------

    def _titled(self, record: Record) -> list[Update]:
        """The title of a new session, as in the list of sessions. A client that loads a session has it from the list."""
        if self._has_title:
            return []
        self._has_title = True
        return [SessionInfoUpdate(session_update="session_info_update", title=short_title(record.body))]

    def _user(self, record: Record) -> list[Update]:
        text = record.body
        if isinstance(record.content, Inject) and record.agent != _ROOT:
            text = f"(to {record.agent}) {text}"
        if not text:
            return []
        return [UserMessageChunk(session_update="user_message_chunk", content=said(text))]

    def _spoke(self, record: Record, content: Turn | Reply, *, replayed: bool) -> list[Update]:
        if record.agent != _ROOT:
            return self._below(record, content)
        generation = content.generation
        updates: list[Update] = []
        if generation is not None and generation.reasoning.startswith(self._speech.thought):
            rest = generation.reasoning[len(self._speech.thought) :]
            updates += [self._thought(rest)] if rest else []
        # The prompt that is waiting for the answer ends with the failure. A loaded session has no such prompt.
        fails = not replayed and failure_of(record) is not None
        updates += [] if fails else self._rest(self._said_with(record))
        self._next_message()
        if isinstance(content, Turn):
            self._keep_blocks(record)
        else:
            self._plans = {path: entries for path, entries in self._plans.items() if not _over(entries)}
        return [*updates, *self._usage(generation)]

    def _said_with(self, record: Record) -> str:
        """What the root says with a turn or a reply. An answer that it wrote in an earlier turn is said once."""
        if isinstance(record.content, Turn):
            told = self._without_actions(record)
            self._turns[record.n] = told
            return told

        body = record.body
        of = record.content.of if isinstance(record.content, Reply) else 0
        said_before = self._turns.get(of) == body
        self._turns.clear()
        return "" if said_before else body

    def _without_actions(self, record: Record) -> str:
        """What an agent says in a turn to people, who see its actions as tool calls."""
        return without_actions(record.body, self._is_action(record.agent) or looks_like_action)

    def _rest(self, body: str) -> list[Update]:
        """The part of a record's text that was not sent yet."""
        body = body.strip()
        sent = self._speech.text
        if sent.startswith(body):
            return []  # all or more of it was sent: the record's text was cut where an action ended
        if not body.startswith(sent):
            self._next_message()
            return [self._message(body)]
        return [self._message(body[len(sent) :])]

    def _below(self, record: Record, content: Turn | Reply) -> list[Update]:
        if isinstance(content, Turn):
            self._keep_blocks(record)
        if record.agent not in self._children:
            return []
        name, written = self._children[record.agent]
        told = self._without_actions(record) if isinstance(content, Turn) else record.body
        if told:
            written.append(told)
        if isinstance(content, Turn):
            return [_progress(name, record.agent, "in_progress", [shown("\n\n".join(written))])]
        del self._children[record.agent]
        well = isinstance(content, Reply) and outcome_of(content) == "reached"
        status: Status = "completed" if well else "failed"
        return self._end(name, record.agent, status, [shown("\n\n".join(written))])

    def asks(self, text: str) -> list[Update]:
        """A question to the person that their next message answers, as a message of its own."""
        self._next_message()
        question = self._message(text)
        self._next_message()
        return [question]

    def _next_message(self) -> None:
        self._messages += 1
        self._speech = _Speech()

    def _message(self, text: str) -> AgentMessageChunk:
        return AgentMessageChunk(
            session_update="agent_message_chunk", content=said(text), message_id=self._message_id()
        )

    def _thought(self, text: str) -> AgentThoughtChunk:
        return AgentThoughtChunk(
            session_update="agent_thought_chunk", content=said(text), message_id=self._message_id()
        )

    def _message_id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self._session}/{self._messages}"))

    def _usage(self, generation: Generation | None) -> list[Update]:
        if generation is None or generation.role not in self._windows:
            return []
        used = generation.usage.prompt + generation.usage.completion
        window = self._windows[generation.role]
        return [UsageUpdate(session_update="usage_update", used=used, size=window)]

    # --- tool calls -----------------------------------------------------------------------------

    def _keep_blocks(self, record: Record) -> None:
        is_action = self._is_action(record.agent) or looks_like_action
        found = [one for one in pieces(record.body, is_action) if isinstance(one, ActionBlock)]
        self._blocks[record.agent] = record.n, {one.index: one for one in found}

    def _at(
        self,
        agent: str,
        turn: int,
        action: int,
        function: str,
        status: Status,
        content: Sequence[Content] | None = None,
    ) -> list[Update]:
        """Report an action if it is new, otherwise its current status."""
        name = tool_call_id(agent, turn, action)
        over = status in ("completed", "failed")
        if name in self._begun:
            return (
                self._end(name, agent, status, content) if over else [_progress(name, agent, status, content)]
            )
        if not over:
            self._begun.add(name)
        title, given, place = self._named(agent, turn, action, function)
        return [_start(name, agent, title, kind_of(function), status, content, given, place)]

    def _named(
        self, agent: str, turn: int, action: int, function: str
    ) -> tuple[str, JSON, ToolCallLocation | None]:
        """An action's title, its input as its agent wrote it, and the file that it names."""
        above = "" if agent == _ROOT else f"{agent}: "
        fired = self._fired.pop((agent, turn, action), None)
        if fired is not None:
            return _line(f"{above}{fired.node}: {function}"), {"step": fired.node}, None
        newest, blocks = self._blocks.get(agent, (0, {}))
        block = blocks.get(action) if newest == turn else None
        if block is None:
            return _line(f"{above}{function}"), None, None

        first = next((one.strip() for one in block.body.splitlines() if one.strip()), "")
        told = " ".join(one for one in (function, block.arguments, first) if one)
        given: JSON = {"arguments": block.arguments, "body": block.body}
        return _line(f"{above}{told}"), given, self._place(function, block)

    def _place(self, function: str, block: ActionBlock) -> ToolCallLocation | None:
        """The file that an action of the module `files` names."""
        if self._folder is None or not function.startswith(_FILES):
            return None
        path = argument(block, "path")
        return location(self._folder, path) if path else None

    def changed(
        self,
        calls: Sequence[tuple[str, int, int]],
        places: Sequence[ToolCallLocation],
        edits: Sequence[FileEditToolCallContent] = (),
    ) -> list[Update]:
        """Report files that running calls changed. `calls`: by agent, turn and action; `edits`: changes that are shown."""
        updates: list[Update] = []
        for agent, turn, action in calls:
            name = tool_call_id(agent, turn, action)
            if name not in self._begun:
                continue
            self._edits[name] = (*self._edits.get(name, ()), *edits)
            updates.append(_progress(name, agent, "in_progress", [*self._edits[name]], places))
        return updates

    def _called(self, record: Record, call: Call) -> list[Update]:
        name = tool_call_id(record.agent, call.turn, call.action)
        self._calls[record.n] = name, ""
        if call.to:
            self._children[call.to] = name, []
        return self._at(record.agent, call.turn, call.action, call.function, "in_progress")

    def _ended(self, record: Record, result: Result) -> list[Update]:
        self._calls.pop(result.call, None)
        name = tool_call_id(record.agent, result.turn, result.action)
        if result.call == 0 and name not in self._begun:
            return []  # it was denied, which was reported, or it only concerns the agent
        for path in [path for path, (called, _) in self._children.items() if called == name]:
            if result.status == "ok":
                return []  # the call was passed to an agent; it ends with that agent's reply
            del self._children[path]
        text = record.body
        if not text and result.blob is not None:
            text = f"{result.blob.size} bytes of {result.media or 'text'}"
        status: Status = "completed" if result.status == "ok" else "failed"
        return self._at(
            record.agent, result.turn, result.action, result.function, status, [shown(text)] if text else None
        )

    def _end(
        self, name: str, agent: str, status: Status, content: Sequence[Content] | None = None
    ) -> list[Update]:
        if name not in self._begun:
            return []
        self._begun.discard(name)
        # What a call shows at its end replaces what it showed before.
        edits = self._edits.pop(name, ())
        return [_progress(name, agent, status, [*(content or ()), *edits])]

    # --- plans ----------------------------------------------------------------------------------

    def _planned(self, path: str, content: Plan | Extend) -> list[Update]:
        entries = self._plans.setdefault(path, {})
        for step in content.add:
            node = str(step.get("id", ""))
            entries[node] = PlanEntry(
                content=_step_text(step), priority="medium", status="pending",
                field_meta={"iact": {"path": path, "step": node}},
            )  # fmt: skip
        for node in content.drop if isinstance(content, Plan) else ():
            entries.pop(node, None)
        return [self._plan()]

    def _stepped(self, path: str, content: Node) -> list[Update]:
        entry = self._plans.get(path, {}).get(content.node)
        if entry is None:
            return []
        status = _STEP.get(content.to, "pending")
        why = (
            f" ({content.to}{f': {content.detail}' if content.detail else ''})"
            if content.to in _UNWELL
            else ""
        )
        if entry.status == status and not why:
            return []
        changed = entry.model_copy(update={"status": status, "content": _line(entry.content + why, 400)})
        self._plans[path][content.node] = changed
        return [self._plan()]

    def _plan(self) -> AgentPlanUpdate:
        entries = [one for entries in self._plans.values() for one in entries.values()]
        return AgentPlanUpdate(session_update="plan", entries=entries)


def _over(entries: Mapping[str, PlanEntry]) -> bool:
    return all(one.status == "completed" for one in entries.values())


def _step_text(step: Mapping[str, JSON]) -> str:
    """A step's purpose, in words."""
    node = str(step.get("id", ""))
    about = next((str(step[one]) for one in ("task", "call") if step.get(one)), "")
    return _line(f"{node}: {about}" if about else node, 300)


def _line(text: str, most: int = _TITLE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _start(
    name: str,
    agent: str,
    title: str,
    kind: ToolKind,
    status: Status,
    content: Sequence[Content] | None = None,
    given: JSON = None,
    place: ToolCallLocation | None = None,
) -> ToolCallStart:
    return ToolCallStart(
        session_update="tool_call", tool_call_id=name, title=title, kind=kind, status=status,
        content=[*content] if content else None, locations=[place] if place is not None else None,
        raw_input=given, field_meta={"iact": {"path": agent}},
    )  # fmt: skip


def _progress(
    name: str,
    agent: str,
    status: Status,
    content: Sequence[Content] | None = None,
    places: Sequence[ToolCallLocation] = (),
) -> ToolCallProgress:
    return ToolCallProgress(
        session_update="tool_call_update", tool_call_id=name, status=status,
        content=[*content] if content else None, locations=[*places] or None,
        field_meta={"iact": {"path": agent}},
    )  # fmt: skip
