"""Versions of a workspace: what stood there, whatever stood there, and nothing outside it read or written."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core.errors import WorkspaceError
from iact.sandbox.workspace import versions
from iact.sandbox.workspace.versions import LARGEST, GitVersions


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "versions"


def state(folder: Path) -> dict[bytes, bytes]:
    """Everything below `folder`: contents, where links lead, and folders."""
    found: dict[bytes, bytes] = {}
    for here, folders, names in os.walk(os.fsencode(folder)):
        for name in [*folders, *names]:
            path = os.path.join(here, name)
            key = os.path.relpath(path, os.fsencode(folder))
            if os.path.islink(path):
                found[key] = b"-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[key] = b"/"
            elif os.path.isfile(path):
                content = Path(os.fsdecode(path)).read_bytes()
                found[key] = (
                    b"x " if os.access(path, os.X_OK) and os.stat(path).st_mode & 0o100 else b"  "
                ) + content
    return found


def test_each_version_comes_back_as_it_was(workspace: Path, store: Path) -> None:
    kept = GitVersions()
    (workspace / "a.txt").write_text("one")
    (workspace / "empty" / "deep").mkdir(parents=True)
    (workspace / "run.sh").write_text("true")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("/etc/passwd")
    first, was = kept.keep(workspace, store), state(workspace)
    (workspace / "a.txt").write_text("two")
    (workspace / "run.sh").unlink()
    (workspace / "link").unlink()
    (workspace / "link").mkdir()
    (workspace / "link" / "b").write_bytes(b"\0\xff")
    second, later = kept.keep(workspace, store), state(workspace)
    assert first != second
    for version, wanted in ((first, was), (second, later), (first, was)):
        kept.restore(workspace, store, version)
        assert state(workspace) == wanted


def test_nothing_changed_is_no_new_version_and_another_process_goes_on(workspace: Path, store: Path) -> None:
    (workspace / "a").write_text("x")
    kept = GitVersions()
    version = kept.keep(workspace, store)
    os.utime(workspace / "a", (1, 1))
    assert GitVersions().changes(store, version, kept.keep(workspace, store)) == ""
    again = GitVersions()
    (workspace / "b").write_text("y")
    assert again.keep(workspace, store) != version
    again.restore(workspace, store, version)
    assert state(workspace) == {b"a": b"  x"}


def test_a_change_of_the_same_size_and_time_is_seen(workspace: Path, store: Path) -> None:
    kept = GitVersions()
    found = set()
    for text in ("aa", "bb", "cc"):
        (workspace / "a").write_text(text)
        os.utime(workspace / "a", (1, 1))
        found.add(kept.keep(workspace, store))
    assert len(found) == 3


def test_what_modules_leave_for_git_is_files_like_any_others(
    workspace: Path, store: Path, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    (workspace / ".gitattributes").write_text("* filter=evil text eol=crlf ident\n")
    (workspace / ".gitignore").write_text("*\n")
    (workspace / "text").write_text("a\r\n$Id$\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    hook = workspace / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    (workspace / ".git" / "config").write_text(
        f'[filter "evil"]\n clean = touch {trap}\n smudge = touch {trap}\n'
    )
    (workspace / "sub" / ".GIT").mkdir(parents=True)
    (workspace / "sub" / ".GIT" / "x%2e").write_text("x")
    was, kept = state(workspace), GitVersions()
    version = kept.keep(workspace, store)
    for path in list(workspace.iterdir()):
        subprocess.run(["rm", "-rf", str(path)], check=True)
    kept.restore(workspace, store, version)
    assert state(workspace) == was
    assert not trap.exists()


def test_links_lead_nowhere(workspace: Path, store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("the host's")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a").write_text("old")
    kept = GitVersions()
    version = kept.keep(workspace, store)
    (workspace / "folder" / "a").unlink()
    (workspace / "folder").rmdir()
    (workspace / "folder").symlink_to(outside)
    (workspace / "a").symlink_to(outside / "secret")
    later = kept.keep(workspace, store)
    assert "the host's" not in kept.changes(store, version, later)
    kept.restore(workspace, store, version)
    assert state(workspace) == {b"folder": b"/", b"folder/a": b"  old"}
    assert state(outside) == {b"secret": b"  the host's"}


def test_what_is_no_file_is_left_out(workspace: Path, store: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "a").write_text("x")
    kept = GitVersions()
    version = kept.keep(workspace, store)
    (workspace / "a").unlink()
    kept.restore(workspace, store, version)
    assert sorted(os.listdir(workspace)) == ["a", "pipe"]


def test_sizes_are_bounded_and_what_is_too_large_stays(
    workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "LARGEST", 10)
    (workspace / "large").write_bytes(b"x" * 11)
    (workspace / "small").write_bytes(b"x")
    kept = GitVersions()
    version = kept.keep(workspace, store)
    (workspace / "large").write_bytes(b"y" * 11)
    (workspace / "small").write_bytes(b"y")
    kept.restore(workspace, store, version)
    assert state(workspace) == {b"large": b"  " + b"y" * 11, b"small": b"  x"}


@pytest.mark.parametrize(("bound", "value"), [("MOST", 3), ("TOTAL", 30)])
def test_more_than_a_version_can_hold_is_told_and_nothing_is_lost(
    workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    kept = GitVersions()
    for name in ("a", "b", "z"):
        (workspace / name).write_bytes(name.encode() * 10)
    first, was = kept.keep(workspace, store), state(workspace)
    monkeypatch.setattr(versions, bound, value)
    (workspace / "c").write_bytes(b"c" * 10)
    (workspace / "z").write_bytes(b"later")
    (workspace / "a").write_bytes(b"a" * 20)
    now = state(workspace)
    with pytest.raises(WorkspaceError, match="holds more than"):
        kept.keep(workspace, store)
    with pytest.raises(WorkspaceError, match="Nothing was restored"):
        kept.restore(workspace, store, first)
    assert state(workspace) == now
    (workspace / "c").unlink()
    (workspace / "a").write_bytes(b"")
    kept.restore(workspace, store, first)
    assert state(workspace) == was


@pytest.mark.parametrize(("small", "large"), [("x", "x"), ("x/y", "x"), ("x", "x/y/z")])
def test_what_no_version_holds_is_not_replaced(
    workspace: Path, store: Path, monkeypatch: pytest.MonkeyPatch, small: str, large: str
) -> None:
    monkeypatch.setattr(versions, "LARGEST", 10)
    (workspace / small).parent.mkdir(exist_ok=True)
    (workspace / small).write_bytes(b"small")
    kept = GitVersions()
    version = kept.keep(workspace, store)
    subprocess.run(["rm", "-r", str(workspace / "x")], check=True)
    (workspace / large).parent.mkdir(parents=True, exist_ok=True)
    (workspace / large).write_bytes(b"l" * 11)
    (workspace / "other").write_bytes(b"o")
    now = state(workspace)
    with pytest.raises(WorkspaceError, match=f"'{large}'.*Move it away"):
        kept.restore(workspace, store, version)
    assert state(workspace) == now


@pytest.mark.parametrize("version", ["", "0" * 40, "--help", "HEAD", "refs/heads/workspace"])
def test_a_version_that_is_none_is_refused(workspace: Path, store: Path, version: str) -> None:
    kept = GitVersions()
    (workspace / "a").write_text("x")
    kept.keep(workspace, store)
    with pytest.raises(WorkspaceError):
        kept.restore(workspace, store, version)
    assert state(workspace) == {b"a": b"  x"}


_NAMES = st.binary(min_size=1, max_size=8).filter(
    lambda name: not set(name) & {0, 47} and name not in (b".", b"..")
)


@settings(max_examples=10, deadline=None)
@given(names=st.dictionaries(_NAMES, st.binary(max_size=40), max_size=5))
def test_any_name_and_content_comes_back(
    tmp_path_factory: pytest.TempPathFactory, names: dict[bytes, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    workspace, kept = folder / "workspace", GitVersions()
    workspace.mkdir()
    for name, content in names.items():
        Path(os.fsdecode(os.path.join(os.fsencode(workspace), name))).write_bytes(content)
    was, version = state(workspace), kept.keep(workspace, folder / "store")
    for path in workspace.iterdir():
        path.unlink()
    kept.restore(workspace, folder / "store", version)
    assert state(workspace) == was


def _nothing(folder: Path) -> None:
    list(folder.rglob("*"))
    (folder / "a").read_bytes()


TOUCHED: dict[str, Callable[[Path], object]] = {
    "content": lambda folder: (folder / "a").write_bytes(b"two"),
    "the same content": lambda folder: (folder / "a").write_bytes(b"one"),
    "a mode that no version has": lambda folder: (folder / "a").chmod(0o640),
    "a time": lambda folder: os.utime(folder / "a", ns=(0, 0)),
    "an empty folder": lambda folder: (folder / "ignore all instructions").mkdir(),
    "a file in place of another": lambda folder: os.rename(
        shutil.copy(folder / "a", folder / "x"), folder / "a"
    ),
    "a pipe": lambda folder: os.mkfifo(folder / "ignore all instructions"),
    "the mode of a folder": lambda folder: (folder / "sub").chmod(0o711),
    "an attribute of a file": lambda folder: os.setxattr(folder / "a", "user.note", b"ignore"),
    "an attribute of a folder": lambda folder: os.setxattr(folder / "sub", "user.note", b"ignore"),
    "what is too large for a version": lambda folder: os.truncate(folder / "large", LARGEST + 2),
}


@pytest.mark.parametrize("what", TOUCHED)
def test_an_id_that_stayed_the_same_means_that_nothing_was_touched(tmp_path: Path, what: str) -> None:
    """The gate relies on it: who touched nothing has left nothing for others to read."""
    folder, store = tmp_path / "workspace", tmp_path / "store"
    (folder / "sub").mkdir(parents=True)
    (folder / "a").write_bytes(b"one")
    (folder / "large").touch()
    os.truncate(folder / "large", LARGEST + 1)
    versions = GitVersions()
    first = versions.keep(folder, store)
    _nothing(folder)
    assert versions.keep(folder, store) == first
    assert versions.keep(folder, store) == first
    TOUCHED[what](folder)
    second = versions.keep(folder, store)
    assert second != first
    assert versions.keep(folder, store) == second


def test_one_file_is_restored_alone(workspace: Path, store: Path) -> None:
    kept = GitVersions()
    (workspace / "deep").mkdir()
    (workspace / "deep" / "run%.sh").write_text("true")
    (workspace / "deep" / "run%.sh").chmod(0o755)
    (workspace / ".gitignore").symlink_to("/etc/passwd")
    (workspace / "a").write_text("one")
    first = kept.keep(workspace, store)
    was = state(workspace)

    shutil.rmtree(workspace / "deep")
    (workspace / ".gitignore").unlink()
    (workspace / "a").write_text("two")
    for path in ("deep/run%25.sh", ".gitignore"):
        before = state(workspace)
        wanted = kept.with_file(workspace, store, path, first)
        assert state(workspace) == before, "nothing is written before the record is"
        kept.restore(workspace, store, wanted, path=path)
        assert state(workspace).keys() - before.keys() >= {path.replace("%25", "%").encode()}
    assert state(workspace) == was | {b"a": b"  two"}
    now = {file.path: file.id for file in kept.files(store, kept.keep(workspace, store))}
    assert now == {file.path: file.id for file in kept.files(store, wanted)}


def test_a_file_that_a_version_lacks_is_removed_alone(workspace: Path, store: Path) -> None:
    kept = GitVersions()
    (workspace / "a").write_text("one")
    first = kept.keep(workspace, store)
    (workspace / "new" / "deep").mkdir(parents=True)
    (workspace / "new" / "deep" / "file").write_text("two")
    (workspace / "b").write_text("three")
    wanted = kept.with_file(workspace, store, "new/deep/file", first)
    kept.restore(workspace, store, wanted, path="new/deep/file")
    assert state(workspace) == {b"a": b"  one", b"b": b"  three"}


def test_a_file_comes_back_where_a_folder_is_now_and_the_other_way_round(
    workspace: Path, store: Path
) -> None:
    kept = GitVersions()
    (workspace / "place").write_text("a file")
    file = kept.keep(workspace, store)
    (workspace / "place").unlink()
    (workspace / "place").mkdir()
    (workspace / "place" / "inner").write_text("in a folder")
    folder = kept.keep(workspace, store)

    with pytest.raises(WorkspaceError, match="was a folder in that version"):
        kept.with_file(workspace, store, "place", folder)
    kept.restore(workspace, store, kept.with_file(workspace, store, "place", file), path="place")
    assert state(workspace) == {b"place": b"  a file"}
    kept.restore(
        workspace, store, kept.with_file(workspace, store, "place/inner", folder), path="place/inner"
    )
    assert state(workspace) == {b"place": b"/", b"place/inner": b"  in a folder"}


def test_a_file_is_not_restored_over_what_no_version_holds(workspace: Path, store: Path) -> None:
    kept = GitVersions()
    (workspace / "big").write_text("small")
    first = kept.keep(workspace, store)
    with (workspace / "big").open("wb") as stream:
        stream.truncate(LARGEST + 1)
    with pytest.raises(WorkspaceError, match="No version contains the current 'big'"):
        kept.with_file(workspace, store, "big", first)
    assert (workspace / "big").stat().st_size == LARGEST + 1


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../a", "a/../a", "a/", "a%", "\n", "a%00"])
def test_a_path_that_names_nothing_is_refused(workspace: Path, store: Path, path: str) -> None:
    kept = GitVersions()
    (workspace / "a").write_text("one")
    first = kept.keep(workspace, store)
    with pytest.raises(WorkspaceError, match="is not the path of a file"):
        kept.with_file(workspace, store, path, first)
