"""What versions are said to hold and to differ in is what stood in the workspace."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.sandbox.workspace.versions import GitVersions

NAMES = st.sampled_from(
    [
        b"a",
        b"b.txt",
        b"a b",
        b"%empty",
        b"%41",
        b".git",
        b".gitignore",
        b"\xff\xfe",
        b"x\ny",
        "ä".encode(),
        b"-r",
    ]
)
CONTENTS = st.one_of(st.none(), st.sampled_from([b"", b"one\n", b"two", b"\0\xff", b"* text\n"]))
STATE = st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map(tuple), CONTENTS, max_size=5)
"""Paths with what is there: a file's bytes, or None for a link to /etc/passwd."""


def put(workspace: bytes, state: dict[tuple[bytes, ...], bytes | None]) -> None:
    """Make the workspace what `state` says, as far as that can be."""
    for here, folders, names in os.walk(workspace, topdown=False):
        for name in names:
            os.unlink(os.path.join(here, name))
        for name in folders:
            path = os.path.join(here, name)
            os.unlink(path) if os.path.islink(path) else os.rmdir(path)
    for parts, content in state.items():
        try:
            os.makedirs(os.path.join(workspace, *parts[:-1]), exist_ok=True)
            path = os.path.join(workspace, *parts)
            if content is None:
                os.symlink(b"/etc/passwd", path)
            else:
                with open(path, "xb") as file:
                    file.write(content)
        except OSError:
            continue  # what is a folder here is a file there


def there(workspace: bytes) -> dict[str, bytes]:
    """What stands in the workspace: contents, and where links lead."""
    found = {}
    for here, folders, names in os.walk(workspace):
        for name in [*names, *(one for one in folders if os.path.islink(os.path.join(here, one)))]:
            path = os.path.join(here, name)
            written = path_names.encode(os.fsdecode(os.path.relpath(path, workspace)))
            if os.path.islink(path):
                found[written] = b"-> " + os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[written] = file.read()
    return found


@settings(max_examples=8, deadline=None)
@given(states=st.lists(STATE, min_size=1, max_size=4))
def test_lists_contents_and_steps_are_what_stood_there(
    states: list[dict[tuple[bytes, ...], bytes | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("kept")
    workspace, store, kept = place / "workspace", place / "store", GitVersions()
    workspace.mkdir()
    told: list[tuple[str, dict[str, bytes]]] = []
    for state in states:
        put(os.fsencode(workspace), state)
        version = kept.keep(workspace, store)
        if not told or told[-1][0] != version:
            told.append((version, there(os.fsencode(workspace))))
    for version, was in told:
        files = [one for one in kept.files(store, version) if one.type != "folder"]
        held = dict(zip((one.path for one in files), kept.contents(store, files), strict=True))
        assert {one.path: (b"-> " if one.type == "link" else b"") + held[one.path] for one in files} == was
        assert all(one.size == len(held[one.path]) for one in files)
    rows = kept.steps(store, [version for version, _ in told])
    for ((_, before), (_, after)), row in zip(itertools.pairwise(told), rows, strict=True):
        wanted = dict.fromkeys(after.keys() - before.keys(), "add")
        wanted |= dict.fromkeys(before.keys() - after.keys(), "delete")
        wanted |= {path: "modify" for path in before.keys() & after.keys() if before[path] != after[path]}
        assert {step.path: step.kind for step in row} == wanted


def test_a_patch_of_two_contents(tmp_path: Path) -> None:
    workspace, store, kept = tmp_path / "workspace", tmp_path / "store", GitVersions()
    workspace.mkdir()
    (workspace / "a").write_text("one\ntwo\n")
    (workspace / "picture").write_bytes(b"\0")
    (workspace / "long").write_text("x" * (2 << 20))
    [a, long, picture] = kept.files(store, kept.keep(workspace, store))
    (workspace / "a").write_text("one\n2")
    changed = next(one for one in kept.files(store, kept.keep(workspace, store)) if one.path == "a")
    assert kept.patch(store, a, changed) == "@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
    assert kept.patch(store, None, a) == "@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert kept.patch(store, picture, None) == "Binary: 1 bytes before."
    assert kept.patch(store, None, long) == "Too large to show: 2,097,152 bytes after."


def test_what_is_no_version_and_what_was_lost_is_said(tmp_path: Path) -> None:
    workspace, store, kept = tmp_path / "workspace", tmp_path / "store", GitVersions()
    workspace.mkdir()
    (workspace / "a").write_text("one")
    version = kept.keep(workspace, store)
    for wrong in ("", "HEAD", "--all", "0" * 40):
        with pytest.raises(WorkspaceError):
            kept.files(store, wrong)
        with pytest.raises(WorkspaceError):
            kept.steps(store, [version, wrong])
    [file] = kept.files(store, version)
    (store / "objects" / file.id[:2] / file.id[2:]).unlink(missing_ok=True)
    for pack in (store / "objects" / "pack").glob("*"):
        pack.unlink()
    with pytest.raises(WorkspaceError):
        list(kept.contents(store, [file]))
