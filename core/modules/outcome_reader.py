"""Collects the events of one call, and checks them against the contract. Pure: bytes in, values out.

Everything that a module could send without end is counted here, and everything that it could send in a wrong form is
checked here, before anything else sees it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from google.protobuf.message import DecodeError

from iact.core.characters import HIDDEN
from iact.core.errors import ModuleFault
from iact.core.modules.outcome import (
    ArtifactChunk,
    Completed,
    ModuleAsk,
    Progress,
    Raised,
    SentArtifact,
    StateChange,
)
from iact.core.ports import JSON
from iact.core.records.form_fields import LONGEST_SCHEMA
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

_LARGEST_VALUE: Final = 1 << 20
"""The maximum length of a result in one message, in characters."""
_LARGEST_STATUS: Final = 10**9
"""No exit status is as large as this."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of one call, over all its events, including the end."""

    text: int = 8 << 20
    """Bytes of text, in UTF-8."""
    artifacts: int = 256 << 20
    """Bytes of artifacts."""
    artifact_count: int = 1000
    events: int = 200_000
    carried: int = 256 << 10
    """Bytes that it may leave for the next call."""
    asks: int = 20
    """Questions to a person."""

    # Real streams seldom send so many tiny events.
    tiny: int = 20_000
    """How many events may hold less than `little` on average."""
    tiny_each: int = 100
    """How many more of them, per second."""
    little: int = 64
    """Bytes of text and content."""


