"""Checks a running module against the contract in `ext_module.proto`, in whatever language it is written.

Every function is called with arguments made up from its schema. Whether a call succeeds does not matter; how it ends
does. Therefore a module is checked where a call can do no harm: in its sandbox, with an empty workspace.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ext_modules.sdk.flaws import fitting, flaws, one_line, properties_of, schema_of
from ext_modules.sdk.values import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from protos.iact.ext_module.v1 import ext_module_pb2_grpc as stubs

SERVICE: Final = pb.DESCRIPTOR.services_by_name["ExtModule"].full_name
_CHUNK: Final = 1 << 20
_WITHIN: Final = 10.0
"""Seconds that one call may take here."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 64 << 20),
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    check: str
    """The rule."""
    ok: bool
    detail: str = ""
    """What was observed."""
    advice: bool = False
    """Whether the rule is optional."""


class Broken(Exception):
    """The module breaks a rule; the message says which one, and how."""


def passed(findings: Sequence[Finding]) -> bool:
    """Whether all mandatory rules are kept."""
    return all(finding.ok or finding.advice for finding in findings)


def table(findings: Sequence[Finding]) -> str:
    """One line per finding, for people."""
    width = max((len(finding.check) for finding in findings), default=0)
    lines = [
        f"{_verdict(finding)}  {finding.check:<{width}}  {finding.detail}".rstrip() for finding in findings
    ]
    return "".join(f"{line}\n" for line in lines)


def _verdict(finding: Finding) -> str:
    if finding.ok:
        return "ok  "
    return "hint" if finding.advice else "FAIL"


async def check(target: str) -> list[Finding]:
    """Check the module that is served at `target` ("unix:/path")."""
    async with grpc.aio.insecure_channel(target, options=list(_OPTIONS)) as channel:
        return await _Checking(channel).run()


# --- a call: its events ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Heard:
    """The events of one call, checked as they arrive."""

    states: Sequence[str]
    """The states of the manifest."""
    end: str = ""
    """The kind of its end; empty until then."""
    error_type: str = ""
    """The type of the error with which it ended."""
    events: int = 0
    open_artifacts: set[str] = field(default_factory=set)
    """Artifacts whose last chunk has not come."""
    artifacts: set[str] = field(default_factory=set)
    """All artifacts."""

    def take(self, event: pb.InvokeEvent) -> None:
        """Check the next event.

        Raises:
            Broken: it breaks a rule.
        """
        self.events += 1
        kind = event.WhichOneof("event")
        if self.end:
            raise Broken(f"An event ({kind}) follows the end of the call.")

        match kind:
            case "output":
                _require(len(event.output.text.encode()) <= _CHUNK, "A piece of output has more than 1 MiB.")
            case "artifact":
                self._artifact(event.artifact)
            case "state":
                self._state(event.state)
            case "progress":
                is_line = one_line(event.progress.text, 200)
                _require(is_line, "A progress is not one line of at most 200 characters.")
            case "ask":
                self._ask(event.ask)
            case "result":
                self._result(event.result)
            case "error":
                self.end = "error"
                self.error_type = event.error.type
                _require(0 < len(event.error.type) <= 128, "An error has no type of 1 to 128 characters.")
            case _:
                raise Broken("An event is empty.")

    def _artifact(self, chunk: pb.ArtifactChunk) -> None:
        _require(0 < len(chunk.id) <= 64, "An artifact has no id of 1 to 64 characters.")
        _require(len(chunk.data) <= _CHUNK, "A chunk of an artifact has more than 1 MiB.")
        is_complete = chunk.id in self.artifacts and chunk.id not in self.open_artifacts
        _require(not is_complete, "A chunk follows the last of its artifact.")

        self.artifacts.add(chunk.id)
        if chunk.last:
            self.open_artifacts.discard(chunk.id)
        else:
            self.open_artifacts.add(chunk.id)

    def _state(self, change: pb.StateChange) -> None:
        _require(change.state in self.states, f"The state {change.state!r} is not in the manifest.")

    def _ask(self, ask: pb.Ask) -> None:
        _require(0 < len(ask.id) <= 64, "A question has no id of 1 to 64 characters.")
        _require(0 < len(ask.message) <= 4000, "A question has no message of 1 to 4,000 characters.")

    def _result(self, result: pb.Result) -> None:
        self.end = "result"
        kind = result.WhichOneof("value")
        if kind == "artifact":
            _require(result.artifact in self.artifacts, "The result is an artifact that was not sent.")
        if kind == "json":
            _parse(result.json, "The result is not JSON.")

        if result.data_json:
            data = _parse(result.data_json, "")
            _require(isinstance(data, dict), "The data of a result is not a JSON object.")
        if result.HasField("state"):
            self._state(result.state)

    def complete(self) -> None:
        """Check what must hold at the end of the stream.

        Raises:
            Broken: the call has no end, or an artifact is incomplete.
        """
        _require(bool(self.end), "The stream ended without a result or an error.")
        _require(self.end != "result" or not self.open_artifacts, "An artifact has no last chunk.")


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Broken(sentence)


