"""A person sees the files as they are and as they were, and nothing outside of the workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from iact.core.errors import UsageError, WorkspaceError
from iact.core.ports import JSON, KeptFile
from iact.core.records.record import Record
from iact.core.stored.file_browser import MOST, FileBrowser
from iact.core.stored.fork import STORE
from iact.sandbox.workspace.versions import GitVersions
from tests.records import raw_record

AT = "2026-05-04T03:00:00Z"


def result(n: int, version: str = "", *, unkept: bool = False) -> Record:
    """The result of a call, with what is known of the files behind it."""
    fields: dict[str, JSON] = {"turn": 1, "action": 0, "function": "shell.run", "status": "ok"}
    if version:
        fields["version"] = version
    if unkept:
        fields["unkept"] = True
    return raw_record(n, AT, "result", "/coder", n, fields=fields)


def held(browser: FileBrowser, file: KeptFile) -> bytes:
    return b"".join(browser.content(file))


def test_the_past_is_what_was_kept_and_now_is_what_is_there(tmp_path: Path) -> None:
    workspace, kept = tmp_path / "workspace", GitVersions()
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\n")
    first = kept.keep(workspace, tmp_path / STORE)
    (workspace / "a.txt").write_text("two\n")
    (workspace / "b").mkdir()
    (workspace / "b" / "c").write_text("new")
    second = kept.keep(workspace, tmp_path / STORE)
    (workspace / "late").write_text("since")
    records = [
        result(1), result(2, first), result(3, first), result(4, second), result(5, unkept=True),
    ]  # fmt: skip
    browser = FileBrowser(tmp_path, workspace, kept)

    assert browser.look(records[:1], now=False).files == ()
    early, later = browser.look(records[:3], now=False), browser.look(records[:4], now=False)
    assert [one.path for one in early.files] == ["a.txt"]
    assert (early.n, early.unkept) == (3, 0)
    assert [one.path for one in later.files] == ["a.txt", "b/c"]
    now = browser.look(records, now=True)
    assert [one.path for one in now.files] == ["a.txt", "b/c", "late"]
    assert (now.n, now.unkept) == (4, 5)

    for until, at_now, content in ((2, False, b"one\n"), (4, False, b"two\n"), (4, True, b"two\n")):
        assert held(browser, browser.find(records[:until], "a.txt", now=at_now)) == content
    with pytest.raises(UsageError, match="at that record"):
        browser.find(records[:4], "late", now=False)

    changes = browser.history(records)
    assert [(one.n, one.agent, one.what, [(s.kind, s.path) for s in one.paths]) for one in changes] == [
        (2, "/coder", "shell.run", [("add", "a.txt")]),
        (4, "/coder", "shell.run", [("modify", "a.txt"), ("add", "b/c")]),
    ]
    assert browser.history(records[:3]) == changes[:1]
    assert browser.patch(records, "a.txt", 2) == "@@ -1 +1 @@\n-one\n+two\n"
    assert browser.patch(records, "a.txt", 0) == "@@ -0,0 +1 @@\n+two\n"
    assert browser.patch(records, "a.txt", 4) == ""
    with pytest.raises(UsageError, match="no file 'nothing'"):
        browser.patch(records, "nothing", 0)


def test_nothing_outside_of_the_workspace_is_reached_by_a_link_or_a_name(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "secret").write_text("of the user")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "secret").write_text("of the user")
    (workspace / "link").symlink_to(tmp_path / "secret")
    (workspace / "out").symlink_to(tmp_path / "folder")
    os.mkfifo(workspace / "pipe")
    (workspace / "empty").mkdir()
    (workspace / os.fsdecode(b"x\n\xff%")).write_text("odd")
    browser = FileBrowser(tmp_path, workspace, None, "There are none.")
    found = browser.look([], now=True).files
    assert [(one.path, one.type) for one in found] == [
        ("empty", "folder"), ("link", "link"), ("out", "link"), ("pipe", "other"), ("x%0A%FF%25", "file"),
    ]  # fmt: skip
    secrets = [os.fsencode(tmp_path / name) for name in ("secret", "folder")]
    assert [held(browser, one) for one in found] == [b"", *secrets, b"", b"odd"]
    for path in (
        "out/secret", "../secret", "link/x", "/etc/passwd", "./link", "empty/../link", "x%0a%FF%25", "a//b", ".",
        "..", "nul\0", "%2E%2E/secret",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="no file"):
            browser.find([], path, now=True)
    # What was a file when it was listed may be something else when it is read.
    for path in ("link", "pipe", "out/secret", "../secret", "gone"):
        with pytest.raises(WorkspaceError):
            held(browser, KeptFile(path, "file", 1, ""))
    with pytest.raises(UsageError, match="There are none"):
        browser.look([], now=False)
    with pytest.raises(UsageError, match="There are none"):
        browser.history([])


def test_a_folder_with_more_entries_than_are_told_says_how_many(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    for number in range(MOST + 3):
        (workspace / str(number)).touch()
    found = FileBrowser(tmp_path, workspace, None).look([], now=True)
    assert (len(found.files), found.more) == (MOST, 3)
    assert FileBrowser(tmp_path, tmp_path / "gone", None).look([], now=True).files == []
