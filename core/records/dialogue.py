"""What agents hear and say: messages, turns and replies, and what shapes their contexts."""

# Annotations are objects here, and not strings: the codec reads them.

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from iact.core.errors import ModelFault
from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import DERIVED, OUTCOME, Derived, Group, Mark, Outcome, Since
from iact.core.records.parts import Blob, MemorySource, PlanTerms, Seen, SeenFiles, Tokens, Verdict, Wait
from iact.core.records.person import PersonContent, PersonMessage
from iact.core.records.ways import Way

DiscardReason: TypeAlias = Literal["pause", "interrupt", "cancel", "restart", "changed", "summary"]
"""Why a generation does not count: a pause, a person or a cancel ended it, its endpoint started over, the available
functions changed while the model wrote its first reply, or it is a summary that can't be used."""

LastTurn: TypeAlias = Literal["", "turns", "tokens"]
"""Why a turn is the agent's last one, if it is."""

Held: TypeAlias = Literal["", "children", "unread", "thoughts"]
"""Why a text is not a reply yet: children of its agent are at work; it holds something that was perhaps meant to be run
and was not, and its agent is asked; or it is empty, because the model only reasoned, and its agent is asked for a reply
(both since format 1.3)."""

BoundName: TypeAlias = Literal["", "turns", "tokens", "time", "context", "loop", "money", "quota"]
"""Which bound of a task was hit: turns, tokens, time, the model's window, or a loop; the session's money, or the
user's model quota."""


