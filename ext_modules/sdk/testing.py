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
    """The result of a call. `output`: what the agent would get; `streamed`: the pieces in which text arrived.

    `error`: what the function raised, or None. `artifact`: the id of the artifact that is the result, or "". `carried`:
    what the call left for the agent's next calls, or None. `cached`: the id of the artifact for later calls with the
    same key, or "".
    """

    output: str = ""
    media_type: str = ""
    data: dict[str, JSON] = field(default_factory=dict)
    streamed: list[str] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    artifacts: dict[str, Value] = field(default_factory=dict)
    artifact: str = ""
    states: list[StateChange] = field(default_factory=list)
    asked: list[Ask] = field(default_factory=list)
    error: Failed | None = None
    ends: int = 0
    carried: bytes | None = None
    cached: str = ""


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
        found = self._module.functions.get(function)
        return str(arguments.get(found.cache_key, "")) if found is not None and found.cache_key else ""


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
