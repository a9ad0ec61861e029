"""What goes into a call of a module's function, and what comes out of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from iact.core.ports import JSON


@dataclass(frozen=True, slots=True)
class Attached:
    """An argument passed by value: the content for `parameter`. `name`: what it was called, for the module."""

    parameter: str
    media: str
    data: bytes
    name: str = ""


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call. `function`: without the module's name. `values`: arguments that are content.

    `carried`: what the agent's calls of this module left for the next. `cached`: what one with the same key found out.
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
    """How far a call is, for people; `fraction` from 0 to 1 if known."""

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
    """An artifact that a call brought forth, `size` in bytes. Its content went to `on_artifact`."""

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
    """A question to a person, as the module words it. `schema`: what is to be filled in, as JSON; `url`: to be opened."""

    id: str
    message: str
    schema: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class ModuleReply:
    """What became of a question. `refused`: it can't be put to anybody. `reason`: why nobody decided."""

    action: Literal["accept", "decline", "cancel", "refused"]
    values: Mapping[str, JSON] = field(default_factory=dict)
    reason: str = ""


SendReply: TypeAlias = Callable[[ModuleReply], Awaitable[None]]
"""Carries an answer to the module; one that is gone, or knows the question no more, is not told."""

OnAsk: TypeAlias = Callable[[ModuleAsk, SendReply], Awaitable[None]]
"""Told of a question, and where its answer goes. It returns without waiting for a person."""


@dataclass(frozen=True, slots=True)
class Completed:
    """The function ended well. `output`: what it gave back, as text (JSON text for `application/json`); empty
    if that is the artifact with the id `artifact`. `media`: "" if neither the call nor, as far as the caller
    looks there, the manifest says. `data`: what is not text for the agent, such as an exit status. `state`:
    the module's state for this agent, if the call told of one. `carried`: what its next call is to find; None: what
    this one found. `cached`: the id of the artifact that is for later calls with the same key; empty: none is.
    """

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
    """The function raised."""

    type: str
    message: str
    trace: str
    output: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The deadline passed before the function ended; the call was cancelled."""

    output: str


Outcome: TypeAlias = Completed | Raised | TimedOut
