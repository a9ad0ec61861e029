"""The conformance suite passes what keeps the contract, and names what does not."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health, health_pb2_grpc

from ext_modules.sdk import server, wire
from ext_modules.sdk.conformance import Finding, Heard, check, passed, table
from ext_modules.sdk.flaws import flaws, sample
from ext_modules.sdk.loader import load
from protos.iact.ext_module.v1 import ext_module_pb2 as pb
from protos.iact.ext_module.v1 import ext_module_pb2_grpc as stubs

ROOT = Path(__file__).resolve().parents[2]

Events = list[pb.InvokeEvent]


def good() -> pb.Manifest:
    return wire.manifest(load(ROOT / "ext_modules/files/module.py"))


@pytest.mark.parametrize("name", ["a2a", "docs", "files", "git", "python", "shell", "sql", "web"])
def test_what_we_ship_passes_here(name: str) -> None:
    command = [sys.executable, "-m", "ext_modules.sdk", "check", str(ROOT / "ext_modules" / name), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    findings = [Finding(**each) for each in json.loads(done.stdout)]
    assert done.returncode == 0, table(findings)
    assert len(findings) > 15


STATES = """
from ext_modules.sdk import Call, Module

module = Module("door", "A door.", states={"closed": "The door is closed.", "open": "The door is open."})

@module.function(impact=1, states=["closed"])
def open_(call: Call) -> str:
    call.move("open")
    return "It is open."

@module.function(impact=1, states=["open"])
def close(call: Call) -> str:
    call.move("closed")
    return "It is closed."

@module.function(impact=0)
def picture() -> bytes:
    return b"x" * 3_000_000
