"""What modules see: the directory as the user has it at each call, and what they wrote themselves.

A real kernel, and processes in mount name spaces of their own. Where a process holds something, what it holds stays as
it was; then nothing of the user's is lost, and it is told.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.sandbox.live.overlay import Overlay
from tests.sandbox.live.conftest import Open
from tests.sandbox.live.processes import Shell, shell
from tests.sandbox.live.trees import plant, refreshed, snapshot


@pytest.fixture
def overlay(directory: Path, opened: Open) -> Overlay:
    plant(directory, {"a": "one", "d/x": "one", "d/e/y": "one"})
    return opened()


@pytest.fixture
def job(overlay: Overlay, tmp_path: Path) -> Iterator[Shell]:
    """A background job."""
    with shell(overlay.folder, tmp_path / "job") as running:
        yield running


@pytest.fixture
def module(overlay: Overlay, tmp_path: Path) -> Iterator[Shell]:
    """What calls are made to."""
    with shell(overlay.folder, tmp_path / "module") as running:
        yield running


def save(path: Path, content: str) -> None:
    """As editors do."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(content)
    draft.rename(path)


def told(overlay: Overlay) -> list[tuple[str, str, bool]]:
    return [(change.kind, change.path, change.conflict) for change in overlay.changes()]


def all_of(overlay: Overlay) -> list[str]:
    return [change.path for change in overlay.changes()]


def test_what_the_user_does_is_seen_at_the_next_call(
    overlay: Overlay, directory: Path, module: Shell
) -> None:
    refreshed(overlay)
    assert (
        module.run("cat a d/x d/e/y; ls d d/e | tr '\\n' ' '")
        == "oneoneoned:\ne x \nd/e:\ny"[:9] + "d: e x  d/e: y"
    )
    save(directory / "a", "two")
    (directory / "d" / "x").unlink()
    (directory / "d" / "z").write_text("new")
    (directory / "d" / "e" / "y").write_text("in place")
    plant(directory, {"n/m": "new folder"})
    assert refreshed(overlay) == []
    assert module.run("cat a d/z d/e/y n/m") == "twonewin placenew folder"
    assert module.run("ls d | tr '\\n' ' '") == "e z"
    assert module.run("cat d/x") == "cat: d/x: No such file or directory"
    assert told(overlay) == []


