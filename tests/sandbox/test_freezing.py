"""What stops all that a module runs, where a control group does it and where none does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.sandbox import owner
from iact.sandbox.bubblewrap import cgroups
from iact.sandbox.bubblewrap.processes import stop_all
from iact.sandbox.limits import Limits

TREE = """
import os, subprocess, sys
deeper = int(sys.argv[1])
if deeper:
    subprocess.Popen([sys.executable, "-c", sys.argv[2], str(deeper - 1), sys.argv[2]])
print(os.getpid(), flush=True)
while True:
    pass
"""
DEPTH = 3


@pytest.fixture
def tree() -> Iterator[list[int]]:
    """The processes of a tree that computes, the first one first; killed afterwards."""
    with subprocess.Popen([sys.executable, "-c", TREE, str(DEPTH), TREE], stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        found = sorted(int(first.stdout.readline()) for _ in range(DEPTH + 1))
        yield [first.pid, *(each for each in found if each != first.pid)]
        for process in found:
            os.kill(process, 9)


def state(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def time_of(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]


def test_a_process_is_stopped_with_all_that_came_of_it(tree: list[int]) -> None:
    stop_all(tree[0])
    assert [state(process) for process in tree] == ["T"] * (DEPTH + 1)
    stop_all(tree[0])


def test_a_process_that_is_gone_stops_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    stop_all(gone.pid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has control groups")
def test_a_control_group_stands_still_and_dies(tree: list[int]) -> None:
    group = cgroups.make(Limits(), "test-of-freezing")
    assert group is not None
    for process in tree:
        for folder in group.folders:
            (folder / "cgroup.procs").write_text(str(process))
    assert group.freeze()
    assert group.freeze(), "twice is as good as once"
    before = [time_of(process) for process in tree]
    sum(range(2_000_000))  # while they would have computed
    assert [time_of(process) for process in tree] == before
    group.kill()
    os.waitid(os.P_PID, tree[0], os.WEXITED | os.WNOWAIT)
    group.remove()
    assert not any(folder.exists() for folder in group.folders)


FROZEN = """
import subprocess, sys
from pathlib import Path
from iact.sandbox.bubblewrap import cgroups
from iact.sandbox.limits import Limits
from iact.sandbox.owner import Claim

data = Path(sys.argv[1])
group = cgroups.make(Limits(), cgroups.name_of(data, Claim(data)))
child = subprocess.Popen([sys.executable, "-c", "while True: pass"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for folder in group.folders:
    (folder / "cgroup.procs").write_text(str(child.pid))
assert group.freeze()
print(child.pid, *group.folders, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has control groups")
def test_what_a_killed_process_left_standing_still_is_ended(tmp_path: Path) -> None:
    """In the old form nothing that is frozen dies, whatever is sent to it."""
    made = subprocess.run(
        [sys.executable, "-c", FROZEN, str(tmp_path)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    left = owner.Process(int(made[0]), owner.start_time(int(made[0])))
    assert left.alive
    cgroups.reap(tmp_path / "another")
    assert left.alive
    cgroups.reap(tmp_path)
    assert not any(Path(folder).exists() for folder in made[1:])
    assert not left.alive


def test_no_group_can_not_be_frozen() -> None:
    assert not cgroups.ControlGroup().freeze()
