"""What one call may bring: what can't be an exit status, carried data that are too long, and floods of next to nothing."""

from __future__ import annotations

import pytest

from iact.core.errors import ModuleFault
from iact.core.modules.client import Completed
from iact.core.modules.outcome_reader import CallLimits, OutcomeReader, exit_status
from iact.core.ports import JSON
from protos.iact.ext_module.v1 import ext_module_pb2 as pb


def ended(result: pb.Result) -> Completed:
    reading = OutcomeReader(CallLimits())
    reading.take(pb.InvokeEvent(result=result).SerializeToString())
    end = reading.end()
    assert isinstance(end, Completed)
    return end


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("0", 0), ("137", 137), ("-9", -9), ("999999999", 999999999),
        ("1000000000", None), ("-1000000000", None), ("1" * 4000, None), ("1.0", None), ("true", None),
        ('"0"', None), ("null", None), ("[0]", None),
    ],
)  # fmt: skip
def test_what_can_be_no_exit_status_is_dropped(written: str, status: int | None) -> None:
    data = ended(pb.Result(data_json=f'{{"exit_status": {written}, "cwd": "/"}}')).data
    assert data.get("exit_status") == status
    assert ("exit_status" in data) is (status is not None)
    assert data["cwd"] == "/"


@pytest.mark.parametrize("data", [None, "text", [], {}, {"exit_status": {}}])
def test_data_without_one_has_none(data: JSON) -> None:
    assert exit_status(data) is None


def test_what_is_carried_is_told_from_nothing_and_bounded() -> None:
    assert ended(pb.Result()).carried is None
    assert ended(pb.Result(carried=b"")).carried == b""
    assert ended(pb.Result(carried=b"\0" * (256 << 10))).carried == b"\0" * (256 << 10)
    with pytest.raises(
        ModuleFault, match=r"asked to carry 262,145 bytes to its next call; the limit is 262,144\."
    ):
        ended(pb.Result(carried=b"\0" * ((256 << 10) + 1)))


TINY = pb.InvokeEvent(progress=pb.Progress(text="x")).SerializeToString()
SHORT = pb.InvokeEvent(output=pb.Output(text="x" * 63)).SerializeToString()
LINE = pb.InvokeEvent(output=pb.Output(text="x" * 64)).SerializeToString()


@pytest.mark.parametrize("event", [TINY, SHORT, pb.InvokeEvent().SerializeToString()])
def test_a_flood_of_next_to_nothing_is_cut(event: bytes) -> None:
    reading = OutcomeReader(CallLimits())
    for _ in range(20_000):
        reading.take(event)
    with pytest.raises(ModuleFault, match=r"sent 20,001 nearly empty events in one call\."):
        reading.take(event)


def test_what_comes_slowly_or_holds_something_is_none() -> None:
    reading = OutcomeReader(CallLimits())
    for count in range(40_000):
        reading.take(TINY, seconds=count / 100)  # a hundred a second
    reading = OutcomeReader(CallLimits())
    for _ in range(40_000):
        reading.take(LINE)
