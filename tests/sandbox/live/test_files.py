"""Files of every kind, and what stands in the way of applying them."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from iact.core.errors import WorkspaceError
from iact.core.ports import FileState
from iact.sandbox.live import compare, copying, digests, open_live, steps
from iact.sandbox.live.overlay import Overlay
from tests.sandbox.live.conftest import Open
from tests.sandbox.live.trees import plant, refreshed, snapshot


@pytest.fixture
def overlay(directory: Path, opened: Open) -> Overlay:
    plant(directory, {"a": "one\n", "d/x": "one\n", "d/y": "one\n"})
    made = opened()
    refreshed(made)
    return made


def paths(overlay: Overlay) -> list[str]:
    return [change.path for change in overlay.changes()]


def outcomes(overlay: Overlay, *force: str) -> dict[str, str]:
    found = overlay.apply(paths(overlay), force=force)
    return {each.path: each.outcome for each in found}


def why(overlay: Overlay, path: str) -> str:
    (found,) = overlay.apply([path])
    return found.why


# --- kinds of files -----------------------------------------------------------------------------


def test_links_are_made_as_they_are_and_never_followed(
    overlay: Overlay, directory: Path, tmp_path: Path
) -> None:
    outside = plant(tmp_path / "outside", {"secret": "not to be written"})
    folder = overlay.folder
    (folder / "out").symlink_to(outside)
    (folder / "a").unlink()
    (folder / "a").symlink_to(outside / "secret")
    (folder / "nowhere").symlink_to("x" * 3000)
    before = outside.stat()
    assert set(outcomes(overlay).values()) == {"applied"}
    assert os.readlink(directory / "a") == str(outside / "secret")
    assert os.readlink(directory / "nowhere") == "x" * 3000
    assert (outside / "secret").read_text() == "not to be written"
    assert outside.stat().st_mtime_ns == before.st_mtime_ns


def test_a_link_below_in_the_place_of_a_folder_leads_nowhere(
    overlay: Overlay, directory: Path, tmp_path: Path
) -> None:
    outside = plant(tmp_path / "outside", {"x": "theirs\n"})
    (overlay.folder / "d" / "x").write_text("mine\n")
    (overlay.folder / "d" / "new").write_text("mine\n")
    (overlay.folder / "d" / "y").unlink()
    overlay.changes()
    shutil.rmtree(directory / "d")
    (directory / "d").symlink_to(outside)
    changes = overlay.changes()
    assert all(change.conflict for change in changes if change.path != "d/new")
    overlay.apply([change.path for change in changes])
    assert snapshot(outside) == {"x": ("file", 0o644, b"theirs\n")}
    overlay.apply([change.path for change in changes], force=[change.path for change in changes])
    assert snapshot(outside) == {"x": ("file", 0o644, b"theirs\n")}


def test_the_link_that_comes_between_two_steps_leads_nowhere(
    overlay: Overlay, directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = plant(tmp_path / "outside", {"x": "theirs\n"})
    (overlay.folder / "d" / "x").write_text("mine\n")
    overlay.changes()
    real = copying.copy

    def swapped(source: int, target: int, size: int) -> str:
        shutil.rmtree(directory / "d")
        (directory / "d").symlink_to(outside)
        return real(source, target, size)

    monkeypatch.setattr(copying, "copy", swapped)
    (found,) = overlay.apply(["d/x"])
    assert found.outcome == "conflict"
    assert snapshot(outside) == {"x": ("file", 0o644, b"theirs\n")}


def test_modes_and_owners(overlay: Overlay, directory: Path) -> None:
    folder = overlay.folder
    if os.geteuid() == 0:
        os.chown(directory / "d", 1234, 1235)
        os.chown(directory / "a", 1236, 1237)
    refreshed(overlay)
    inode = (directory / "d" / "y").stat().st_ino
    (folder / "a").write_text("mine\n")
    (folder / "a").chmod(0o4751)
    (folder / "d" / "y").chmod(0o700)
    (folder / "d" / "new").write_text("new")
    (folder / "d" / "new").chmod(0o2644)
    found = {each.path: each for each in overlay.apply(paths(overlay))}
    assert {each.outcome for each in found.values()} == {"applied"}
    assert found["a"].why == "Its set-user-ID and set-group-ID bits were not applied."
    assert stat.S_IMODE((directory / "a").stat().st_mode) == 0o751
    assert stat.S_IMODE((directory / "d" / "new").stat().st_mode) == 0o644
    assert (directory / "d" / "y").stat().st_ino == inode
    if os.geteuid() == 0:
        assert ((directory / "a").stat().st_uid, (directory / "a").stat().st_gid) == (1236, 1237)
        assert ((directory / "d" / "new").stat().st_uid, (directory / "d" / "new").stat().st_gid) == (
            1234,
            1235,
        )
    assert paths(overlay) == []


def test_an_access_list_and_attributes_stay_and_file_rights_go(overlay: Overlay, directory: Path) -> None:
    os.setxattr(directory / "a", "user.mine", b"kept")
    os.setxattr(
        directory / "a", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000")
    )
    refreshed(overlay)
    (overlay.folder / "a").write_text("mine\n")
    assert outcomes(overlay) == {"a": "applied"}
    assert os.listxattr(directory / "a") == ["user.mine"]


def test_one_of_several_names_of_a_file(directory: Path, opened: Open) -> None:
    plant(directory, {"one": "1"})
    os.link(directory / "one", directory / "two")
    os.link(directory / "one", directory / "three")
    overlay = opened()
    refreshed(overlay)
    for name in ("one", "two"):
        (overlay.folder / name).write_text(name)
    os.link(overlay.folder / "one", overlay.folder / "four")
    found = {each.path: each for each in overlay.apply(paths(overlay))}
    assert {path: each.outcome for path, each in found.items()} == dict.fromkeys(
        ["one", "two", "four"], "applied"
    )
    assert found["one"].why == "It was one of 3 hard links to a file; the other links keep the old content."
    assert {name: (directory / name).read_text() for name in ("one", "two", "three", "four")} == {
        "one": "one", "two": "two", "three": "1", "four": "one"
    }  # fmt: skip
    assert (directory / "one").stat().st_nlink == (directory / "four").stat().st_nlink == 1


def test_holes_stay_holes_and_huge_files_are_not_read_through(overlay: Overlay, directory: Path) -> None:
    for name, size in (("sparse", 64 << 20), ("huge", 1 << 40)):
        with (overlay.folder / name).open("wb") as stream:
            stream.write(b"begin")
            stream.seek(size - 3)
            stream.write(b"end")
    told = {change.path: change.now for change in overlay.changes()}
    assert told["huge"] == FileState("file", 0o644, size=1 << 40, sha256="")
    assert outcomes(overlay) == {"huge": "applied", "sparse": "applied"}
    for name, size in (("sparse", 64 << 20), ("huge", 1 << 40)):
        status = (directory / name).stat()
        assert (status.st_size, status.st_blocks < 1000) == (size, True)
        with (directory / name).open("rb") as stream:
            assert stream.read(6) == b"begin\0"
            stream.seek(-4, os.SEEK_END)
            assert stream.read() == b"\0end"
    assert paths(overlay) == []
    refreshed(overlay)
    assert paths(overlay) == []


def test_special_files_are_never_made(overlay: Overlay, directory: Path) -> None:
    os.mkfifo(overlay.folder / "pipe")
    os.mknod(overlay.folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(overlay.folder)
        try:
            server.bind("socket")
        finally:
            os.chdir("/")
    found = {change.path: change.now for change in overlay.changes()}
    assert {path: now.target for path, now in found.items() if now} == {
        "pipe": "pipe", "device": "character device 1:3", "socket": "socket"
    }  # fmt: skip
    assert set(outcomes(overlay).values()) == {"failed"}
    assert why(overlay, "pipe") == "It is a pipe; only files, folders and links can be applied."
    assert sorted(os.listdir(directory)) == ["a", "d"]
    overlay.drop(paths(overlay))
    assert sorted(os.listdir(overlay.folder)) == ["a", "d"]


def test_odd_names(overlay: Overlay, directory: Path) -> None:
    odd = [
        "-rf",
        " ",
        "a\nb",
        "\x1b[31m",
        "%2e%2e",
        "…",
        os.fsdecode(b"\xff\xfe"),
        "c\u202ed",
        "x" * 255,
        "\\",
        "~",
    ]
    for name in odd:
        (overlay.folder / name).write_text(name.encode(errors="surrogateescape").hex())
    written = paths(overlay)
    assert "a%0Ab" in written
    assert "%1B[31m" in written
    assert "%252e%252e" in written
    assert "%FF%FE" in written
    assert set(outcomes(overlay).values()) == {"applied"}
    assert {*odd} < set(os.listdir(directory))


@pytest.mark.parametrize(
    "path", ["", "/", "..", "../a", "d/../a", "/etc/passwd", "%2e%2e/a", "a\0", "./a", "d//x", "\udcff"]
)
def test_a_path_that_is_none(path: str, overlay: Overlay) -> None:
    (found,) = overlay.apply([path], force=[path])
    assert (found.outcome, found.why) == ("failed", "This path is not in the live directory.")
    overlay.drop([path])
    assert overlay.patch(path) == ""


# --- what is in the way -------------------------------------------------------------------------


def test_what_the_user_changed_meanwhile_is_never_overwritten_unasked(
    overlay: Overlay, directory: Path
) -> None:
    folder = overlay.folder
    (folder / "a").write_text("mine\n")
    (folder / "d" / "x").unlink()
    (folder / "d" / "new").write_text("mine\n")
    assert not any(change.conflict for change in overlay.changes())
    (directory / "a").write_text("user")
    (directory / "d" / "x").write_text("user")
    (directory / "d" / "new").write_text("user")
    assert [change.conflict for change in overlay.changes()] == [True, True, True]
    assert set(outcomes(overlay).values()) == {"conflict"}
    assert {(directory / name).read_text() for name in ("a", "d/x", "d/new")} == {"user"}
    assert outcomes(overlay, "a", "d/x") == {"a": "applied", "d/x": "applied", "d/new": "conflict"}
    assert (directory / "a").read_text() == "mine\n"
    assert not (directory / "d" / "x").exists()


def test_a_conflict_is_remembered_over_a_restart(overlay: Overlay, directory: Path, opened: Open) -> None:
    (overlay.folder / "a").write_text("mine\n")
    (overlay.folder / "d" / "x").write_text("mine\n")
    overlay.changes()
    (overlay.folder / "d" / "y").write_text("mine\n")  # of a call that was never looked at
    overlay.close()
    (directory / "a").write_text("user")
    (directory / "d" / "y").write_text("user")
    again = opened()
    assert {change.path: change.conflict for change in again.changes()} == {
        "a": True,
        "d/x": False,
        "d/y": True,
    }
    refreshed(again)
    assert {change.path: change.conflict for change in again.changes()} == {
        "a": True,
        "d/x": False,
        "d/y": True,
    }


def test_a_folder_that_the_user_removed(overlay: Overlay, directory: Path) -> None:
    (overlay.folder / "d" / "new").write_text("mine\n")
    overlay.changes()
    shutil.rmtree(directory / "d")
    assert {change.path: change.conflict for change in overlay.changes()} == {"d": True, "d/new": False}
    assert outcomes(overlay) == {"d": "conflict", "d/new": "conflict"}
    assert outcomes(overlay, "d") == {"d": "applied", "d/new": "applied"}
    assert snapshot(directory / "d") == {"new": ("file", 0o644, b"mine\n")}


def test_a_copied_folder_without_changes_goes_with_the_users(overlay: Overlay, directory: Path) -> None:
    os.utime(overlay.folder / "d" / "x")
    overlay.changes()
    refreshed(overlay)
    shutil.rmtree(directory / "d")
    assert paths(overlay) == []
    refreshed(overlay)
    assert sorted(os.listdir(overlay.folder)) == ["a"]


def test_parts_of_what_belongs_together(overlay: Overlay, directory: Path) -> None:
    folder = overlay.folder
    plant(folder, {"n/m/f": "mine"})
    shutil.rmtree(folder / "d")
    overlay.changes()
    assert [each.outcome for each in overlay.apply(["n/m/f"])] == ["failed"]
    assert why(overlay, "n/m/f") == "It is in a new folder that was not applied. Apply that folder, too."
    assert why(overlay, "d").startswith(
        "The folder in the live directory contains something that is not deleted with it"
    )
    assert [each.outcome for each in overlay.apply(["n", "n/m", "d/x"])] == ["applied"] * 3
    assert paths(overlay) == ["d", "d/y", "n/m/f"]
    overlay.drop(["d", "d/y"])
    assert paths(overlay) == ["n/m/f"]
    assert sorted(os.listdir(overlay.folder / "d")) == ["y"]


def test_what_a_job_changes_after_somebody_looked_has_to_be_looked_at_again(
    overlay: Overlay, directory: Path
) -> None:
    (overlay.folder / "a").write_text("looked at\n")
    overlay.changes()
    (overlay.folder / "a").write_text("not looked at\n")
    (found,) = overlay.apply(["a"])
    assert (found.outcome, found.why) == (
        "failed", "A process of the session changed it after it was read for review. Review it again."
    )  # fmt: skip
    assert "changed again" in overlay.patch("a")
    assert (directory / "a").read_text() == "one\n"
    assert outcomes(overlay) == {"a": "applied"}


def test_a_name_that_is_taken_in_the_last_moment(
    overlay: Overlay, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is where case doesn't count: nothing stands at "New", and yet it does."""
    (overlay.folder / "New").write_text("mine")
    (overlay.folder / "Folder").mkdir()
    real = steps.rename_new

    def taken(at: int, old: str, new: str) -> None:
        (directory / new).write_text("user")
        real(at, old, new)

    monkeypatch.setattr(steps, "rename_new", taken)
    assert outcomes(overlay) == {"New": "conflict", "Folder": "conflict"}
    assert {name: (directory / name).read_text() for name in ("New", "Folder")} == {
        "New": "user",
        "Folder": "user",
    }
    assert sorted(os.listdir(directory)) == ["Folder", "New", "a", "d"]


