"""The committed stubs are what the contract says, and carry the names that others script against."""

from __future__ import annotations

from pathlib import Path

import pytest

from protos import generate
from protos.iact.ext_module.v1 import ext_module_pb2 as pb

CONTRACT = generate.ROOT / "protos/iact/ext_module/v1/ext_module.proto"


def test_the_committed_stubs_are_those_of_the_contract(tmp_path: Path) -> None:
    written = generate.generate(tmp_path)
    assert len(written) == 4
    for path in written:
        fresh, committed = (tmp_path / path).read_text(), (generate.ROOT / path).read_text()
        assert fresh == committed, f"{path} is out of date; run `python -m protos.generate`."


def test_the_service_has_its_public_name_and_methods() -> None:
    service = pb.DESCRIPTOR.services_by_name["ExtModule"]
    assert service.full_name == "iact.ext_module.v1.ExtModule"
    streams = {method.name: (method.client_streaming, method.server_streaming) for method in service.methods}
    assert streams == {
        "Describe": (False, False),
        "Invoke": (False, True),
        "Answer": (False, False),
        "Converse": (True, True),
        "Watch": (False, True),
        "EndBackground": (False, False),
    }


def test_every_message_enum_and_method_is_explained() -> None:
    """A module in another language is written from this file alone: nothing in it goes without words."""
    silent = []
    before = ""
    for line in CONTRACT.read_text().splitlines():
        text = line.strip()
        starts = text.startswith(("message ", "rpc ", "enum "))
        if starts and not before.startswith("//"):
            silent.append(text)
        before = text
    assert silent == []


@pytest.mark.parametrize(
    "field", ["call_id", "session", "agent", "function", "arguments_json", "values", "timeout_ms"]
)
def test_a_request_carries(field: str) -> None:
    assert field in pb.InvokeRequest.DESCRIPTOR.fields_by_name


def test_a_call_ends_with_result_or_error() -> None:
    events = [field.name for field in pb.InvokeEvent.DESCRIPTOR.oneofs_by_name["event"].fields]
    assert events == ["progress", "output", "artifact", "state", "result", "error", "ask"]