class OutcomeReader:
    """The events of one call: pass each message to `take`, then call `end`.

    On a stream of several calls, `call` is the id that each event must name, and `before` is the id of the previous
    call, whose late events are dropped.
    """

    def __init__(self, limits: CallLimits, *, call: str = "", before: str = "") -> None:
        self._limits = limits
        self._call = call
        self._before = before
        self._end: pb.Result | pb.Error | None = None

        # What came, as it is counted.
        self._events = 0
        self._text = 0
        """Bytes of text."""
        self._bytes = 0
        """Bytes of artifacts."""

        # What came.
        self._output: list[str] = []
        self._state: StateChange | None = None
        """The newest state."""
        self._open: dict[str, SentArtifact] = {}
        """The artifacts that are not complete."""
        self._done: dict[str, SentArtifact] = {}
        """Those that are."""
        self._asked: set[str] = set()
        """The ids of questions."""

    @property
    def output(self) -> str:
        return "".join(self._output)

    @property
    def ended(self) -> bool:
        """Whether the call's last event has arrived."""
        return self._end is not None

    def take(
        self, data: bytes, seconds: float = 0.0
    ) -> str | Progress | ArtifactChunk | StateChange | ModuleAsk | None:
        """Take the next message, `seconds` after the call began. Returns what watchers see of it; output as text.

        Raises:
            ModuleFault: the message breaks the contract.
        """
        self._events += 1
        if self._events > self._limits.events:
            raise ModuleFault(f"The module sent more than {self._limits.events:,} events in one call.")
        if self._events > self._limits.tiny and self._is_flood(seconds):
            raise ModuleFault(f"The module sent {self._events:,} nearly empty events in one call.")

        try:
            event = pb.InvokeEvent.FromString(data)
        except DecodeError as error:
            raise ModuleFault("The module sent something that is not a message of the protocol.") from error

        if self._call and event.call_id != self._call:
            # The call before may have ended by its time limit, and its module learns that only later.
            is_late = event.call_id != "" and event.call_id == self._before
            if is_late:
                return None
            raise ModuleFault("The module sent an event that belongs to no call.")
        if self._end is not None:
            raise ModuleFault("The module sent more after the end of the call.")
        return self._take_event(event, len(data))

    def _take_event(
        self, event: pb.InvokeEvent, size: int
    ) -> str | Progress | ArtifactChunk | StateChange | ModuleAsk | None:
        """Take an event of this call, as `take`. `size`: its bytes."""
        match event.WhichOneof("event"):
            case "output":
                return self._take_output(event.output.text)
            case "progress":
                return self._take_progress(event.progress)
            case "artifact":
                return self._take_artifact(event.artifact)
            case "state":
                self._state = read_state(event.state)
                return self._state
            case "ask":
                return self._take_ask(event.ask)
            case "result":
                self._end = event.result
                self._count(size)
            case "error":
                self._end = event.error
                self._count(size)
            case None:
                # An event from a newer revision of the contract.
                pass
        return None

    def _is_flood(self, seconds: float) -> bool:
        """Whether there were too many events for what the earlier ones held."""
        limits = self._limits
        earlier = self._events - 1
        held_little = self._text + self._bytes < limits.little * earlier
        return held_little and earlier >= limits.tiny + limits.tiny_each * seconds

    def _count(self, size: int) -> None:
        self._text += size
        if self._text > self._limits.text:
            raise ModuleFault(f"The module sent more than {self._limits.text:,} bytes of text in one call.")

    def _take_output(self, text: str) -> str:
        # Asking is quicker than encoding, and nearly always enough.
        size = len(text) if text.isascii() else len(text.encode())
        self._count(size)
        self._output.append(text)
        return text

    def _take_progress(self, progress: pb.Progress) -> Progress:
        fraction = progress.fraction if progress.HasField("fraction") else None
        if fraction is not None and not 0 <= fraction <= 1:
            fraction = None
        return Progress(line(progress.text, 200), fraction)

    def _take_artifact(self, chunk: pb.ArtifactChunk) -> ArtifactChunk:
        if not chunk.id or len(chunk.id) > 64 or chunk.id in self._done:
            raise ModuleFault("The module sent a chunk of an artifact with a wrong id.")

        begun = self._open.pop(chunk.id, None)
        if begun is None:
            if len(self._open) + len(self._done) >= self._limits.artifact_count:
                raise ModuleFault(
                    f"The module sent more than {self._limits.artifact_count:,} artifacts in one call."
                )
            # Its name and type are those of its first chunk.
            begun = SentArtifact(chunk.id, line(chunk.name, 200), line(chunk.media_type, 128), 0)

        self._bytes += len(chunk.data)
        if self._bytes > self._limits.artifacts:
            raise ModuleFault(
                f"The module sent more than {self._limits.artifacts:,} bytes of artifacts in one call."
            )

        grown = SentArtifact(begun.id, begun.name, begun.media, begun.size + len(chunk.data))
        artifacts = self._done if chunk.last else self._open
        artifacts[chunk.id] = grown
        return ArtifactChunk(grown.id, grown.name, grown.media, chunk.data, chunk.last)

    def _take_ask(self, ask: pb.Ask) -> ModuleAsk:
        if not ask.id or len(ask.id) > 64 or ask.id in self._asked:
            raise ModuleFault("The module asked a question with a wrong id.")
        if len(self._asked) >= self._limits.asks:
            raise ModuleFault(f"The module asked more than {self._limits.asks} questions in one call.")
        if len(ask.schema_json) > LONGEST_SCHEMA:
            raise ModuleFault(
                f"The module asked for a form whose schema has more than {LONGEST_SCHEMA >> 10} KiB."
            )

        self._count(ask.ByteSize())
        self._asked.add(ask.id)
        return ModuleAsk(ask.id, ask.message, ask.schema_json, ask.url)

    def end(self) -> Completed | Raised:
        """The outcome of the call, once its stream has ended.

        Raises:
            ModuleFault: there was no end, or an invalid one.
        """
        match self._end:
            case None:
                raise ModuleFault("The module ended the call without a result or an error.")
            case pb.Error() as error:
                kind = line(error.type, 128) or "Error"
                message = error.message[: 64 << 10]
                trace = error.stack_trace[: 256 << 10]
                return Raised(kind, message, trace, self.output)
            case result:
                self._check(result)
                return self._completed(result)

    def _check(self, result: pb.Result) -> None:
        """Raise ModuleFault if a result breaks the contract."""
        if self._open:
            raise ModuleFault("The module ended the call in the middle of an artifact.")
        if result.WhichOneof("value") == "artifact" and result.artifact not in self._done:
            raise ModuleFault("The module's result is an artifact that it did not send.")
        if result.cached and result.cached not in self._done:
            raise ModuleFault("The module asked to cache an artifact that it did not send.")

        if len(result.text) > _LARGEST_VALUE or len(result.json) > _LARGEST_VALUE:
            raise ModuleFault("The module's result has more than 1 MiB; it should have streamed it.")
        if len(result.carried) > self._limits.carried:
            raise ModuleFault(
                f"The module asked to carry {len(result.carried):,} bytes to its next call; the limit "
                f"is {self._limits.carried:,}."
            )

    def _completed(self, result: pb.Result) -> Completed:
        kind = result.WhichOneof("value")
        media = line(result.media_type, 128)
        match kind:
            case "text":
                output = result.text
            case "json":
                _json(result.json, "result")
                output = result.json
                media = media or "application/json"
            case "artifact":
                output = ""
            case None:
                # What was printed is the result.
                output = self.output

        return Completed(
            output=output,
            media=media,
            data=_data(result.data_json),
            artifact=result.artifact if kind == "artifact" else None,
            artifacts=tuple(self._done.values()),
            state=read_state(result.state) if result.HasField("state") else self._state,
            carried=result.carried if result.HasField("carried") else None,
            cached=result.cached,
        )


def _json(text: str, what: Literal["result", "data"]) -> JSON:
    try:
        value: JSON = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModuleFault(f"The module's {what} is not JSON.") from error
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _data(text: str) -> Mapping[str, JSON]:
    if len(text) > 64 << 10:
        raise ModuleFault("The module's data has more than 64 KiB.")
    value = _json(text, "data") if text else {}
    if not isinstance(value, dict):
        raise ModuleFault("The module's data is not a JSON object.")
    if exit_status(value) is None:
        value.pop("exit_status", None)
    return value


def exit_status(data: JSON) -> int | None:
    """The exit status in a result's data; None if it is missing or impossible."""
    status = data.get("exit_status") if isinstance(data, dict) else None
    if not isinstance(status, int) or isinstance(status, bool):
        return None
    return status if abs(status) < _LARGEST_STATUS else None


def line(text: str, limit: int) -> str:
    """`text` as one bounded line without invisible characters."""
    return " ".join(HIDDEN.sub("", text[:limit]).split())


def read_state(state: pb.StateChange) -> StateChange:
    """A change of state as a module reports it.

    Raises:
        ModuleFault: the message breaks the contract.
    """
    if len(state.entry_points) > 100:
        raise ModuleFault("The module sent a state with more than 100 entry points.")
    entry_points = tuple(line(name, 48) for name in state.entry_points)
    return StateChange(line(state.state, 48), entry_points, line(state.note, 200))
