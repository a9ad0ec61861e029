"""The inputs and the outcomes of a call of a module's function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class Attached:
    """An argument passed by value."""

    parameter: str
    media: str
    """The type of the content."""
    data: bytes
    """The content."""
    name: str = ""
    """The name of the variable, for the module."""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call, as its module is told."""

    call_id: str
    session: str
    agent: str
    """The name under which the module keeps its state (`core.modules.state_names`)."""
    function: str
    """The function, without the module's name."""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    values: tuple[Attached, ...] = ()
    """Arguments passed as content."""
    carried: bytes = b""
    """What the agent's earlier calls of this module left for the next."""
    cached: Attached | None = None
    """What an earlier call with the same key returned."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call, for people."""

    text: str
    fraction: float | None
    """From 0 to 1; None: unknown."""


@dataclass(frozen=True, slots=True)
class ArtifactChunk:
    """A piece of an artifact, in order within the artifact."""

    id: str
    """The artifact, within its call."""
    name: str
    media: str
    """The type of its content."""
    data: bytes
    last: bool
    """Whether the artifact is complete with this."""


@dataclass(frozen=True, slots=True)
class SentArtifact:
    """An artifact that a call produced. Its content went to `on_artifact`."""

    id: str
    name: str
    media: str
    """The type of its content."""
    size: int
    """In bytes."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """The module's state for this agent."""

    state: str
    entry_points: tuple[str, ...]
    """The functions offered now; empty: as in the manifest."""
    note: str
    """What it says about it, for people."""


@dataclass(frozen=True, slots=True)
class ModuleAsk:
    """A question to a person."""

    id: str
    """The question, within its call."""
    message: str
    """The question in the module's words."""
    schema: str = ""
    """What to fill in, as JSON; empty: nothing."""
    url: str = ""
    """An address to open; empty: none."""


@dataclass(frozen=True, slots=True)
class ModuleReply:
    """What happened to a question."""

    action: Literal["accept", "decline", "cancel", "refused"]
    """What the person decided. "cancel": nobody did. "refused": it can't be shown to a person."""
    values: Mapping[str, JSON] = field(default_factory=dict)
    """What they filled in."""
    reason: str = ""
    """Why no person decided."""


SendReply: TypeAlias = Callable[[ModuleReply], Awaitable[None]]
"""Sends an answer to the module; a module that is gone, or no longer knows the question, is skipped."""

OnAsk: TypeAlias = Callable[[ModuleAsk, SendReply], Awaitable[None]]
"""Called with a question and the function for its answer. It returns without waiting for a person."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The function succeeded."""

    output: str
    """Its result as text (JSON text for `application/json`); empty if the result is the artifact `artifact`."""
    media: str
    """The type of the result; empty if neither the call nor, if the caller consults it, the manifest names one."""
    data: Mapping[str, JSON]
    """Results that are not text for the agent, such as an exit status."""
    artifact: str | None
    """The id of the artifact that is the result; None: the result is a text."""
    artifacts: tuple[SentArtifact, ...]
    """All artifacts of the call."""
    state: StateChange | None
    """The module's state for this agent; None: the call reported none."""
    carried: bytes | None = None
    """What its next call receives; None: unchanged."""
    cached: str = ""
    """The id of the artifact that is kept for later calls with the same key; empty: none."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised an error."""

    type: str
    """The name of the error's class."""
    message: str
    trace: str
    """Where it happened, in the module's code."""
    output: str
    """What was printed before."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline passed before the function ended; the call was cancelled."""

    output: str
    """What was printed before."""


Outcome: TypeAlias = Completed | Raised | TimedOut