"""


def test_a_module_with_states_and_artifacts_passes(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(STATES, encoding="utf-8")
    command = [sys.executable, "-m", "ext_modules.sdk", "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout
    assert "ok    close: a state that does not offer it refuses it" in done.stdout
    assert "ok    states: Watch begins with the present one\n" in done.stdout


def test_check_wants_one_thing_to_check() -> None:
    command = [sys.executable, "-m", "ext_modules.sdk", "check"]
    assert subprocess.run(command, capture_output=True, check=False, cwd=ROOT).returncode == 2


# --- manifests ----------------------------------------------------------------------------------------


def test_a_good_manifest_has_no_flaws() -> None:
    assert flaws(good()) == []


def _long_documentation(manifest: pb.Manifest) -> None:
    manifest.functions[0].documentation = "x\n" * 20


def _twice(manifest: pb.Manifest) -> None:
    manifest.functions.append(manifest.functions[0])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda m: setattr(m, "protocol", 2), "protocol is 2"),
        (lambda m: setattr(m, "name", "Bad Name"), "'Bad Name' is not one"),
        (lambda m: setattr(m, "purpose", "two\nlines"), "purpose is not one line"),
        (lambda m: setattr(m, "purpose", "hidden \u202e"), "purpose is not one line"),
        (lambda m: m.keywords.append("UPPER"), "keyword 'UPPER'"),
        (lambda m: m.ClearField("functions"), "There are 0 functions"),
        (_twice, "Two functions have the same name"),
        (_long_documentation, "more than 20 lines"),
        (lambda m: setattr(m.functions[0], "parameters_schema", "{"), "its schema is not"),
        (lambda m: setattr(m.functions[0], "parameters_schema", '{"type": "array"}'), "its schema is not"),
        (lambda m: setattr(m.functions[0], "body_parameter", "none"), "body parameter 'none'"),
        (lambda m: setattr(m.functions[0], "alias", "lower"), "alias 'lower'"),
        (lambda m: m.functions[0].states.append("nowhere"), "offered in 'nowhere'"),
        (lambda m: m.states.add(name="Bad"), "state 'Bad'"),
    ],
)
def test_flaws_are_named(spoil: Callable[[pb.Manifest], None], message: str) -> None:
    manifest = good()
    spoil(manifest)
    assert message in " ".join(flaws(manifest))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "x"),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "boolean"}, False),
        ({"enum": ["a", "b"]}, "a"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, None),
        ({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}, {"a": 1}),
        ({"type": "array"}, []),
        (True, "x"),
    ],
)
def test_samples_fit(schema: object, value: object) -> None:
    assert sample(schema) == value  # type: ignore[arg-type]  # a JSON value of several shapes


# --- a hostile or careless module --------------------------------------------------------------------------

OK = pb.InvokeEvent(result=pb.Result(text="x"))


def error(kind: str) -> pb.InvokeEvent:
    return pb.InvokeEvent(error=pb.Error(type=kind, message="no"))


def chunk(last: bool, size: int = 1) -> pb.InvokeEvent:
    return pb.InvokeEvent(artifact=pb.ArtifactChunk(id="1", data=b"x" * size, last=last))


class Careless(stubs.ExtModuleServicer):
    """A module of one function, which answers as the contract wants, but for what a test changes."""

    def __init__(self, events: Events, *, refuses: bool = True, changes: bool = False) -> None:
        self._events = events
        self._refuses = refuses
        self._changes = changes
        self._described = 0

    async def Describe(self, request: pb.DescribeRequest, context: object) -> pb.Manifest:
        self._described += 1
        version = str(self._described) if self._changes else "1"
        schema = '{"type": "object", "properties": {}, "additionalProperties": false}'
        function = pb.Function(name="act", parameters_schema=schema)
        return pb.Manifest(protocol=1, name="careless", version=version, functions=[function])

    async def Invoke(self, request: pb.InvokeRequest, context: object) -> AsyncIterator[pb.InvokeEvent]:
        if request.function != "act" and self._refuses:
            yield error("UnknownFunction")
        elif request.arguments_json != "{}" and self._refuses:
            yield error("BadArguments")
        else:
            for event in self._events:
                yield event


def checked(servicer: Careless) -> list[Finding]:
    async def run() -> list[Finding]:
        with tempfile.TemporaryDirectory() as folder:
            serving = grpc.aio.server(options=server.OPTIONS)
            stubs.add_ExtModuleServicer_to_server(servicer, serving)
            healthy = health.aio.HealthServicer()  # type: ignore[attr-defined]  # its stubs lack aio
            health_pb2_grpc.add_HealthServicer_to_server(healthy, serving)
            serving.add_insecure_port(f"unix:{folder}/s")
            await serving.start()
            await healthy.set(server.SERVICE, 1)
            try:
                return await check(f"unix:{folder}/s")
            finally:
                await serving.stop(None)

    return asyncio.run(run())


def broken(findings: list[Finding]) -> str:
    return " ".join(f"{one.check}: {one.detail}" for one in findings if not one.ok and not one.advice)


def test_a_module_without_reflection_passes_with_a_hint() -> None:
    findings = checked(Careless([OK]))
    assert passed(findings), table(findings)
    assert [one.check for one in findings if not one.ok] == ["reflection: lists the service"]
    assert "hint  reflection" in table(findings)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([], "without a result or an error"),
        ([OK, OK], "follows the end"),
        ([OK, pb.InvokeEvent(output=pb.Output(text="x"))], "follows the end"),
        ([chunk(False), OK], "has no last chunk"),
        ([chunk(True), chunk(True), OK], "follows the last of its artifact"),
        ([chunk(True, (1 << 20) + 1), OK], "more than 1 MiB"),
        ([pb.InvokeEvent(result=pb.Result(artifact="9"))], "was not sent"),
        ([pb.InvokeEvent(result=pb.Result(json="{"))], "not JSON"),
        ([pb.InvokeEvent(result=pb.Result(data_json="[]"))], "not a JSON object"),
        ([pb.InvokeEvent(state=pb.StateChange(state="nowhere")), OK], "not in the manifest"),
        ([pb.InvokeEvent(), OK], "An event is empty"),
        ([pb.InvokeEvent(progress=pb.Progress(text="a\nb")), OK], "progress is not one line"),
        ([pb.InvokeEvent(error=pb.Error(message="x"))], "no type"),
    ],
)
def test_what_breaks_the_contract_is_named(events: Events, message: str) -> None:
    heard = Heard([])
    said = ""
    try:
        for event in events:
            heard.take(event)
        heard.complete()
    except Exception as problem:
        said = str(problem)
    assert message in said


def test_a_module_that_ends_twice_fails() -> None:
    findings = checked(Careless([OK, OK]))
    assert not passed(findings)
    assert "act: a call has one end: An event (result) follows the end" in broken(findings)


def test_a_module_that_takes_anything_fails() -> None:
    found = broken(checked(Careless([OK], refuses=False)))
    assert "an unknown function is an error: It ends with a result" in found
    assert "act: an unknown parameter is refused" in found


def test_a_module_that_changes_its_manifest_fails() -> None:
    assert "describe: the same answer again: The manifest changed" in broken(
        checked(Careless([OK], changes=True))
    )


def test_nothing_that_serves_fails(tmp_path: Path) -> None:
    findings = asyncio.run(check(f"unix:{tmp_path}/none"))
    assert not passed(findings)
    assert "UNAVAILABLE" in table(findings)
