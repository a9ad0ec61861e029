"""What was written in a copy of a workspace is taken over as a whole, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from iact.core.errors import WorkspaceError
from iact.core.ports import Taken
from iact.sandbox.workspace.versions import GitVersions


@pytest.fixture
def apart(tmp_path: Path) -> Apart:
    return Apart(tmp_path)


class Apart:
    """A workspace, and a copy of it in which something else happens."""

    def __init__(self, folder: Path) -> None:
        self.versions = GitVersions()
        self.workspace, self.copy, self.store = folder / "workspace", folder / "copy", folder / "versions"
        for one in (self.workspace, self.copy):
            one.mkdir()
        self.base = ""

    def part(self, **files: str) -> None:
        """Let files stand in the workspace, and make the copy. "__" in a name stands for "/"."""
        write(self.workspace, files)
        self.base = self.versions.keep(self.workspace, self.store, whole=True)
        self.versions.restore(self.copy, self.store, self.base)

    def taken(self) -> Taken:
        changed = self.versions.keep(self.copy, self.store, whole=True)
        return self.versions.take_over(self.workspace, self.store, self.base, changed)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = folder / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def standing(folder: Path) -> dict[str, str]:
    return {
        str(one.relative_to(folder)): one.read_text() if one.is_file() else ""
        for one in sorted(folder.rglob("*"))
    }


def test_what_was_changed_in_a_copy_is_taken_over_and_all_else_stays(apart: Apart) -> None:
    apart.part(same="1", changed="1", gone="1", deep__gone="1", run="1")
    write(apart.copy, {"changed": "2", "new__file": "2"})
    (apart.copy / "gone").unlink()
    shutil.rmtree(apart.copy / "deep")
    (apart.copy / "run").chmod(0o755)
    (apart.copy / "empty").mkdir()
    (apart.copy / "link").symlink_to("changed")
    write(apart.workspace, {"same": "somebody's", "beside": "somebody's", "new__other": "somebody's"})
    taken = apart.taken()
    assert taken.conflicts == ()
    assert standing(apart.workspace) == {
        "same": "somebody's", "beside": "somebody's", "changed": "2", "run": "1", "empty": "", "link": "2",
        "new": "", "new/file": "2", "new/other": "somebody's",
    }  # fmt: skip
    assert (apart.workspace / "link").is_symlink()
    assert (apart.workspace / "run").stat().st_mode & 0o111
    again = apart.versions.take_over(
        apart.workspace, apart.store, apart.base, apart.versions.keep(apart.copy, apart.store)
    )
    assert again.conflicts == (), "doing it again, as after a crash, is harmless"
    assert standing(apart.workspace)["changed"] == "2"


@pytest.mark.parametrize(
    ("mine", "somebodys", "met"),
    [
        ({"a": "mine"}, {"a": "theirs"}, ("a",)),
        ({"new": "mine"}, {"new": "theirs"}, ("new",)),
        ({"new": "mine"}, {"new__below": "theirs"}, ("new/below",)),
        ({"new__below": "mine"}, {"new": "theirs"}, ("new",)),
        ({"a": "mine", "b": "mine"}, {"b": "theirs", "c": "theirs"}, ("b",)),
        ({"a": "the same"}, {"a": "the same"}, ()),
    ],
)
def test_what_somebody_else_changed_meanwhile_is_named_and_nothing_is_taken_over(
    apart: Apart, mine: dict[str, str], somebodys: dict[str, str], met: tuple[str, ...]
) -> None:
    apart.part(a="1", b="1")
    write(apart.copy, mine)
    write(apart.workspace, somebodys)
    before = standing(apart.workspace)
    taken = apart.taken()
    assert taken.conflicts == met
    assert bool(taken.version) == (not met)
    assert standing(apart.workspace) == before


def test_a_file_that_somebody_deleted_meanwhile_is_no_less_a_conflict(apart: Apart) -> None:
    apart.part(a="1")
    write(apart.copy, {"a": "mine"})
    (apart.workspace / "a").unlink()
    assert apart.taken() == Taken("", ("a",))


def test_no_copy_lacks_something(apart: Apart, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iact.sandbox.workspace.versions.LARGEST", 10)
    with pytest.raises(WorkspaceError, match="No version contains 'large'"):
        apart.part(large="0123456789 and more", small="1")
    assert apart.versions.keep(apart.workspace, apart.store), "a version may"
