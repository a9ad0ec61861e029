"""A backup that is made while a session writes is restored elsewhere, verifies and continues. Nothing is incomplete."""

from __future__ import annotations

import io
import shutil
import stat
import tarfile
from pathlib import Path

import pytest

from iact.accounts.accounts import open_accounts
from iact.accounts.people import Actor
from iact.core.stored.replay import replay
from tests.acceptance.conftest import Stage
from tests.acceptance.product import NO_MODULES, Product
from tests.endpoint import Endpoint, Reply, Request

FAN = "\n".join(f"```CALL_ASYNC w{number}\nCount.\n```" for number in range(24)) + "\n```WAIT\n```"
PASSWORD = "correct horse battery"


def answers(request: Request) -> Reply | str:
    if "Go on." in request.last:
        return "It goes on."
    if request.agent != "/":
        return Reply("One, two, three. " * 20, delay=0.02)
    return FAN if request.turn == 0 else "All is counted."


@pytest.mark.no_prefix_law("a session and its restored copies talk to one model")
def test_what_is_backed_up_under_load_verifies_and_goes_on_elsewhere(stage: Stage, tmp_path: Path) -> None:
    with Endpoint(answers) as endpoint:
        _backed_up(stage.product(endpoint, **NO_MODULES), tmp_path)


def _backed_up(product: Product, tmp_path: Path) -> None:
    first = product.ask("Go on.")
    for name in (
        "poetry.lock",
        "index.sqlite",
        "accounts.db",
    ):  # called like what is left out, and an agent's own
        (first.workspace / name).write_text(name, encoding="utf-8")
    (product.data / "iact.toml").write_text('[accounts]\nauthenticator = "password"\n', encoding="utf-8")
    with open_accounts(product.data, None, lambda: 0.0) as accounts:
        accounts.users.add("ada", password=PASSWORD, by=Actor("the test"))
    outside = product.data / "users" / "0" / "link"
    outside.parent.mkdir(parents=True)
    outside.symlink_to("/etc/passwd")
    lengths: list[int] = []
    with product.started("run", "Count.") as process:
        while process.poll() is None:
            file = tmp_path / f"{len(lengths)}.backup"
            made = product.run("backup", str(file))
            assert made.status == 0, made
            assert "Not in the backup: 1 links that point outside" in made.stderr
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            there = Product(tmp_path / f"there-{len(lengths)}", product.settings)
            restored = there.run("restore", str(file))
            assert restored.status == 0, restored
            lengths.append(sum(len(replay(one.parent, verify=True).records) for one in there.journals()))
    assert lengths[0] < lengths[-1], "it was written while it was backed up"
    assert lengths == sorted(lengths)
    counted = max(there.journals(), key=lambda one: one.stat().st_size)
    assert there.ask("Go on.", session=counted.parent.name).reply == "It goes on."
    with open_accounts(there.data, None, lambda: 0.0) as accounts:
        assert accounts.users.with_password("ada", PASSWORD) is not None
    workspace = there.data / first.workspace.relative_to(product.data)
    assert {one.name for one in workspace.iterdir()} == {"poetry.lock", "index.sqlite", "accounts.db"}
    assert (there.data / "seal.key").read_bytes() == (product.data / "seal.key").read_bytes()

    again = there.run("restore", str(file))
    assert (again.status, "is not empty" in again.sentence) == (2, True)
    twice = product.run("backup", str(file))
    assert (twice.status, "exists already" in twice.sentence) == (2, True)
    inside = product.run("backup", str(product.data / "b"))
    assert (inside.status, "inside the data directory" in inside.sentence) == (2, True)
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    _refused(tmp_path, file, "not a complete backup")


def test_a_session_that_has_just_been_created_is_left_out(stage: Stage, tmp_path: Path) -> None:
    """Its journal exists a moment before its first record is complete; without one, nothing can read it."""
    product = stage.product(stage.endpoint({"/": ["It goes on."]}), **NO_MODULES)
    kept = product.ask("Go on.").journal.parent
    (kept / "workspace" / "sessions" / "x").mkdir(parents=True)
    (kept / "workspace" / "sessions" / "x" / "journal.md").touch()
    half = kept.joinpath("journal.md").read_bytes()[:200]
    for name, content in (("none", b""), ("half", half)):
        (kept.parent / name / "workspace").mkdir(parents=True)
        (kept.parent / name / "journal.md").write_bytes(content)
    assert product.run("backup", str(tmp_path / "file")).status == 0
    for name in ("none", "half"):
        shutil.rmtree(kept.parent / name)
    there = Product(tmp_path / "there", product.settings)
    assert there.run("restore", str(tmp_path / "file")).status == 0
    (restored,) = (there.data / "sessions").iterdir()
    assert restored.name == kept.name
    assert (restored / "workspace" / "sessions" / "x" / "journal.md").exists()
    assert there.run("replay", "--verify", restored.name).status == 0


def _entry(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", content: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.size = kind, link, len(content)
    return entry, content


ABOUT = _entry("iact-backup.json", content=b'{"format": 1, "version": "0.1"}')


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([], "not a backup of iact"),
        ([_entry("journal.md", content=b"x")], "not a backup of iact"),
        ([_entry("iact-backup.json", content=b'{"format": 2, "version": "9"}')], "newer version of iact (9)"),
        ([_entry("iact-backup.json", content=b"[")], "not a complete backup"),
        ([ABOUT, _entry("../outside", content=b"x")], "outside"),
        ([ABOUT, _entry("/tmp/absolute-of-a-test/x", kind=tarfile.SYMTYPE, link="/etc")], "not a complete backup"),
        ([ABOUT, _entry("a", kind=tarfile.SYMTYPE, link="../.."), _entry("a/b", content=b"x")], "not a complete backup"),
        ([ABOUT, _entry("pipe", kind=tarfile.FIFOTYPE)], "is not a file"),
    ],
    ids=["empty", "a file", "newer", "no JSON", "above", "absolute", "through a link", "a pipe"],
)  # fmt: skip
def test_a_file_that_is_no_backup_of_ours_leaves_nothing(
    tmp_path: Path, entries: list[tuple[tarfile.TarInfo, bytes]], why: str
) -> None:
    file = tmp_path / "made.backup"
    with tarfile.open(file, "w:gz") as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    _refused(tmp_path, file, why)
    assert not (tmp_path / "outside").exists()


def _refused(folder: Path, file: Path, why: str) -> None:
    (folder / "new").mkdir()
    before = set(folder.iterdir())
    ran = Product.at(folder / "new" / "data", **NO_MODULES).run("restore", str(file))
    assert ran.status == 2, ran
    assert why in ran.sentence
    assert not list((folder / "new").iterdir())
    assert set(folder.iterdir()) == before