_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(PersonMessage):
    """The user says something to the root."""

    KIND: ClassVar[str] = "say"
    BODY: ClassVar[Mark | None] = OUTCOME

    mode: Annotated[Outcome[Way], Since("1.2")] = "dialogue"
    """How to work on the message. In every mode but `dialogue`, it is the goal of a plan, whose report is the root's
    reply."""
    plan_first: Annotated[Outcome[bool], Since("1.2")] = False
    """Whether the plan waits for a person before it begins."""
    kept: Annotated[Outcome[tuple[str, ...] | None], Since("1.2")] = None
    """The plans that people kept, if they differ from those that the session knows: the name of each, and behind it the
    parameters for which it needs values."""
    tools: Annotated[Outcome[tuple[str, ...] | None], Since("1.2")] = None
    """The tools of the front end that sent the message, if they differ from those that the session knows."""
    waits: Annotated[Derived[bool], Since("1.2")] = False
    """Whether the message is read only after the root finishes its current answer."""
    client: Annotated[Outcome[int], Since("1.3")] = 0
    """How many characters at its beginning are not the user's: they tell of an earlier chat that only the client knows, and
    that this program did not record. All of them, if the client passes on what others write."""
    traceparent: Annotated[Outcome[str], Since("1.3")] = ""
    """The trace of the program that sent it, which the work on it continues, in the form of W3C's `traceparent`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Content):
    """How to work on a message that was sent in the mode `auto`. The body is the model's assessment of it."""

    KIND: ClassVar[str] = "choose"
    BODY: ClassVar[Mark | None] = OUTCOME

    of: Derived[int]
    """The record of the message."""
    mode: Derived[Way]
    """How to work on the message."""
    why: Derived[str]
    """The reason, for people."""
    role: Derived[str]
    """The role of the model that was asked."""
    model: Derived[str]
    """The model's name."""
    digest: Derived[str]
    """The digest of the question."""
    usage: Outcome[Tokens]
    """The tokens that asking took, including those spent while the message was still being written."""
    failed: Outcome[str] = ""
    """Why no model could assess the message."""
    failures: Annotated[Outcome[Mapping[str, float] | None], Since("1.3")] = None
    """In what share of the user's earlier sessions the way of a row of the table did not reach the goal, by row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(PersonContent):
    """The user uploads a file: an immutable variable of the root. The body is what the root reads of it."""

    KIND: ClassVar[str] = "upload"
    BODY: ClassVar[Mark | None] = DERIVED

    file: Outcome[str]
    """The file's name."""
    var: Derived[str]
    """The variable that holds it."""
    media: Outcome[str]
    """The file's media type."""
    blob: Outcome[Blob]
    """The file's content."""
    by: Derived[Literal["user"]]
    """Who uploaded it."""
    path: Annotated[Outcome[str], Since("1.3")] = ""
    """The file of the workspace that it becomes. Empty if it becomes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What is recorded about a text that a model wrote in answer to an agent's context."""

    model: Derived[str]
    """The model's name."""
    role: Derived[str]
    """The role that the model plays for the agent."""
    context: Derived[str]
    """The digest of everything that the model was sent."""
    took: Outcome[tuple[int, ...]]
    """Records of the messages that had arrived when the turn began."""
    seen: Outcome[Seen]
    """The facts about the world that the agent was shown when the turn began."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    ms: Outcome[int]
    """Milliseconds until the last piece."""
    first_ms: Outcome[int]
    """Milliseconds until the first piece."""
    finish: Outcome[Literal["stop", "length", "cut"]]
    """How it ended: on its own, at the endpoint's limit, or because the core cut it off."""
    notes: Derived[Mapping[str, int] | tuple[str, ...] | None] = None
    """Functions whose documentation came with the context, each with the message that it followed (0: feedback). In
    format 1.0 this is a list, and the documentation was always at the front."""
    full: Derived[int] = 0
    """How full the agent's context is, in percent, if the agent was told so in this turn."""
    cut: Outcome[int] = 0
    """How many characters were cut off."""
    reasoning: Annotated[Outcome[str], Since("1.2")] = ""
    """The model's reasoning before it replied. It never enters a context, and no action in it is carried out."""
    waits: Annotated[Outcome[tuple[Wait, ...]], Since("1.2")] = ()
    """What delayed the reply of the model's endpoint: failed attempts, a rate limit, silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Content):
    """A model's text that contains actions, or that is not an answer yet."""

    KIND: ClassVar[str] = "turn"
    BODY: ClassVar[Mark | None] = OUTCOME

    held: Derived[Held] = ""
    """Why a text that could be a reply is none yet."""
    generation: Annotated[Generation, Group()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Content):
    """An agent's or a plan's message to its caller. It has a generation if a model wrote it."""

    KIND: ClassVar[str] = "reply"
    BODY: ClassVar[Mark | None] = OUTCOME

    to: Derived[str]
    """The caller's path; "user" for the root's."""
    status: Outcome[Literal["ok", "failed", "cancelled", "bound"]]
    """Whether it is an answer; or else the model or plan failed, it was cancelled, or a bound ended its work."""
    bound: Outcome[BoundName] = ""
    """The bound that ended it."""
    fault: Annotated[Outcome[ModelFault], Since("1.3")] = ""
    """The kind of failure, if its model failed."""
    last: Derived[LastTurn] = ""
    """Why this was the agent's last turn. The agent was told so."""
    generation: Annotated[Generation | None, Group()] = None
    asks: Annotated[Derived[bool], Since("1.3")] = False
    """Whether a child asks its caller something, instead of an answer."""
    of: Annotated[Derived[int], Since("1.3")] = 0
    """The turn in which the text was written, if it was a turn first: actions were done beside it, or its agent was
    asked whether it is its answer."""
    plan: Derived[Literal["", "concluded", "partial", "failed", "stopped"]] = ""
    """How a plan ended that was not cancelled; for the root, the plan whose report it passes on."""
    verdict: Annotated[Derived[Verdict | None], Since("1.3")] = None
    """Whether the plan's goal was reached, and why; for the root, as with `plan`."""
    answer: Derived[JSON] = None
    """The plan's answer, if a model gave one. Otherwise the results of its last steps are the answer."""
    missing: Derived[Mapping[str, str] | None] = None
    """Steps of the plan that produced nothing, and why."""
    ended_by: Derived[str] = ""
    """The bound that ended the plan."""
    shortfall: Annotated[Derived[str], Since("1.2")] = ""
    """Why the judge considers the plan's goal not reached."""
    confidence: Annotated[Derived[float | None], Since("1.2")] = None
    """The judge's confidence in whether the goal was reached, from 0 to 1."""
    warnings: Derived[tuple[str, ...]] = ()
    """Warnings about how the plan ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard(Content):
    """A generation that was stopped. If that ended its agent's work, or a person stopped it, its agent reads the text. No action in it is done."""

    KIND: ClassVar[str] = "discard"
    BODY: ClassVar[Mark | None] = OUTCOME

    reason: Outcome[DiscardReason]
    """Why it was stopped."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    read: Annotated[Outcome[tuple[int, ...]], Since("1.2")] = ()
    """Records of the messages that the model had read."""
    thought: Annotated[Derived[int], Since("1.2")] = 0
    """For an answer about a plan that is requested again: the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn(Content):
    """A child begins; the record's agent is its path. The body is its role."""

    KIND: ClassVar[str] = "spawn"
    BODY: ClassVar[Mark | None] = DERIVED

    caller: Derived[str]
    """The child's caller."""
    model: Derived[str] = ""
    """The role of the model that the child uses. Empty: its caller's."""
    allow: Derived[tuple[str, ...] | None] = None
    """Patterns of the functions that it may use, among those that its caller may use."""
    intent: Derived[float | None] = None
    """The most impact that its calls may have, if that is less than its caller's intent."""
    fork: Derived[bool] = False
    """Whether it begins with its caller's history."""
    plan: Derived[PlanTerms | None] = None
    """Set if the child is a plan and not an agent."""
    history: Annotated[Outcome[Mapping[str, float] | None], Since("1.2")] = None
    """For a plan with a profile: how often calls failed in this user's sessions, by function and argument names."""
    template: Annotated[Outcome[str], Since("1.2")] = ""
    """The content of the kept plan from which it is made."""
    files: Annotated[Outcome[SeenFiles | None], Since("1.3")] = None
    """For a plan: the files of the workspace, for its planner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Content):
    """Statements from memory for the agent's next turn. The body has one line for each, as the agent reads it."""

    KIND: ClassVar[str] = "recall"
    BODY: ClassVar[Mark | None] = OUTCOME

    rows: Outcome[tuple[MemorySource, ...]]
    """The source of each memory, in the same order."""
    meant: Outcome[Mapping[str, int] | None] = None
    """Functions that are related in meaning to the agent's input, each with the record of the message it matches. Up to
    format 1.2, these were documented."""
    ms: Outcome[int]
    """How many milliseconds the memory took to answer."""
    standing: Annotated[Outcome[bool], Since("1.3")] = False
    """Whether every agent of the session is told them in its first message. They are chosen once, before the first
    turn; the record is then the root's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw(Content):
    """An agent takes more of the budget of the agents above it, before it asks its model."""

    KIND: ClassVar[str] = "draw"

    tokens: Derived[int]
    """How many tokens."""
    seen: Annotated[Outcome[Seen | None], Since("1.2")] = None
    """For an agent: the facts about the world that it would be shown in the turn that begins."""
    thought: Annotated[Outcome[int], Since("1.2")] = 0
    """For a plan: the question that is asked now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress(PersonContent):
    """An agent's history is cut. The body is a model's summary of it; it is empty if no summary was fit."""

    KIND: ClassVar[str] = "compress"
    BODY: ClassVar[Mark | None] = OUTCOME

    role: Derived[str]
    """The role of the model that summarized it."""
    model: Derived[str]
    """The model's name."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    by: Annotated[Outcome[Literal["", "user"]], Since("1.2")] = ""
    """Who asked for it. Empty: the core did, for lack of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distill(Content):
    """A model was asked what of the root's messages from people is worth remembering. The body is its answer."""

    KIND: ClassVar[str] = "distill"
    BODY: ClassVar[Mark | None] = OUTCOME

    since: Derived[int]
    """How many of these messages had been distilled before."""
    until: Outcome[int]
    """How many have been with it."""
    role: Derived[str]
    """The role of the model."""
    model: Derived[str]
    """The model's name."""
    usage: Outcome[Tokens]
    """The tokens that it took."""


def is_traceparent(text: str) -> bool:
    """Whether a text is a trace in the form of W3C's `traceparent`, version 00."""
    return _TRACEPARENT.fullmatch(text) is not None
