"""The filter that a viewer puts on itself: every call of the kernel's, run through the program as the kernel would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_modules.sdk import viewer

ALLOW, DENY = 0x7FFF0000, 0x00050001
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"connect": 42, "sendto": 44, "socket": 41, "socketpair": 53},
    "aarch64": {"connect": 203, "sendto": 206, "socket": 198, "socketpair": 199},
}
WORD = (1 << 32) - 1


def verdict(machine: str, number: int, arguments: tuple[int, ...], *, architecture: int | None = None) -> int:
    """What the filter says, read step by step (Documentation/userspace-api/seccomp_filter.rst)."""
    data = {0: number, 4: MACHINES[machine] if architecture is None else architecture}
    for index, value in enumerate(arguments):
        data |= {16 + 8 * index: value & WORD, 20 + 8 * index: value >> 32}
    steps, at, held = viewer.program(machine), 0, 0
    for _ in steps:
        code, if_true, if_false, operand = steps[at]
        at += 1
        match code:
            case 0x20:
                held = data[operand]
            case 0x54:
                held &= operand
            case 0x15:
                at += if_true if held == operand else if_false
            case 0x35:
                at += if_true if held >= operand else if_false
            case 0x06:
                return operand
    raise AssertionError("the program has no end")


machines = st.sampled_from(sorted(MACHINES))
wide = st.integers(0, (1 << 64) - 1) | st.integers(0, 20)
six = st.tuples(wide, wide, wide, wide, wide, wide)


@given(machines, six, st.integers(0, 1024))
def test_what_is_about_no_socket_is_allowed(machine: str, arguments: tuple[int, ...], number: int) -> None:
    if number not in CALLS[machine].values():
        assert verdict(machine, number, arguments) == ALLOW


@given(machines, six)
def test_nothing_is_connected_to(machine: str, arguments: tuple[int, ...]) -> None:
    assert verdict(machine, CALLS[machine]["connect"], arguments) == DENY


@given(machines, six)
def test_a_datagram_goes_to_no_address(machine: str, arguments: tuple[int, ...]) -> None:
    said = verdict(machine, CALLS[machine]["sendto"], arguments)
    assert said == (DENY if arguments[4] else ALLOW)


@given(machines, st.sampled_from(["socket", "socketpair"]), six)
def test_no_socket_of_this_machines_sends_by_name(
    machine: str, call: str, arguments: tuple[int, ...]
) -> None:
    family, kind = arguments[0] & WORD, arguments[1] & 0xF
    said = verdict(machine, CALLS[machine][call], arguments)
    assert said == (DENY if family == 1 and kind not in (1, 5) else ALLOW)


@given(machines, six, st.integers(0, WORD), st.integers(0x40000000, WORD))
def test_no_other_convention_of_calling_gets_round_it(
    machine: str, arguments: tuple[int, ...], other: int, number: int
) -> None:
    assert verdict(machine, number, arguments) == DENY
    if other != MACHINES[machine]:
        assert verdict(machine, CALLS[machine]["connect"], arguments, architecture=other) == DENY


TRIED = """
import os, socket, sys, tempfile
from ext_modules.sdk import viewer
viewer.FOLDER, viewer._OWN = sys.argv[1], (sys.argv[1],)
there = socket.socket(socket.AF_UNIX)
there.bind(sys.argv[2] + "/s")
there.listen()
os.mkfifo(sys.argv[2] + "/p")
pipe = os.open(sys.argv[2] + "/p", os.O_RDWR)
viewer.give_up(way_out=sys.argv[3] == "out")
for name, act in {
    "connect": lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2] + "/s"),
    "pipe": lambda: os.open(sys.argv[2] + "/p", os.O_WRONLY | os.O_NONBLOCK),
    "write": lambda: open(sys.argv[2] + "/f", "w").close(),
    "own": lambda: (os.mkdir(sys.argv[1] + "/d"), open(sys.argv[1] + "/d/f", "w").close(), os.rename(sys.argv[1] + "/d/f", sys.argv[1] + "/f")),
    "null": lambda: open("/dev/null", "w").close(),
    "pair": lambda: (pair := socket.socketpair())[0].sendall(b"x"),
}.items():
    try:
        act()
        print(name)
    except OSError:
        pass
"""


@pytest.mark.parametrize(("way_out", "left"), [("none", set()), ("out", {"connect"})])
def test_a_process_that_gave_up_reaches_nothing_but_its_own(
    tmp_path: Path, way_out: str, left: set[str]
) -> None:
    own, theirs = tmp_path / "own", tmp_path / "theirs"
    own.mkdir()
    theirs.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", TRIED, str(own), str(theirs), way_out],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(ran.stdout.split()) == {"own", "null", "pair"} | left