def test_a_full_disk(tmp_path: Path, directory: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "test", str(directory)], check=True)
    try:
        plant(directory, {"a": "one", "b": "one", "c": "one"})
        overlay = open_live(directory, tmp_path / "store")
        try:
            refreshed(overlay)
            (overlay.folder / "a").write_text("two")
            (overlay.folder / "b").write_bytes(os.urandom(1 << 20))
            (overlay.folder / "c").unlink()
            (overlay.folder / "d").write_bytes(os.urandom(1 << 20))
            found = {each.path: each for each in overlay.apply(paths(overlay))}
            assert {path: each.outcome for path, each in found.items()} == {
                "a": "applied", "b": "failed", "c": "applied", "d": "failed"
            }  # fmt: skip
            assert found["b"].why == "It can't be written (No space left on device)."
            assert snapshot(directory) == {"a": ("file", 0o644, b"two"), "b": ("file", 0o644, b"one")}
        finally:
            overlay.close()
    finally:
        subprocess.run(["umount", str(directory)], check=True)


# --- what is told -------------------------------------------------------------------------------


def test_touching_copying_and_writing_the_same_is_no_change(overlay: Overlay) -> None:
    os.utime(overlay.folder / "a")
    (overlay.folder / "d" / "x").write_text("one\n")
    (overlay.folder / "d" / "y").unlink()
    (overlay.folder / "d" / "y").write_text("one\n")
    shutil.move(overlay.folder / "d", overlay.folder / "e")
    shutil.move(overlay.folder / "e", overlay.folder / "d")
    assert paths(overlay) == []
    refreshed(overlay)
    assert paths(overlay) == []


def test_a_file_is_read_once(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    (overlay.folder / "a").write_text("mine\n")
    monkeypatch.setattr(digests, "_TICK", -1)
    overlay.changes()

    def read(descriptor: int) -> str:
        raise AssertionError("it is read again")

    monkeypatch.setattr(digests, "digest_of", read)
    assert paths(overlay) == ["a"]


def test_what_changes_within_a_tick_of_the_clock_is_seen(overlay: Overlay) -> None:
    for number in range(50):
        (overlay.folder / "a").write_text(f"{number:03}")
        (change,) = overlay.changes()
        assert change.now is not None
        assert overlay.patch("a").splitlines()[4] == f"+{number:03}"


def test_too_many_changes_are_told_as_such(overlay: Overlay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MOST", 10)
    for number in range(11):
        (overlay.folder / str(number)).touch()
    with pytest.raises(WorkspaceError, match="More than 10 paths changed"):
        overlay.changes()


def test_folders_deeper_than_anybody_needs(overlay: Overlay) -> None:
    at = os.open(overlay.folder, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("x", dir_fd=at)
        below = os.open("x", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    with pytest.raises(WorkspaceError, match="more than 256 levels deep"):
        overlay.changes()
