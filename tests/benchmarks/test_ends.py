"""The table of ends sees what is left, and its fifth that is a test has something of everything."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from pathlib import Path

from benchmarks.ends import report
from benchmarks.ends.cells import BACKENDS, CELLS, COMMANDS, ENDINGS, MOMENTS, Cell, a_fifth
from benchmarks.ends.played import Outcome
from benchmarks.ends.traces import Place

KILLED = Cell("run", "KILL", "call running", "docker")


def place(folder: Path) -> Place:
    data, temporary = folder / "data", folder / "tmp"
    data.mkdir()
    temporary.mkdir()
    return Place(data, temporary, "7200.815")


def test_the_fifth_has_every_command_ending_moment_and_backend() -> None:
    fifth = a_fifth()
    assert len(fifth) == len([cell for cell in CELLS if not cell.why_not]) // 5
    assert {cell.command for cell in fifth} == set(COMMANDS)
    assert {cell.ending for cell in fifth} == set(ENDINGS)
    assert {cell.moment for cell in fifth} == set(MOMENTS)
    assert {cell.backend for cell in fifth} == set(BACKENDS)


def test_a_process_is_seen_until_it_has_ended(tmp_path: Path) -> None:
    looked_at = place(tmp_path)
    assert not looked_at.has_marked()
    with subprocess.Popen(["sh", "-c", "sleep 7200.815; true"], start_new_session=True) as process:
        try:
            while not looked_at.has_marked():
                assert process.poll() is None
            assert len(looked_at.processes()) == 2
            assert "sleep 7200.815" in " ".join(looked_at.traces(()).going_on)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert not looked_at.traces(())


def test_a_lock_and_a_temporary_file_are_seen(tmp_path: Path) -> None:
    looked_at = place(tmp_path)
    (looked_at.temporary / "left").touch()
    with (looked_at.data / "journal.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        found = looked_at.traces(())
    assert (found.going_on, found.lying) == (("lock journal.lock",), ("temporary file left",))
    assert looked_at.traces(()).going_on == ()


def test_the_table_says_what_was_left_what_is_wrong_and_what_can_t_be() -> None:
    well = Outcome(KILLED, 0.34, -9, ("container a", "container b", "claim c"), ("It goes on.",), "")
    other = Cell("run", "INT", "call running", "docker")
    text = report.table(CELLS, {KILLED: well, other: Outcome(other, 15.0, None, (), (), "still there")})
    (row,) = [
        line for line in text.splitlines() if line.startswith("| `run` | call running") and "0.3" in line
    ]
    assert "| **15.0** | not played | not played | 0.3 2c 1l |" in row
    assert "105 cells can't be: off:" in text
    assert "| call running | It goes on. | 1 |" in text
