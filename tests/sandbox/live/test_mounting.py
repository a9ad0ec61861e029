"""Where there can be an overlay, where not and why, and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from iact.core.errors import WorkspaceError
from iact.sandbox.live import collect, mounting, open_live
from tests.sandbox.live.conftest import Open
from tests.sandbox.live.processes import shell
from tests.sandbox.live.trees import plant, refreshed


def test_it_is_mounted_without_devices_and_set_id_and_taken_away(directory: Path, opened: Open) -> None:
    overlay = opened()
    (row,) = [line for line in Path("/proc/mounts").read_text().splitlines() if f" {overlay.folder} " in line]
    assert {"nosuid", "nodev", "rw"} < set(row.split()[3].split(","))
    overlay.close()
    overlay.close()
    assert not overlay.folder.is_mount()


def test_what_was_not_applied_is_there_the_next_time(directory: Path, opened: Open) -> None:
    plant(directory, {"a": "one", "d/x": "one"})
    first = opened()
    (first.folder / "a").write_text("mine")
    os.utime(first.folder / "d" / "x")
    first.close()
    second = opened()
    assert [change.path for change in second.changes()] == ["a"]
    assert (second.folder / "a").read_text() == "mine"
    assert sorted(os.listdir(second.folder.parent / "upper")) == ["a"]


def test_it_is_taken_away_though_somebody_is_in_it(directory: Path, opened: Open, tmp_path: Path) -> None:
    overlay = opened()
    with shell(overlay.folder, tmp_path / "job") as job:
        overlay.close()
        assert not overlay.folder.is_mount()
        again = opened()
        (again.folder / "new").write_text("x")
        assert job.run("pwd") == str(tmp_path / "job")


@pytest.mark.parametrize(
    "name", ["a b", "a,b", "a:b", "a\\b", "ä", "a\nb", 'a"b', "a=b", "a\\,b:c", os.fsdecode(b"\xff")]
)
def test_names_that_mean_something_to_the_kernel(name: str, tmp_path: Path) -> None:
    directory = plant(tmp_path / name, {"file": "x"})
    overlay = open_live(directory, tmp_path / f"{name}-store")
    try:
        assert os.listdir(overlay.folder) == ["file"]
        (overlay.folder / "new").touch()
        refreshed(overlay)
        assert [change.path for change in overlay.changes()] == ["new"]
    finally:
        overlay.close()
    assert not (tmp_path / f"{name}-store" / "merged").is_mount()


def refused(directory: Path, store: Path, match: str) -> None:
    with pytest.raises(WorkspaceError, match=match) as raised:
        open_live(directory, store)
    assert str(raised.value).endswith(".")
    assert not (store / "merged").is_mount()


def test_places_that_can_t_be(tmp_path: Path, directory: Path) -> None:
    refused(directory, directory / "data" / "sessions" / "s" / "live", "contains iact's own data.*IACT_DATA")
    refused(tmp_path, directory / "live", "contains iact's own data")
    refused(tmp_path / "store" / "upper" / "x", tmp_path / "store", "No such file")
    (tmp_path / "store" / "upper" / "x").mkdir(parents=True)
    refused(tmp_path / "store" / "upper" / "x", tmp_path / "store", "is inside the data that iact keeps")
    (tmp_path / "file").touch()
    refused(tmp_path / "file", tmp_path / "other", "is not a folder")
    refused(tmp_path / "missing", tmp_path / "other", "No such file")


def test_another_file_system_inside_it(tmp_path: Path, directory: Path) -> None:
    (directory / "inner").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "test", str(directory / "inner")], check=True)
    try:
        refused(directory, tmp_path / "store", f"Another file system is mounted in.*{directory}/inner")
        open_live(directory / "inner", tmp_path / "store").close()
    finally:
        subprocess.run(["umount", str(directory / "inner")], check=True)


def test_a_store_on_an_overlay(directory: Path, opened: Open, tmp_path: Path) -> None:
    """As in a container: the kernel puts no upper layer on an overlay."""
    overlay = opened()
    other = plant(tmp_path / "other", {"a": "x"})
    refused(other, overlay.folder / "store", "can't be overlaid.*ext4")


@pytest.mark.parametrize("kind", ["nfs4", "vfat", "fuse.sshfs"])
def test_file_systems_that_can_t_be(
    kind: str, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mounting.mounts()
    monkeypatch.setattr(mounting, "mounts", lambda: [*table, mounting.Mount(directory, kind, "far:/away")])
    refused(directory, tmp_path / "store", f"is on a file system \\({kind}\\)")


def test_an_ordinary_user_is_told(directory: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        os.chmod(tmp_path, 0o777)
        child = os.fork()
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            return
        status = 1
        try:
            for folder in tmp_path.parents:
                if folder.stat().st_mode & 0o011 != 0o011:
                    folder.chmod(folder.stat().st_mode | 0o011)
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            refused(directory, tmp_path / "store", "only root may mount.*run the product as root")
            status = 0
        finally:
            os._exit(status)
    refused(directory, tmp_path / "store", "only root may mount")


def test_what_a_killed_process_left_is_collected(tmp_path: Path) -> None:
    data, directory = tmp_path / "data", plant(tmp_path / "directory", {"a": "one"})
    stores = [data / "sessions" / name / "live" for name in ("dead", "alive")]
    child = os.fork()
    if not child:
        try:
            overlay = open_live(directory, stores[0])
            (overlay.folder / "a").write_text("mine")
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    alive = open_live(directory, stores[1])
    try:
        assert (stores[0] / "merged").is_mount()
        assert collect(data) == [stores[0] / "merged"]
        assert not (stores[0] / "merged").is_mount()
        assert alive.folder.is_mount()
        assert collect(data) == collect(tmp_path / "elsewhere") == []
    finally:
        alive.close()
    again = open_live(directory, stores[0])
    assert [change.path for change in again.changes()] == ["a"]
    again.close()


def test_a_damaged_memory_is_told(directory: Path, opened: Open) -> None:
    overlay = opened()
    (overlay.folder / "a").touch()
    overlay.changes()
    overlay.close()
    (overlay.folder.parent / "base.json").write_text('{"first": {"../x": []}}')
    with pytest.raises(WorkspaceError, match=r"base\.json is damaged"):
        opened()
    assert not overlay.folder.is_mount()
