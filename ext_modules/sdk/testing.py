"""Runs a module's functions in process, without a container or gRPC, for a module's tests.

bench = Bench(module)
done = await bench.call("forecast", {"place": "Oslo"})
assert done.output == "Rain."
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ext_modules.sdk.call import ArtifactChunk, Event, Output, Progress, StateChange
from ext_modules.sdk.module import Module
from ext_modules.sdk.questions import OPEN, Answer, Ask
from ext_modules.sdk.runner import Asked, Ended, Failed, run
from ext_modules.sdk.values import JSON, Value


@dataclass(slots=True)
class Done:
    """The result of a call."""

    # The result.
    output: str = ""
    """What the agent would get."""
    media_type: str = ""
    data: dict[str, JSON] = field(default_factory=dict)
    artifact: str = ""
    """The id of the artifact that is the result; empty: none is."""
    error: Failed | None = None
    """What the function raised; None: nothing."""

    # What came before it.
    streamed: list[str] = field(default_factory=list)
    """The pieces in which text arrived."""
    progress: list[Progress] = field(default_factory=list)
    artifacts: dict[str, Value] = field(default_factory=dict)
    """All artifacts, by id."""
    states: list[StateChange] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)

    # What is left of it.
    ends: int = 0
    """How many ends there were; a call has one."""
    carried: bytes | None = None
    """What it left for the agent's next calls; None: nothing."""
    cached: str = ""
    """The id of the artifact for later calls with the same key; empty: none."""


class Bench:
    """A module under test. Its agents keep their state and what they carry from call to call."""

    def __init__(
        self,
        module: Module,
        *,
        session: str = "session",
        answering: Callable[[Ask], Answer] = lambda _: Answer("cancel", reason="Nobody is on the bench."),
    ) -> None:
        """`answering`: answers the questions that calls ask the user."""
        self._module = module
        self._answering = answering
        self._session = session
        self._calls = 0
        self._carried: dict[str, bytes] = {}
        self._cached: dict[str, Value] = {}

    async def call(
        self,
        function: str,
        arguments: Mapping[str, JSON] | None = None,
        *,
        values: Mapping[str, Value] | None = None,
        agent: str = "/",
        timeout: float = 60,  # noqa: ASYNC109
    ) -> Done:
        """Run one function to its end. If it raises, the exception is in `Done.error`."""
        self._calls += 1
        done = Done()

        async def emit(event: Event) -> None:
            _note(done, event)
            if isinstance(event, Ask):
                OPEN.answered(asked.call_id, event.id, self._answering(event))

        key = self._key(function, arguments or {})
        asked = Asked(
            str(self._calls), self._session, agent, function, arguments or {}, values or {}, timeout,
            self._carried.get(agent, b""), self._cached.get(key),
        )  # fmt: skip
        _note(done, await run(self._module, asked, emit))
        if done.cached:
            self._cached[key] = done.artifacts[done.cached]
        if done.carried is not None:
            self._carried[agent] = done.carried
        return done

    def _key(self, function: str, arguments: Mapping[str, JSON]) -> str:
        """The key under which a call's result is cached; empty: under none."""
        called = self._module.functions.get(function)
        if called is None or not called.cache_key:
            return ""
        return str(arguments.get(called.cache_key, ""))


def _note(done: Done, event: Event | Ended | Failed) -> None:
    match event:
        case Output():
            done.streamed.append(event.text)
        case Progress():
            done.progress.append(event)
        case StateChange():
            done.states.append(event)
        case Ask():
            done.asked.append(event)
        case ArtifactChunk():
            before = done.artifacts.get(event.id, Value(b""))
            done.artifacts[event.id] = Value(before.data + event.data, event.media_type, event.name)

        case Failed():
            done.error = event
            done.ends += 1
        case Ended():
            done.ends += 1
            done.output = "".join(done.streamed) if event.kind == "output" else event.value
            done.artifact = event.value if event.kind == "artifact" else ""
            done.media_type = event.media_type
            done.data = json.loads(event.data or "{}")
            done.carried = event.carried
            done.cached = event.cached
