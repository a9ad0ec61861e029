"""The inputs and the outcomes of a call of a module's function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class Attached:
    """An argument passed by value: the content for `parameter`. `name`: the name of the variable, for the module."""

    parameter: str
    media: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call. `function`: without the module's name. `values`: arguments passed as content.

    `carried`: what the agent's earlier calls of this module left for the next. `cached`: what an earlier call with the
    same key returned.
    """

    call_id: str
    session: str
    agent: str
    function: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    values: tuple[Attached, ...] = ()
    carried: bytes = b""
    cached: Attached | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call, for people; `fraction`: from 0 to 1, if known."""

    text: str
    fraction: float | None


@dataclass(frozen=True, slots=True)
class ArtifactChunk:
    """A piece of an artifact, in order within the artifact."""

    id: str
    name: str
    media: str
    data: bytes
    last: bool


@dataclass(frozen=True, slots=True)
class SentArtifact:
    """An artifact that a call produced, `size` in bytes. Its content went to `on_artifact`."""

    id: str
    name: str
    media: str
    size: int


@dataclass(frozen=True, slots=True)
class StateChange:
    """The module's state for this agent; `entry_points`: functions offered now, if not as in the manifest."""

    state: str
    entry_points: tuple[str, ...]
    note: str


@dataclass(frozen=True, slots=True)
class ModuleAsk:
    """A question to a person, in the module's words. `schema`: what to fill in, as JSON; `url`: an address to open."""

    id: str
    message: str
    schema: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class ModuleReply:
    """What happened to a question. `refused`: it can't be shown to a person. `reason`: why no person decided."""

    action: Literal["accept", "decline", "cancel", "refused"]
    values: Mapping[str, JSON] = field(default_factory=dict)
    reason: str = ""


SendReply: TypeAlias = Callable[[ModuleReply], Awaitable[None]]
"""Sends an answer to the module; a module that is gone, or no longer knows the question, is skipped."""

OnAsk: TypeAlias = Callable[[ModuleAsk, SendReply], Awaitable[None]]
"""Called with a question and the function for its answer. It returns without waiting for a person."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The function succeeded. `output`: its result as text (JSON text for `application/json`); empty if the result is
    the artifact with the id `artifact`. `media`: empty if neither the call nor, if the caller consults it, the manifest
    names one. `data`: results that are not text for the agent, such as an exit status. `state`: the module's state for
    this agent, if the call reported one. `carried`: what its next call receives; None: unchanged. `cached`: the id of
    the artifact that is kept for later calls with the same key; empty: none."""

    output: str
    media: str
    data: Mapping[str, JSON]
    artifact: str | None
    artifacts: tuple[SentArtifact, ...]
    state: StateChange | None
    carried: bytes | None = None
    cached: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """The function raised an error."""

    type: str
    message: str
    trace: str
    output: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline passed before the function ended; the call was cancelled."""

    output: str


Outcome: TypeAlias = Completed | Raised | TimedOut
