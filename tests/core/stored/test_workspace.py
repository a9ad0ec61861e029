"""Versions of a session's files: how a person names one, and how it is restored when nobody has the session open."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.errors import JournalLocked, UsageError, WorkspaceError
from iact.core.journal import read_journal
from iact.core.journal.file import Journal
from iact.core.ports import JSON
from iact.core.records.record import Record
from iact.core.stored.fork import STORE
from iact.core.stored.replay import replay
from iact.core.stored.workspace import NO_VERSION, Workspace, find_version, restore_at_rest
from iact.sandbox.workspace.versions import GitVersions
from tests.core.session.fakes import runtime
from tests.records import least, raw_record
from tests.sealing import SEALER

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def record(n: int, kind: str = "result", op: str = "", **fields: JSON) -> Record:
    return raw_record(n, "2026-01-01T00:00:00.000000Z", kind, "/", 1, fields=least(kind, op, **fields))


RECORDS = [
    record(1, "turn"),
    record(3, version="aa11"),
    record(5),
    record(6, version="aa22"),
    record(7, version="aa22"),
    record(8, unkept=True),
    record(9, "control", op="restore", version="bb33"),
    record(10, "module", version="1.0"),  # the version of a module is none of the files
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("aa11", "aa11"), ("aa2", "aa22"), ("b", "bb33"), ("3", "aa11"), ("5", "aa11"), ("7", "aa22"), ("99", "bb33")],
)  # fmt: skip
def test_a_version_is_named_by_its_beginning_or_by_a_record(wanted: str, found: str) -> None:
    assert find_version(RECORDS, wanted) == found


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("aa", "In this session several versions begin with 'aa'."),
        ("c", "In this session no version begins with 'c'."),
        ("12345678", "In this session no version begins with '12345678'."),
        ("²", "In this session no version begins with '²'."),
        ("2", "No version of the workspace was kept up to record 2."),
        (
            "8",
            "The files were not kept at record 8, which wrote last; the last version before is that of record 7.",
        ),
    ],
)
def test_what_names_no_version_says_why(wanted: str, says: str) -> None:
    with pytest.raises(UsageError) as raised:
        find_version(RECORDS, wanted)
    assert str(raised.value) == says


def test_without_any_version_before_it_says_that_there_was_none() -> None:
    with pytest.raises(UsageError, match="none was before"):
        find_version([record(2, unkept=True)], "4")


def stored(data: Path, workspace: Path | None = None) -> Path:
    """A session that nobody has open; gives its directory."""

    async def main() -> Path:
        async with runtime(data, lambda asked: "Done.") as opened:
            session = await opened.open(workspace=workspace)
            await session.ask("Go")
            return session.journal.parent

    return asyncio.run(main())


def restore(directory: Path, version: str, path: str = "") -> Record:
    async def main() -> Record:
        return await restore_at_rest(*Journal.open(directory, SEALER), GitVersions(), version, NOW, path)

    return asyncio.run(main())


def test_files_are_restored_at_rest_and_that_is_recorded(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    folder = directory / "workspace"
    (folder / "file").write_text("old")
    kept = GitVersions().keep(folder, directory / STORE)
    (folder / "file").write_text("new")
    (folder / "more").write_text("new")
    before = read_journal(directory / "journal.md").records[-1].n
    written = restore(directory, kept)
    assert {one.name: one.read_text() for one in folder.iterdir()} == {"file": "old"}
    last = read_journal(directory / "journal.md").records[-1]
    assert last == written
    assert (last.n, last.kind, last.at) == (before + 1, "control", "2026-01-02T00:00:00.000000Z")
    assert last.fields == {"op": "restore", "by": "user", "version": kept}
    assert find_version([last], kept[:8]) == kept
    replay(directory / "journal.md", verify=True)


def test_one_file_is_restored_at_rest(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    folder = directory / "workspace"
    (folder / "file").write_text("old")
    kept = GitVersions().keep(folder, directory / STORE)
    (folder / "file").write_text("new")
    (folder / "more").write_text("new")

    written = restore(directory, kept, "file")
    assert {file.name: file.read_text() for file in folder.iterdir()} == {"file": "old", "more": "new"}
    assert written.text("path") == "file"
    assert [file.path for file in GitVersions().files(directory / STORE, written.text("version"))] == [
        "file",
        "more",
    ]
    replay(directory / "journal.md", verify=True)


def test_no_version_is_restored_while_somebody_has_the_session_open(tmp_path: Path) -> None:
    directory = stored(tmp_path)
    journal, _ = Journal.open(directory)
    try:
        with pytest.raises(JournalLocked):
            restore(directory, "0" * 40)
    finally:
        asyncio.run(journal.close())


def test_a_directory_of_the_users_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    directory = stored(tmp_path / "data", mine)
    with pytest.raises(
        UsageError, match="a directory of the user, and no versions of that directory are kept"
    ):
        restore(directory, "0" * 40)


def test_without_versions_nothing_is_kept_and_nothing_restored(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, tmp_path, None)
    assert asyncio.run(workspace.keep()) == NO_VERSION
    with pytest.raises(WorkspaceError, match="No versions of this workspace are kept"):
        asyncio.run(workspace.restore("0" * 40))
