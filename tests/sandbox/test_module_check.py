"""`iact module check`: every shipped module passes inside its container, and a broken one is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import SandboxError, UsageError
from iact.commands.check import check_module
from iact.settings import Settings
from sandbox.payload import package_folder
from tests.sandbox.calling import need_bubblewrap, write_module

WRONG = """
from ext_modules.sdk import Module, wire

module = Module("wrong", "Claims an action of the core.")

@module.function(impact=0, alias="CALL")
def act(text: str) -> str:
    return text
"""

FOREIGN = """
import asyncio, json, sys
import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

SERVICE = "iact.ext_module.v1.ExtModule"
DOUBLE = pb.Function(name="double", summary="Double a number.", impact=pb.IMPACT_OBSERVE, idempotent=True, parameters_schema=json.dumps(
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}))

def describe(request, context):
    return pb.Manifest(protocol=1, name="foreign", version="1", purpose="Doubles.", functions=[DOUBLE])

def invoke(request, context):
    if request.function != "double":
        yield pb.InvokeEvent(error=pb.Error(type="UnknownFunction", message="There is only double."))
        return
    try:
        given = json.loads(request.arguments_json)
    except ValueError:
        given = None
    if not isinstance(given, dict) or list(given) != ["n"] or type(given["n"]) is not int:
        yield pb.InvokeEvent(error=pb.Error(type="BadArguments", message="It takes n, an integer."))
        return
    yield pb.InvokeEvent(result=pb.Result(text=str(2 * given["n"])))

def check(request, context):
    return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)

def handlers(service, **methods):
    return grpc.method_handlers_generic_handler(service, methods)

async def main():
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    server.add_generic_rpc_handlers((
        handlers(SERVICE,
            Describe=grpc.unary_unary_rpc_method_handler(
                describe, pb.DescribeRequest.FromString, pb.Manifest.SerializeToString),
            Invoke=grpc.unary_stream_rpc_method_handler(
                invoke, pb.InvokeRequest.FromString, pb.InvokeEvent.SerializeToString)),
        handlers("grpc.health.v1.Health", Check=grpc.unary_unary_rpc_method_handler(
            check, health_pb2.HealthCheckRequest.FromString, health_pb2.HealthCheckResponse.SerializeToString)),
    ))
    reflection.enable_server_reflection((SERVICE, reflection.SERVICE_NAME), server)
    server.add_insecure_port("unix:" + sys.argv[sys.argv.index("--socket") + 1])
    await server.start()
    await server.wait_for_termination()

asyncio.run(main())
"""
"""A server of the contract that knows nothing of the SDK; it stands for one in another language."""


def test_a_program_without_the_sdk_keeps_the_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_bubblewrap()
    folder = tmp_path / "foreign"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "server.py").write_text(FOREIGN)
    (folder / "bin" / "start").write_text('#!/bin/sh\nexec python3 "$(dirname "$0")/server.py" "$@"\n')
    card = 'name = "foreign"\nsummary = "Doubles."\ncommand = ["./bin/start", "--quiet"]\n'
    (folder / "module.toml").write_text(card)
    status = check_module(folder, Settings(), backend="all", as_json=True)
    findings = json.loads(capsys.readouterr().out)
    assert status == 0, [one for one in findings if not one["ok"]]
    assert {finding["backend"] for finding in findings} == {"docker", "bubblewrap"}
    with pytest.raises(UsageError, match="has a program of its own"):
        check_module(folder, Settings(), here=True)


def test_a_python_file_is_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plain.py"
    file.write_text(WRONG.replace('"wrong"', '"plain"').replace(', alias="CALL"', ""))
    assert check_module(file, Settings()) == 0, capsys.readouterr().out
    assert check_module(file, Settings(), here=True) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", ["app", "browser", "files", "shell", "web"])
def test_what_we_ship_passes_in_its_container(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    need_bubblewrap()
    status = check_module(package_folder("ext_modules") / name, Settings(), backend="all", as_json=True)
    findings = json.loads(capsys.readouterr().out)
    assert status == 0, findings
    assert {finding["backend"] for finding in findings} == {"docker", "bubblewrap"}
    assert {finding["check"] for finding in findings} >= {
        "describe: the core takes the manifest", "health: SERVING", "the module is still there"
    }  # fmt: skip


def test_what_the_core_would_refuse_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_module(tmp_path, "wrong", WRONG) / "wrong"
    assert check_module(folder, Settings()) == 1
    assert "FAIL  describe: the core takes the manifest" in capsys.readouterr().out


def test_here_needs_no_sandbox(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent")
    assert check_module(package_folder("ext_modules") / "files", Settings(), here=True) == 0
    assert "ok    health: SERVING" in capsys.readouterr().out


def test_what_is_no_module_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no module\.toml"):
        check_module(tmp_path, Settings())
    folder = write_module(tmp_path, "dead", "raise RuntimeError('no')\n") / "dead"
    with pytest.raises(SandboxError, match="RuntimeError: no"):
        check_module(folder, Settings())