def _parse(text: str, sentence: str) -> JSON:
    try:
        parsed: JSON = json.loads(text)
    except ValueError as error:
        raise Broken(sentence or "The data of a result is not JSON.") from error
    return parsed


# --- the shell -------------------------------------------------------------------------------------------


class _Checking:
    """One run over one module."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._stub = stubs.ExtModuleStub(channel)
        self._manifest = pb.Manifest()
        self._findings: list[Finding] = []
        self._calls = 0

    async def run(self) -> list[Finding]:
        """Run all checks in order. Without a manifest, nothing further can be checked."""
        if not await self._try("describe: answers", self._describe):
            return self._findings

        for flaw in flaws(self._manifest) or [""]:
            self._findings.append(Finding("describe: the manifest is valid", not flaw, flaw))

        checks: list[tuple[str, Callable[[], Awaitable[str]]]] = [
            ("describe: the same answer again", self._same),
            ("health: SERVING", self._healthy),
            ("an unknown function is an error", self._unknown),
            ("arguments that are not JSON are an error", self._garbled),
            ("arguments that are not an object are an error", self._not_an_object),
            ("a request of 20 MiB is taken", self._large),
            ("32 calls at once each have an end", self._many),
            ("calls that follow each other on one stream", self._conversing),
            ("a cancelled call leaves the module serving", self._cancelled),
            ("a deadline is kept", self._deadline),
            ("states: Watch begins with the present one", self._watch),
        ]
        for name, act in checks:
            await self._try(name, act)
        for function in self._manifest.functions:
            for name, act in self._of_function(function):
                await self._try(f"{function.name}: {name}", act)

        # After all that was done to it.
        await self._try("describe: still the same answer", self._same)
        await self._try("health: still SERVING", self._healthy)
        await self._try("reflection: lists the service", self._reflection, advice=True)
        return self._findings

    async def _try(self, name: str, act: Callable[[], Awaitable[str]], *, advice: bool = False) -> bool:
        """Do a check and note its finding. Return whether the rule is kept."""
        is_kept = False
        try:
            async with asyncio.timeout(_WITHIN * 3):
                detail = await act()
            is_kept = True
        except Broken as broken:
            detail = str(broken)
        except TimeoutError:
            detail = f"It took more than {_WITHIN * 3:g} s."
        except grpc.aio.AioRpcError as error:
            detail = f"gRPC ended it with {error.code().name}."

        self._findings.append(Finding(name, is_kept, detail, advice))
        return is_kept

    async def _describe(self) -> str:
        self._manifest = await self._stub.Describe(pb.DescribeRequest(), timeout=_WITHIN)
        return f"{self._manifest.name} {self._manifest.version}, {len(self._manifest.functions)} functions"

    async def _same(self) -> str:
        again = await self._stub.Describe(pb.DescribeRequest(), timeout=_WITHIN)
        _require(again == self._manifest, "The manifest changed; it must be the same every time.")
        return ""

    async def _healthy(self) -> str:
        stub = health_pb2_grpc.HealthStub(self._channel)
        for service in ("", SERVICE):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=_WITHIN)
            _require(answer.status == health_pb2.HealthCheckResponse.SERVING, f"It is not for {service!r}.")
        return ""

    async def _reflection(self) -> str:
        stub = reflection_pb2_grpc.ServerReflectionStub(self._channel)
        call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
        async for answer in call:
            listed = {service.name for service in answer.list_services_response.service}
            _require(SERVICE in listed, f"It lists {sorted(listed)}.")
            return ""
        raise Broken("It answers nothing.")

    # --- calls ---

    def _request(self, function: str, arguments: str, *, seconds: float = _WITHIN) -> pb.InvokeRequest:
        self._calls += 1
        return pb.InvokeRequest(
            call_id=f"check/{self._calls}",
            session="check",
            agent=f"/{self._calls}",  # a new agent, so that every call begins in the first state
            function=function,
            arguments_json=arguments,
            timeout_ms=round(seconds * 1000),
        )

    async def _hear(self, function: str, arguments: str = "{}") -> Heard:
        """Make one call and check every event.

        Raises:
            Broken: an event breaks a rule.
        """
        heard = Heard([state.name for state in self._manifest.states])
        request = self._request(function, arguments)
        async for event in self._stub.Invoke(request, timeout=_WITHIN):
            heard.take(event)
            if event.HasField("ask"):
                nobody = pb.AnswerRequest(
                    call_id=request.call_id, ask_id=event.ask.id, reason="Nobody is here."
                )
                await self._stub.Answer(nobody, timeout=_WITHIN)

        heard.complete()
        return heard

    async def _refused(self, function: str, arguments: str, kind: str) -> str:
        heard = await self._hear(function, arguments)
        seen = heard.error_type if heard.end == "error" else "a result"
        _require(heard.error_type == kind, f"It ends with {seen}; it must end with the error {kind}.")
        return ""

    async def _unknown(self) -> str:
        return await self._refused("no_such_function_here", "{}", "UnknownFunction")

    async def _garbled(self) -> str:
        return await self._refused(self._manifest.functions[0].name, '{"a": ', "BadArguments")

    async def _not_an_object(self) -> str:
        return await self._refused(self._manifest.functions[0].name, "[1]", "BadArguments")

    async def _conversing(self) -> str:
        call = self._stub.Converse(None)
        try:
            metadata = {key for key, _ in await call.initial_metadata()}
            if "iact-converse" not in metadata:
                return "it has no Converse"

            for _ in range(2):
                request = self._request("no_such_function_here", "{}")
                await call.write(request)
                heard = Heard([state.name for state in self._manifest.states])
                while not heard.end and isinstance(event := await call.read(), pb.InvokeEvent):
                    _require(event.call_id == request.call_id, "An event does not name its call.")
                    heard.take(event)
                heard.complete()
        finally:
            call.cancel()
        return ""

    async def _large(self) -> str:
        return await self._refused(
            "no_such_function_here", json.dumps({"a": "x" * (20 << 20)}), "UnknownFunction"
        )

    async def _many(self) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(32):
                    group.create_task(self._unknown())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return ""

    async def _cancelled(self) -> str:
        for function in self._manifest.functions:
            arguments = json.dumps(fitting(schema_of(function)))
            call = self._stub.Invoke(self._request(function.name, arguments), timeout=_WITHIN)
            call.cancel()
        await self._healthy()
        await self._unknown()
        return ""

    async def _deadline(self) -> str:
        function = self._manifest.functions[0]
        arguments = json.dumps(fitting(schema_of(function)))
        request = self._request(function.name, arguments, seconds=0.05)

        begun = time.monotonic()
        try:
            async for _ in self._stub.Invoke(request, timeout=0.05):
                pass
        except grpc.aio.AioRpcError as error:
            _require(error.code() is grpc.StatusCode.DEADLINE_EXCEEDED, f"It ends with {error.code().name}.")
        _require(time.monotonic() - begun < 2, "It took more than 2 s instead of 0.05 s.")

        await self._healthy()
        return ""

    async def _watch(self) -> str:
        states = self._manifest.states
        initial = states[0].name if states else ""
        call = self._stub.Watch(pb.WatchRequest(session="check", agent="/another"), timeout=_WITHIN)
        try:
            async for change in call:
                begins = f"It begins with {change.state!r} and not with {initial!r}."
                _require(change.state == initial, begins)
                call.cancel()
                return ""
        except grpc.aio.AioRpcError as error:
            is_allowed = not states and error.code() is grpc.StatusCode.UNIMPLEMENTED
            _require(is_allowed, f"It ends with {error.code().name}.")
            return "it has no states"

        _require(not states, "It ends before it says anything.")
        return "it has no states"

    def _of_function(self, function: pb.Function) -> list[tuple[str, Callable[[], Awaitable[str]]]]:
        """The checks of one function."""
        fits = fitting(schema_of(function))
        properties = properties_of(function) or {}

        def refused(arguments: Mapping[str, JSON]) -> Callable[[], Awaitable[str]]:
            return lambda: self._refused(function.name, json.dumps(dict(arguments)), "BadArguments")

        checks: list[tuple[str, Callable[[], Awaitable[str]]]] = []
        if schema_of(function).get("additionalProperties") is False:
            checks.append(("an unknown parameter is refused", refused({**fits, "no_such_parameter": 1})))
        for name in list(fits)[:1]:
            rest = {key: value for key, value in fits.items() if key != name}
            checks.append(("a missing parameter is refused", refused(rest)))
        for name, schema in properties.items():
            if isinstance(schema, dict) and schema.get("type") in ("string", "integer", "number", "boolean"):
                checks.append(
                    ("a parameter of the wrong type is refused", refused({**fits, name: {"a": []}}))
                )
                break
        initial = self._manifest.states[0].name if self._manifest.states else ""
        if function.states and initial not in function.states:
            offered = "a state that does not offer it refuses it"
            checks.append((offered, lambda: self._refused(function.name, json.dumps(fits), "NotOffered")))
        else:
            checks.append(("a call has one end", lambda: self._one_end(function.name, json.dumps(fits))))
        return checks

    async def _one_end(self, function: str, arguments: str) -> str:
        try:
            heard = await self._hear(function, arguments)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return f"it takes longer than {_WITHIN:g} s"
            raise
        return heard.error_type or "a result"
