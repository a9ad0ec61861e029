"""What agents hear and say: messages, turns and replies, and what shapes the context in which they speak."""

# Annotations are objects here, and not strings: the codec reads them.

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

from iact.core.ports import JSON
from iact.core.records.content import Content
from iact.core.records.mark import DERIVED, OUTCOME, Derived, Group, Mark, Outcome, Since
from iact.core.records.parts import Blob, MemorySource, PlanTerms, Seen, Tokens, Wait
from iact.core.records.person import PersonContent
from iact.core.records.ways import Way

DiscardReason: TypeAlias = Literal["pause", "interrupt", "cancel", "restart", "changed"]
"""Why a generation was stopped: a pause, a person or a cancel ended it, its endpoint began again, or the
functions on offer changed while the model wrote its first reply."""

LastTurn: TypeAlias = Literal["", "turns", "tokens"]
"""Why a turn is an agent's last one, if it is."""

BoundName: TypeAlias = Literal["", "turns", "tokens", "time", "context", "loop", "money", "quota"]
"""Which bound of a task was hit: its turns, its tokens, its time, the model's window, or it went round in circles; the
session's money, or what its user may use of models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(PersonContent):
    """The user says something to the root."""

    KIND: ClassVar[str] = "say"
    BODY: ClassVar[Mark | None] = OUTCOME

    mode: Annotated[Outcome[Way], Since("1.2")] = "dialogue"
    """How it is to be worked on; but for a dialogue it is the goal of a plan, whose report is the root's reply."""
    plan_first: Annotated[Outcome[bool], Since("1.2")] = False
    """The plan waits for a person before it begins."""
    kept: Annotated[Outcome[tuple[str, ...] | None], Since("1.2")] = None
    """The names of the plans that people kept, if they are others than the session knows."""
    tools: Annotated[Outcome[tuple[str, ...] | None], Since("1.2")] = None
    """The tools of the front end that it was said with, if they are others than the session knows."""
    waits: Annotated[Derived[bool], Since("1.2")] = False
    """It is read when the answer that the root is at is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose(Content):
    """How a message is worked on that was said in the mode `auto`. The body is what a model says that it is like."""

    KIND: ClassVar[str] = "choose"
    BODY: ClassVar[Mark | None] = OUTCOME

    of: Derived[int]
    """The record of the message."""
    mode: Derived[Way]
    """How it is worked on."""
    why: Derived[str]
    """Why, for people."""
    role: Derived[str]
    """The role of the model that was asked."""
    model: Derived[str]
    """The model's name."""
    digest: Derived[str]
    """The digest over the question."""
    usage: Outcome[Tokens]
    """The tokens that asking took, also while the message was still being written."""
    failed: Outcome[str] = ""
    """Why no model could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload(PersonContent):
    """The user hands over a file: an immutable variable of the root's. The body is what the root reads of it."""

    KIND: ClassVar[str] = "upload"
    BODY: ClassVar[Mark | None] = DERIVED

    file: Outcome[str]
    """Its name."""
    var: Derived[str]
    """The variable that holds it."""
    media: Outcome[str]
    """Its type."""
    blob: Outcome[Blob]
    """Its content."""
    by: Derived[Literal["user"]]
    """Who handed it over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What is told of a text that a model wrote in answer to an agent's context."""

    model: Derived[str]
    """The model's name."""
    role: Derived[str]
    """The role that it plays for the agent."""
    context: Derived[str]
    """The digest over everything that it was sent."""
    took: Outcome[tuple[int, ...]]
    """Records of the messages that had arrived when the turn began."""
    seen: Outcome[Seen]
    """What the agent was shown of the world when the turn began."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    ms: Outcome[int]
    """Milliseconds until its last piece."""
    first_ms: Outcome[int]
    """Milliseconds until its first piece."""
    finish: Outcome[Literal["stop", "length", "cut"]]
    """How it ended: by itself, at the endpoint's limit, or where the core cut it off."""
    notes: Derived[Mapping[str, int] | tuple[str, ...] | None] = None
    """Functions whose documentation came with the context, each with the message behind which it stood (0: feedback).

    In format 1.0 a list; all stood in front then."""
    full: Derived[int] = 0
    """How full its context is, in percent, if the agent was told so now."""
    cut: Outcome[int] = 0
    """How many characters were cut off."""
    reasoning: Annotated[Outcome[str], Since("1.2")] = ""
    """What the model thought before it replied. It never enters a context, and nothing in it acts."""
    waits: Annotated[Outcome[tuple[Wait, ...]], Since("1.2")] = ()
    """What kept the model's endpoint from replying: failed attempts, a rate limit, silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn(Content):
    """A model's text that holds actions, or that is no answer yet."""

    KIND: ClassVar[str] = "turn"
    BODY: ClassVar[Mark | None] = OUTCOME

    held: Derived[Literal["", "children"]] = ""
    """Why a text without actions is no reply yet: children of the agent are still at work."""
    generation: Annotated[Generation, Group()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(Content):
    """An agent's or a plan's message to its caller. With a generation if a model wrote it."""

    KIND: ClassVar[str] = "reply"
    BODY: ClassVar[Mark | None] = OUTCOME

    to: Derived[str]
    """The caller's path; "user" for the root's."""
    status: Outcome[Literal["ok", "failed", "cancelled", "bound"]]
    """Whether it is an answer; or its model or plan failed, it was cancelled, or a bound ended its work."""
    bound: Outcome[BoundName] = ""
    """The bound that ended it."""
    last: Derived[LastTurn] = ""
    """Why this was the agent's last turn, which it was told."""
    generation: Annotated[Generation | None, Group()] = None
    plan: Derived[Literal["", "concluded", "partial", "failed"]] = ""
    """How a plan ended that ended by itself; of the root: the one whose report it passes on."""
    answer: Derived[JSON] = None
    """The plan's answer where a model gave one; else its last steps speak for themselves."""
    missing: Derived[Mapping[str, str] | None] = None
    """Steps of the plan that came to nothing, and why."""
    ended_by: Derived[str] = ""
    """The bound that ended the plan."""
    shortfall: Annotated[Derived[str], Since("1.2")] = ""
    """Why the plan's goal counts as not reached, as whoever judged it said."""
    confidence: Annotated[Derived[float | None], Since("1.2")] = None
    """Of whoever judged whether the goal was reached, from 0 to 1."""
    warnings: Derived[tuple[str, ...]] = ()
    """What there is to know of the plan's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard(Content):
    """A generation that was stopped. Where a person stopped it, its agent reads what it wrote, and nothing in it acts."""

    KIND: ClassVar[str] = "discard"
    BODY: ClassVar[Mark | None] = OUTCOME

    reason: Outcome[DiscardReason]
    """Why it was stopped."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    read: Annotated[Outcome[tuple[int, ...]], Since("1.2")] = ()
    """Records of the messages that its model had read."""
    thought: Annotated[Derived[int], Since("1.2")] = 0
    """Of an answer about a plan that is asked for again: the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawn(Content):
    """A child begins, whose path is the record's agent. The body is its role."""

    KIND: ClassVar[str] = "spawn"
    BODY: ClassVar[Mark | None] = DERIVED

    caller: Derived[str]
    """Whose child it is."""
    model: Derived[str] = ""
    """The role of the model that speaks for it; empty: its caller's."""
    allow: Derived[tuple[str, ...] | None] = None
    """Patterns of the functions that it may use, of those that its caller may."""
    intent: Derived[float | None] = None
    """The most impact that its calls may have, if that is less than its caller's."""
    fork: Derived[bool] = False
    """Whether it begins with its caller's history."""
    plan: Derived[PlanTerms | None] = None
    """It is a plan, and not an agent."""
    history: Annotated[Outcome[Mapping[str, float] | None], Since("1.2")] = None
    """Of a plan with a profile: how often calls failed in this user's sessions, by function and names of arguments."""
    template: Annotated[Outcome[str], Since("1.2")] = ""
    """What the kept plan held that it is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Content):
    """What memory brought for the agent's next turn. The body has one line for each memory, as the agent reads it."""

    KIND: ClassVar[str] = "recall"
    BODY: ClassVar[Mark | None] = OUTCOME

    rows: Outcome[tuple[MemorySource, ...]]
    """Where each comes from, in the same order."""
    meant: Outcome[Mapping[str, int] | None] = None
    """Functions that the agent's input is about in meaning, each with the record of the message that is."""
    ms: Outcome[int]
    """Milliseconds that memory took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw(Content):
    """An agent takes more of the budget of those above it, before it asks its model."""

    KIND: ClassVar[str] = "draw"

    tokens: Derived[int]
    """How many."""
    seen: Annotated[Outcome[Seen | None], Since("1.2")] = None
    """Of an agent: what it would be shown of the world in the turn that begins."""
    thought: Annotated[Outcome[int], Since("1.2")] = 0
    """Of a plan: the question that is asked now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compress(PersonContent):
    """A model summarized an agent's history, which is cut to that. The body is the summary."""

    KIND: ClassVar[str] = "compress"
    BODY: ClassVar[Mark | None] = OUTCOME

    role: Derived[str]
    """The role of the model that did it."""
    model: Derived[str]
    """The model's name."""
    usage: Outcome[Tokens]
    """The tokens that it took."""
    by: Annotated[Outcome[Literal["", "user"]], Since("1.2")] = ""
    """Who wanted it; empty: the core did, for lack of room."""