def test_a_look_shows_what_the_user_did_and_waits_for_no_clock(
    overlay: Overlay, directory: Path, module: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(overlay)
    save(directory / "a", "two")
    with monkeypatch.context() as patched:
        patched.setattr(time, "sleep", None)  # nothing may call it
        assert overlay.refresh(works=False) == []
    assert module.run("cat a") == "two"
    # A call that can write and overlaps with a look has the moment of the one before: it is asked about, at worst.
    module.run("echo mine > a; echo mine > d/x")
    assert told(overlay) == [("modify", "a", True), ("modify", "d/x", False)]


def test_what_was_applied_in_the_same_tick_as_the_next_call_is_no_conflict(
    overlay: Overlay, directory: Path, module: Shell
) -> None:
    for number in range(20):
        overlay.refresh()
        module.run(f"echo {number} > a")
        assert told(overlay) == [("modify", "a", False)]
        overlay.apply(["a"])
    assert (directory / "a").read_text() == "19\n"


def test_a_call_waits_for_the_clock_only_behind_our_own_changes(
    overlay: Overlay, directory: Path, module: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", None)
    assert overlay.refresh() == []
    save(directory / "a", "two")  # in whichever tick: it came later
    module.run("echo mine > a")
    assert told(overlay) == [("modify", "a", True)]


def test_a_folder_may_be_renamed_removed_and_made_anew(
    overlay: Overlay, directory: Path, module: Shell
) -> None:
    assert module.run("cat d/e/y") == "one"
    (directory / "d").rename(directory / "moved")
    plant(directory, {"d/other": "new"})
    assert refreshed(overlay) == []
    assert module.run("ls d | tr '\\n' ' '; cat moved/e/y") == "other one"
    assert told(overlay) == []


def test_who_stands_in_a_folder_sees_what_the_user_does_there(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    job.run("cd d/e")
    save(directory / "d" / "e" / "y", "two")
    (directory / "d" / "e" / "new").write_text("new")
    assert refreshed(overlay) == []
    assert job.run("cat y new") == module.run("cat d/e/y d/e/new") == "twonew"


def test_what_was_applied_is_the_directory_again_and_a_job_goes_on_in_it(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    job.run("mkdir -p new/deep; cd new/deep; echo 1 > log; exec 7>> log; echo mine > ../kept")
    overlay.apply(all_of(overlay))
    refreshed(overlay)
    assert (directory / "new" / "deep" / "log").read_text() == "1\n"
    job.run("echo 2 >&7; echo more >> ../kept; echo x > here")
    assert module.run("cat new/deep/log new/deep/here new/kept") == "1\n2\nx\nmine\nmore"
    assert told(overlay) == [
        ("modify", "new/deep/log", False), ("add", "new/deep/here", False), ("modify", "new/kept", False)
    ] or sorted(told(overlay)) == [
        ("add", "new/deep/here", False), ("modify", "new/deep/log", False), ("modify", "new/kept", False)
    ]  # fmt: skip
    assert {each.outcome for each in overlay.apply(all_of(overlay))} == {"applied"}
    job.run("exec 7>&-; cd /")
    save(directory / "new" / "kept", "the user's")
    assert refreshed(overlay) == []
    assert module.run("cat new/kept") == "the user's"
    assert snapshot(overlay.folder) == snapshot(directory)


def test_a_file_that_somebody_reads_is_written_where_it_is_seen(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    module.run("echo 1 > log")
    job.run("exec 5< log")
    overlay.apply(all_of(overlay))
    refreshed(overlay)
    module.run("echo 2 >> log")
    assert told(overlay) == [("modify", "log", False)]
    overlay.apply(["log"])
    assert (directory / "log").read_text() == "1\n2\n"
    assert job.run("cat <&5") == "1\n2"


def test_the_user_edits_what_a_job_wrote_and_holds(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    job.run("mkdir new; cd new; echo 1 > log; exec 7>> log")
    overlay.apply(all_of(overlay))
    refreshed(overlay)
    save(directory / "new" / "log", "the user's\n")
    (directory / "new" / "theirs").write_text("the user's\n")
    refreshed(overlay)
    job.run("echo 2 >&7; echo mine > theirs")
    assert sorted(told(overlay)) == [("modify", "new/log", True), ("modify", "new/theirs", True)]
    assert {each.outcome for each in overlay.apply(all_of(overlay))} == {"conflict"}
    assert (
        (directory / "new" / "log").read_text()
        == (directory / "new" / "theirs").read_text()
        == "the user's\n"
    )


@pytest.mark.parametrize("script", ["echo mine >> d/x", "echo mine > d/x.new; mv d/x.new d/x", "rm d/x"])
def test_what_a_job_holds_and_the_user_replaced_is_told_and_never_overwritten(
    script: str, overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    job.run("exec 5< d/x")
    save(directory / "d" / "x", "the user's")
    assert refreshed(overlay) == ["d/x"]
    module.run(script)
    assert [(path, conflict) for _, path, conflict in told(overlay)] == [("d/x", True)]
    assert [each.outcome for each in overlay.apply(["d/x"])] == ["conflict"]
    assert (directory / "d" / "x").read_text() == "the user's"
    overlay.drop(["d/x"])
    job.run("exec 5<&-")
    assert refreshed(overlay) == []
    assert module.run("cat d/x") == "the user's"


def test_a_folder_that_a_job_stands_in_is_replaced(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    job.run("cd d/e")
    shutil.rmtree(directory / "d")
    plant(directory, {"d/e/y": "the user's", "d/z": "the user's"})
    assert refreshed(overlay) == ["d", "d/e"]
    module.run("echo mine > d/e/y; echo mine > d/z")
    assert sorted(told(overlay)) == [("modify", "d/e/y", True), ("modify", "d/z", True)]
    overlay.drop(all_of(overlay))
    job.run("cd /")
    assert refreshed(overlay) == []
    assert module.run("cat d/e/y d/z") == "the user'sthe user's"


def test_an_old_folder_is_put_in_the_place_of_another_during_a_call(
    overlay: Overlay, directory: Path, module: Shell, tmp_path: Path
) -> None:
    """Its files have old times: only that the folder is another one tells it."""
    plant(tmp_path / "other", {"x": "the user's"})
    refreshed(overlay)
    module.run("cat d/x")
    (directory / "d").rename(tmp_path / "away")
    (tmp_path / "other").rename(directory / "d")
    module.run("echo mine >> d/x")
    assert told(overlay) == [("modify", "d/x", True)]


@pytest.mark.parametrize("held", [False, True])
def test_what_is_dropped_while_it_is_held_is_gone_for_everybody(
    held: bool, overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    module.run("echo mine >> a; mkdir n; echo mine > n/f; rm -r d; echo mine > d")
    if held:
        job.run("exec 5< a 6< d; cd n; exec 7>> f")
    overlay.drop(all_of(overlay))
    assert overlay.changes() == ()
    assert snapshot(overlay.folder) == snapshot(directory)
    assert module.run("cat a d/x; ls") == "oneonea\nd"
    module.run("echo more >> a; mkdir n; echo more > n/f")
    assert sorted(told(overlay)) == [("add", "n", False), ("add", "n/f", False), ("modify", "a", False)]


def test_a_directory_that_is_moved_away_is_told(overlay: Overlay, directory: Path) -> None:
    directory.rename(directory.with_name("elsewhere"))
    directory.mkdir()
    with pytest.raises(Exception, match="was moved"):
        refreshed(overlay)


def test_modes_of_the_directory_are_the_overlays(overlay: Overlay, directory: Path, module: Shell) -> None:
    module.run("echo mine > d/e/new")
    overlay.changes()
    directory.chmod(0o711)
    (directory / "d" / "e").chmod(0o750)
    overlay.changes()
    refreshed(overlay)
    assert module.run("stat -c %a . d/e") == "711\n750"
    assert told(overlay) == [("add", "d/e/new", False)]
    assert os.stat(overlay.folder).st_uid == directory.stat().st_uid


WATCH = """python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None)
watch = libc.inotify_init()
for name in sys.argv[1:]: assert libc.inotify_add_watch(watch, name.encode(), 0xfff) > 0
os.write(4, b"watching\\n")
os.read(3, 1)
' """


def test_a_file_that_is_watched_is_written_where_it_is_seen(
    overlay: Overlay, directory: Path, job: Shell, module: Shell
) -> None:
    """A watcher keeps the inode, and with it the copy, without having it open."""
    job.run("touch a; mkfifo ../go ../ready; exec 3<> ../go 4<> ../ready")
    job.run(f"{WATCH} a d d/x & read line <&4")
    assert told(overlay) == []
    for number in range(3):
        assert refreshed(overlay) == []
        module.run(f"echo {number} >> a; echo {number} >> d/x")
        assert [path for _, path, _ in told(overlay)] == ["a", "d/x"]
        assert {each.outcome for each in overlay.apply(all_of(overlay))} == {"applied"}
    assert (directory / "a").read_text() == (directory / "d" / "x").read_text() == "one0\n1\n2\n"
    module.run("echo more >> a")
    overlay.drop(["a"])
    assert module.run("cat a") == "one0\n1\n2"
    job.run("echo >&3; wait")
