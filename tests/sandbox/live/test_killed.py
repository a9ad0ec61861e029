"""Killed at every step of applying: what is seen is what was or what was meant, and doing it again completes it."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from iact.sandbox.live import open_live, steps
from iact.sandbox.live.overlay import Overlay
from tests.sandbox.live.trees import Tree, plant, refreshed, snapshot

BEFORE = {
    "kept": "kept",
    "changed": "one",
    "mode": "one",
    "gone": "one",
    "tree/gone/a": "one",
    "tree/gone/b/c": "one",
    "tree/kept": "one",
    "file-to-folder": "one",
    "folder-to-file/in/it": "one",
    "file-to-link": "one",
}


def work(folder: Path) -> None:
    """What the session does: one of each kind."""
    (folder / "changed").write_text("two" * 1000)
    (folder / "mode").chmod(0o755)
    (folder / "gone").unlink()
    shutil.rmtree(folder / "tree" / "gone")
    (folder / "file-to-folder").unlink()
    plant(folder / "file-to-folder", {"new": "x"})
    shutil.rmtree(folder / "folder-to-file")
    (folder / "folder-to-file").write_text("x")
    (folder / "file-to-link").unlink()
    (folder / "file-to-link").symlink_to("kept")
    plant(folder, {"added/deep/file": "x", "added/empty/": ""})
    (folder / "added" / "deep" / "file").chmod(0o600)


def test_at_every_step(tmp_path: Path) -> None:
    ended, step = False, 0
    while not ended:
        place = tmp_path / str(step)
        directory = plant(place / "directory", BEFORE)
        overlay = open_live(directory, place / "store")
        refreshed(overlay)
        work(overlay.folder)
        before, meant = snapshot(directory), snapshot(overlay.folder)
        paths = [change.path for change in overlay.changes()]
        ended = killed_at(step, lambda overlay=overlay, paths=paths: overlay.apply(paths))  # type: ignore[misc]
        overlay.close()
        whole(directory, before, meant, step)
        again(directory, place / "store", meant, step)
        shutil.rmtree(place)
        step += 1
    assert step > 60


def test_dropping_at_every_step(tmp_path: Path) -> None:
    ended, step = False, 0
    while not ended:
        place = tmp_path / str(step)
        directory = plant(place / "directory", BEFORE)
        overlay = open_live(directory, place / "store")
        work(overlay.folder)
        before = snapshot(directory)
        paths = [change.path for change in overlay.changes()]
        ended = killed_at(step, lambda overlay=overlay, paths=paths: overlay.drop(paths))  # type: ignore[misc]
        overlay.close()
        assert snapshot(directory) == before
        reopened = open_live(directory, place / "store")
        try:
            assert {change.path for change in reopened.changes()} <= set(paths)
            reopened.drop([change.path for change in reopened.changes()])
            assert snapshot(reopened.folder) == before == snapshot(directory)
        finally:
            reopened.close()
        shutil.rmtree(place)
        step += 1
    assert step > 50


def whole(directory: Path, before: Tree, meant: Tree, step: int) -> None:
    """Nothing half-written stands at any path."""
    for path, state in snapshot(directory).items():
        if not Path(path).name.startswith(".iact-"):
            assert state in (before.get(path), meant.get(path)), (step, path)


def again(directory: Path, store: Path, meant: Tree, step: int) -> None:
    overlay = open_live(directory, store)
    try:
        assert not [path for path in snapshot(directory) if ".iact-" in path], step
        assert snapshot(overlay.folder) == meant, step
        refreshed(overlay)
        changes = overlay.changes()
        assert not [change for change in changes if change.conflict], step
        outcomes = overlay.apply([change.path for change in changes])
        assert {each.outcome for each in outcomes} <= {"applied"}, (step, outcomes)
        assert snapshot(directory) == meant, step
        assert overlay.changes() == (), step
    finally:
        overlay.close()


def killed_at(step: int, does: Callable[[], object]) -> bool:
    """Do it in a child that is killed before its system call number `step`; True if it has no more of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child only goes on with this
        child = os.fork()
    if not child:
        count_down(step)
        try:
            does()
        finally:
            sys.setprofile(None)
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFEXITED(status) or os.WTERMSIG(status) == signal.SIGKILL
    return os.WIFEXITED(status)


def count_down(step: int) -> None:
    left = step

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        ours = frame.f_code is steps._rename.__code__
        changes = event == "c_call" and getattr(argument, "__module__", "") == "posix"
        changes = changes and getattr(argument, "__name__", "") in CHANGING
        if changes or (ours and event in ("call", "return")):
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.setprofile(called)


CHANGING = {
    *("chmod", "chown", "fchmod", "fchown", "fsync", "ftruncate", "link", "mkdir", "mknod", "pwrite"),
    *(
        "remove",
        "removexattr",
        "rename",
        "replace",
        "rmdir",
        "setxattr",
        "symlink",
        "unlink",
        "utime",
        "write",
    ),
}
"""Calls after which something may be otherwise than before; before one of them, what `open` made is seen, too."""


def test_the_child_is_really_killed_in_between(tmp_path: Path) -> None:
    """A guard for the tests above."""
    (tmp_path / "a").touch()

    def renames() -> None:
        os.rename(tmp_path / "a", tmp_path / "b")
        os.rename(tmp_path / "b", tmp_path / "c")

    assert not killed_at(1, renames)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_an_overlay_has_one_user(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    overlay: Overlay = open_live(tmp_path / "directory", tmp_path / "store")
    try:
        read, write = os.pipe()
        if not os.fork():
            try:
                os.close(overlay._owner)  # a lock is the open file's, which a child shares
                open_live(tmp_path / "directory", tmp_path / "store")
            except Exception as error:
                os.write(write, str(error).encode())
            os._exit(0)
        os.wait()
        assert b"in use by another process" in os.read(read, 1000)
        os.close(read)
        os.close(write)
    finally:
        overlay.close()
