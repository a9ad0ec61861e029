"""A host's claim on what it starts: it holds as long as the host lives, and is known without process numbers."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import itertools
import os
import secrets
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from iact.core.errors import SandboxUnavailable, WorkspaceError
from iact.sandbox import BubblewrapHost, DockerHost, owner, reaper
from iact.sandbox.bubblewrap import cgroups
from iact.sandbox.bubblewrap import host as bubblewrap_host
from iact.sandbox.live.layer import Layer
from iact.sandbox.owner import Claim
from tests.sandbox.inside import hosting

_HOLDING = """
import sys
from pathlib import Path
from iact.sandbox.owner import Claim
claim = Claim(Path(sys.argv[1]))
print(claim.name, flush=True)
sys.stdin.read()
"""


def holding(data: Path, *inside: str) -> subprocess.Popen[str]:
    """A process that claims something in `data`, and prints its name."""
    return subprocess.Popen(
        [*inside, sys.executable, "-c", _HOLDING, str(data)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip


def name_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_claim_holds_until_it_is_released(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    assert not list(tmp_path.iterdir()), "nothing is claimed before it is used"
    assert claim.name == claim.name
    assert owner.holds(tmp_path, claim.name)
    assert owner.given_up(tmp_path) == []
    claim.release()
    claim.release()
    assert owner.holds(tmp_path, claim.name) is None
    assert not list((tmp_path / owner.CLAIMS).iterdir())


def test_two_threads_take_one_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)
    names = itertools.count()

    def name(size: int) -> str:
        with suppress(threading.BrokenBarrierError):  # as it should be: the other doesn't come
            both.wait(timeout=0.3)
        return f"{next(names):032x}"

    monkeypatch.setattr(secrets, "token_hex", name)
    claim = Claim(tmp_path)
    with ThreadPoolExecutor(2) as threads:
        taken = [threads.submit(lambda: claim.name) for _ in range(2)]
    assert {each.result() for each in taken} == {claim.name}
    assert [file.name for file in (tmp_path / owner.CLAIMS).iterdir()] == [claim.name]
    claim.release()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """A data directory in which nothing can be claimed. Returns the threads that tried."""
    tried = []

    def take(claim: Claim, name: str) -> None:
        tried.append(threading.current_thread())
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Claim, "_take", take)
    return tried


def test_where_nothing_can_be_claimed_no_module_starts_and_the_reason_is_told(
    tmp_path: Path, full: list[threading.Thread]
) -> None:
    async def scenario() -> None:
        async with hosting(tmp_path) as host:
            with pytest.raises(SandboxUnavailable, match=r"No space left on device.*free some space"):
                await host.start("shell", session="s", workspace=tmp_path, report=print)

    asyncio.run(scenario())
    assert full
    assert threading.main_thread() not in full, "files are not written on the event loop"


def test_where_nothing_can_be_claimed_the_pool_stays_empty(
    tmp_path: Path, full: list[threading.Thread]
) -> None:
    async def scenario() -> None:
        host = DockerHost(tmp_path, pool=1)
        host.pool.fill()
        assert host.pool._filling is not None
        await host.pool._filling
        assert full
        assert host.pool.ready == 0
        await host.close()

    asyncio.run(scenario())


def test_where_nothing_can_be_claimed_there_is_no_layer_and_the_reason_is_told(
    tmp_path: Path, full: list[threading.Thread]
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(WorkspaceError, match=r"No space left on device.*make sure that"):
        Layer(tmp_path / "folder", tmp_path / "data")


def test_what_is_abandoned_is_known_as_given_up(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    name = claim.name
    claim.abandon()
    assert owner.holds(tmp_path, name) is False
    assert owner.given_up(tmp_path) == [name]
    owner.forget_all(tmp_path)
    assert owner.given_up(tmp_path) == []


@pytest.mark.parametrize("inside", [(), ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")])
def test_the_kernel_ends_a_claim_with_its_process(tmp_path: Path, inside: tuple[str, ...]) -> None:
    if inside and os.geteuid() != 0:
        pytest.skip("a PID namespace needs root")
    with holding(tmp_path, *inside) as process:
        name = name_of(process)
        folder = reaper.sockets(tmp_path) / f"{name}@1"
        folder.mkdir(parents=True)
        assert owner.holds(tmp_path, name)
        assert reaper.reap_folders(tmp_path) == []

        # The number is that of another process, or of none, in our namespace.
        labels = owner.belongs(name, data=tmp_path) | {owner.PID: "1", owner.STARTED: "0"}
        assert not owner.left_behind(labels, tmp_path)
        assert process.stdin is not None
        process.kill()
        assert process.stdout is not None
        assert process.stdout.read() == "", "it has ended, whatever number it has"
    assert owner.left_behind(labels, tmp_path)
    assert reaper.reap_folders(tmp_path) == [folder]


def test_a_claim_of_which_nothing_is_known_is_decided_by_the_process(tmp_path: Path) -> None:
    """It may be one in another directory, which has this path in another mount namespace."""
    claim = Claim(tmp_path / "theirs")
    ours = owner.belongs(claim.name, data=tmp_path)
    assert not owner.left_behind(ours, tmp_path)
    assert owner.left_behind({**ours, owner.STARTED: "0"}, tmp_path)
    assert owner.left_behind({}, tmp_path)
    claim.release()


def test_without_locks_the_process_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    claim = Claim(tmp_path)
    assert claim.name == str(owner.Process.current())
    assert owner.holds(tmp_path, claim.name)
    assert owner.holds(tmp_path, claim.name + "0") is False
    assert list((tmp_path / owner.CLAIMS).iterdir()) == []
    claim.release()


def test_the_folders_of_an_earlier_version_are_known_by_their_process(tmp_path: Path) -> None:
    place = reaper.sockets(tmp_path)
    alive, dead = place / f"{owner.Process.current()}@1", place / "1-0.0@1"
    for folder in (alive, dead, place / "nobody's"):
        folder.mkdir(parents=True)
    assert reaper.reap_folders(tmp_path) == [dead]
    assert alive.is_dir()


def test_groups_of_an_unknown_claim_and_of_earlier_versions_are_known_by_their_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path / "groups")
    claim = Claim(tmp_path)
    unknown = cgroups.name_of(tmp_path, claim)
    ours = str(owner.Process.current())
    claim.release()
    another = Claim(tmp_path / "another")
    other = cgroups.name_of(tmp_path / "another", another)
    left = [f"{unknown.replace(ours, '1-0.0')}@1", "1-0.0@1"]
    alive = [f"{unknown}@2", f"{ours}@2", f"{other}@2", "of somebody@else"]
    for name in left + alive:
        (tmp_path / "groups" / "iact" / name).mkdir(parents=True)

    assert sorted(cgroups.reap(tmp_path)) == sorted(left)
    assert sorted(folder.name for folder in (tmp_path / "groups" / "iact").iterdir()) == sorted(alive)
    another.release()


def test_processes_of_another_namespace_are_not_killed_by_the_number_that_they_have_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel shows all of them as 0, which means our own process group."""
    killed = []
    monkeypatch.setattr(os, "kill", lambda number, signal: killed.append(number))
    (tmp_path / "cgroup.procs").write_text("0\n7\n0\n", encoding="ascii")
    cgroups.ControlGroup((tmp_path,)).kill()
    assert killed == [7]


def test_a_claim_is_remembered_while_something_of_it_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_ROOT", tmp_path / "groups")
    monkeypatch.setattr(bubblewrap_host, "check", lambda: None)
    claim = Claim(tmp_path)
    group = tmp_path / "groups" / "iact" / f"{cgroups.name_of(tmp_path, claim)}@1"
    still_in_use = group / "process"
    still_in_use.mkdir(parents=True)
    claim.abandon()

    asyncio.run(BubblewrapHost(tmp_path).open())
    assert owner.given_up(tmp_path) == [claim.name]
    still_in_use.rmdir()
    asyncio.run(BubblewrapHost(tmp_path).open())
    assert owner.given_up(tmp_path) == []
    assert not group.exists()


def test_folders_outside_the_data_directory_are_left_alone_if_nothing_is_known_of_their_claim(
    tmp_path: Path,
) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "sockets"
    known, unknown = Claim(data), Claim(tmp_path / "another")
    for claim in (known, unknown):
        (elsewhere / f"{claim.name}@1").mkdir(parents=True)
    known.abandon()
    assert reaper.reap_below(elsewhere, data) == [elsewhere / f"{known.name}@1"]
    unknown.release()
