"""A store of versions is objects and nothing else: git is shown those, and whatever else stands there is not read."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from iact.core.errors import WorkspaceError
from iact.sandbox.workspace import foreign_store, git
from iact.sandbox.workspace.versions import GitVersions
from tests.hostile.folders import Bait, commit_of, loose, old_store


def kept(place: Path, *contents: str) -> tuple[Path, list[str]]:
    """A store with a version for each of these contents of a file."""
    workspace, store, versions = place / "workspace", place / "versions", GitVersions()
    workspace.mkdir(parents=True)
    found = []
    for text in contents:
        (workspace / "file").write_text(text)
        found.append(versions.keep(workspace, store))
    return store, found


def everything(store: Path) -> list[str]:
    """The names of all objects that git finds in a store."""
    said = git.run_git(store / "objects", "cat-file", "--batch-check", "--batch-all-objects")
    return sorted(line.split()[0].decode() for line in said.splitlines())


def test_versions_go_to_another_machine_and_each_is_what_it_was(tmp_path: Path) -> None:
    """Each pack holds what its version adds, in whichever order they come; what is there already is not missing."""
    workspace, store, there = tmp_path / "workspace", tmp_path / "versions", tmp_path / "there" / "versions"
    workspace.mkdir()
    there.parent.mkdir()
    kept, packs = GitVersions(), list[tuple[str, bytes]]()
    for number in range(4):
        (workspace / f"file {number % 2}").write_text(f"{number}\n" * 1000)
        version = kept.keep(workspace, store)
        known = [packs[-1][0]] if packs else []
        packs.append((version, kept.pack(store, [version], known)))
    versions = [version for version, _ in packs]
    other = GitVersions()
    assert other.missing(there, versions) == versions
    other.unpack(there, packs[1][1])
    assert other.missing(there, versions) == [versions[0], *versions[2:]]
    for version, pack in reversed(packs):
        other.unpack(there, pack)
        assert version not in other.missing(there, versions)
    assert other.missing(there, versions) == []
    assert kept.changes(store, versions[0], versions[3]) == other.changes(there, versions[0], versions[3])
    elsewhere = tmp_path / "there" / "workspace"
    elsewhere.mkdir()
    for number, version in enumerate(versions):
        other.restore(elsewhere, there, version)
        assert (elsewhere / f"file {number % 2}").read_text() == f"{number}\n" * 1000
    with pytest.raises(WorkspaceError):
        other.unpack(there, packs[0][1][:-30] + b"x" * 30)


def test_a_store_is_objects_alone(tmp_path: Path) -> None:
    store, versions = kept(tmp_path, "one", "two")
    assert [path.name for path in store.iterdir()] == ["objects"]
    assert len(set(versions)) == 2
    assert "+two" in GitVersions().changes(store, *versions)


@pytest.mark.parametrize("left", ["config", "HEAD", "commondir", "packed-refs"])
def test_what_else_stands_in_a_store_of_ours_is_not_read(tmp_path: Path, left: str) -> None:
    store, versions = kept(tmp_path / "s", "one", "two")
    bait = Bait.lay(tmp_path / "host")
    command = (
        f"[core]\n\tfsmonitor = {bait.tool}\n\tsshCommand = {bait.tool}\n[diff]\n\texternal = {bait.tool}\n"
    )
    (store / left).write_text(command)
    (store / "hooks").mkdir()
    shutil.copy(bait.tool, store / "hooks" / "reference-transaction")
    assert "+two" in GitVersions().changes(store, *versions)
    (tmp_path / "s" / "workspace" / "file").write_text("three")
    GitVersions().keep(tmp_path / "s" / "workspace", store)
    assert not bait.marker.exists()


@pytest.mark.parametrize(
    "place",
    [
        "info/alternates",
        "info/http-alternates",
        "pack/x.promisor",
        "pack/multi-pack-index",
        "ab/" + "g" * 38,
        "evil",
    ],
)
def test_what_git_would_follow_is_refused_by_name(tmp_path: Path, place: str) -> None:
    store, versions = kept(tmp_path, "one", "two")
    path = store / "objects" / place
    path.parent.mkdir(exist_ok=True)
    path.write_text("/\n")
    versioned = GitVersions()
    for action in (
        lambda: versioned.changes(store, *versions),
        lambda: versioned.keep(tmp_path / "workspace", store),
        lambda: versioned.restore(tmp_path / "workspace", store, versions[0]),
        lambda: versioned.share(store, tmp_path / "fork"),
    ):
        with pytest.raises(WorkspaceError, match=str(path)):
            action()
    assert (tmp_path / "workspace" / "file").read_text() == "two"


@pytest.mark.parametrize("what", ["store", "objects", "folder", "object"])
def test_links_in_a_store_are_refused(tmp_path: Path, what: str) -> None:
    store, versions = kept(tmp_path, "one", "two")
    folder = next(one for one in sorted((store / "objects").iterdir()) if len(one.name) == 2)
    path = {"store": store, "objects": store / "objects", "folder": folder, "object": next(folder.iterdir())}[
        what
    ]
    path.rename(tmp_path / "real")
    path.symlink_to(tmp_path / "real")
    with pytest.raises(WorkspaceError, match=r"is (no|not a) folder|is nothing that we keep there"):
        GitVersions().changes(store, *versions)


def test_what_a_killed_git_leaves_is_no_reason_to_stop(tmp_path: Path) -> None:
    store, versions = kept(tmp_path, "one", "two")
    (store / "objects" / "pack" / "tmp_pack_aB3x9Z").write_bytes(b"half")
    next(one for one in (store / "objects").iterdir() if len(one.name) == 2).joinpath(
        "tmp_obj_x1Y2z3"
    ).touch()
    assert "+two" in GitVersions().changes(store, *versions)


def test_no_version_is_lost_when_a_store_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those from before the session was opened again, which no branch leads to."""
    monkeypatch.setattr("iact.sandbox.workspace.versions._TIDY", 2)
    workspace, store, versions = tmp_path / "workspace", tmp_path / "versions", []
    workspace.mkdir()
    for life in range(3):
        kept_by = GitVersions()
        for turn in range(3):
            (workspace / "file").write_text(f"{life} {turn}")
            versions.append(kept_by.keep(workspace, store))
    assert list((store / "objects" / "pack").glob("*.pack"))
    for version, text in zip(
        versions, [f"{life} {turn}" for life in range(3) for turn in range(3)], strict=True
    ):
        GitVersions().restore(workspace, store, version)
        assert (workspace / "file").read_text() == text


def test_a_shared_store_is_whole_and_takes_no_room_twice(tmp_path: Path) -> None:
    store, versions = kept(tmp_path, "one", "two")
    (store / "config").write_text("evil")
    GitVersions().share(store, tmp_path / "fork")
    assert everything(tmp_path / "fork") == everything(store)
    assert [path.name for path in (tmp_path / "fork").iterdir()] == ["objects"]
    file = next(path for path in (store / "objects").glob("??/*"))
    assert file.samefile(tmp_path / "fork" / file.relative_to(store))
    GitVersions().restore(tmp_path / "workspace", tmp_path / "fork", versions[0])


# --- from elsewhere -------------------------------------------------------------------------------------


def packed(store: Path, *options: str) -> None:
    """Let real git pack a store, with deltas."""
    environment = {"GIT_DIR": str(store), "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "repack", "-q", "-a", "-d", *options], env=environment, cwd=store, check=True)


def with_history(folder: Path) -> list[str]:
    """A whole repository, as an older version kept it, with twenty versions of a long file."""
    old_store(folder)
    store = folder / "versions"
    environment = {"GIT_DIR": str(store), "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    lines = [f"line {n}" for n in range(2000)]
    script = ""
    for n in range(1, 21):
        lines[n * 50] = f"changed {n}"
        text = "\n".join(lines)
        script += f"commit refs/heads/workspace\nmark :{n}\ncommitter x <> {n} +0000\ndata 0\n"
        script += f"from :{n - 1}\n" if n > 1 else ""
        script += f"M 100644 inline long\ndata {len(text)}\n{text}\n\nget-mark :{n}\n"
    done = subprocess.run(
        ["git", "fast-import", "--quiet", "--force", "--done"],
        env=environment, cwd=store, input=f"{script}done\n".encode(), check=True, capture_output=True,
    )  # fmt: skip
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    "options", [None, (), ("--depth=50", "--window=50"), ("-f", "--no-write-bitmap-index")]
)
def test_all_of_a_real_store_comes_along(tmp_path: Path, options: tuple[str, ...] | None) -> None:
    versions = with_history(tmp_path)
    if options is not None:
        packed(tmp_path / "versions", *options)
        assert list((tmp_path / "versions" / "objects" / "pack").glob("*.pack"))
    assert GitVersions().bring(tmp_path / "versions", tmp_path / "ours") == 0
    assert everything(tmp_path / "ours") == everything(tmp_path / "versions")
    assert not list((tmp_path / "ours" / "objects" / "pack").iterdir())
    (tmp_path / "workspace").mkdir()
    GitVersions().restore(tmp_path / "workspace", tmp_path / "ours", versions[6])
    assert "changed 7" in (tmp_path / "workspace" / "long").read_text()
    assert "changed 8" not in (tmp_path / "workspace" / "long").read_text()


def test_a_pack_with_bases_by_name_comes_along(tmp_path: Path) -> None:
    """As a pack has them whose writer was told to name bases instead of pointing back at them."""
    with_history(tmp_path)
    store = tmp_path / "versions"
    packed(store)
    environment = {"GIT_DIR": str(store), "PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull}
    names = "\n".join(everything(store))
    subprocess.run(
        ["git", "pack-objects", "-q", "--no-reuse-delta", str(tmp_path / "pack")],
        env=environment, cwd=store, input=names.encode(), check=True, capture_output=True,
    )  # fmt: skip
    wanted = everything(store)
    shutil.rmtree(store / "objects")
    (store / "objects" / "pack").mkdir(parents=True)
    for file in tmp_path.glob("pack-*.pack"):
        file.rename(store / "objects" / "pack" / file.name)
    assert GitVersions().bring(store, tmp_path / "ours") == 0
    assert everything(tmp_path / "ours") == wanted


@pytest.mark.parametrize("place", [0, 7, 12, 13, 40, -21, -1])
def test_a_damaged_pack_gives_what_is_whole_in_it(tmp_path: Path, place: int) -> None:
    with_history(tmp_path)
    packed(tmp_path / "versions")
    wanted = everything(tmp_path / "versions")
    (pack,) = (tmp_path / "versions" / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[place] ^= 0xFF
    pack.write_bytes(data)
    GitVersions().bring(tmp_path / "versions", tmp_path / "ours")
    assert set(everything(tmp_path / "ours")) <= set(wanted)


def bomb(objects: Path) -> int:
    squeezer = zlib.compressobj(9)
    data = squeezer.compress(b"blob %d\0" % (100 << 20))
    data += b"".join(squeezer.compress(bytes(1 << 20)) for _ in range(100)) + squeezer.flush()
    (objects / "ab").mkdir(exist_ok=True)
    (objects / "ab" / ("0" * 38)).write_bytes(data)
    return 1


def wrong_name(objects: Path) -> int:
    name = loose(objects, b"blob", b"something")
    (objects / name[:2] / name[2:]).rename(objects / name[:2] / ("0" * 38))
    return 1


def wrong_size(objects: Path) -> int:
    (objects / "cd").mkdir(exist_ok=True)
    (objects / "cd" / ("0" * 38)).write_bytes(zlib.compress(b"blob 5\0abc"))
    return 1


def no_stream(objects: Path) -> int:
    (objects / "cd").mkdir(exist_ok=True)
    (objects / "cd" / ("0" * 38)).write_bytes(b"nothing of the kind")
    return 1


def cut_stream(objects: Path) -> int:
    name = loose(objects, b"blob", os.urandom(4000))
    file = objects / name[:2] / name[2:]
    file.write_bytes(file.read_bytes()[:2000])
    return 1


def pipe(objects: Path) -> int:
    (objects / "cd").mkdir(exist_ok=True)
    os.mkfifo(objects / "cd" / ("0" * 38))
    return 1


def device(objects: Path) -> int:
    (objects / "cd").mkdir(exist_ok=True)
    (objects / "cd" / ("0" * 38)).symlink_to("/dev/zero")
    return 1


def others(objects: Path) -> int:
    (objects / "info").mkdir(exist_ok=True)
    (objects / "info" / "alternates").write_text("/\n")
    (objects / "zz").mkdir()
    (objects / "zz" / "x").write_text("x")
    return 0


@pytest.mark.parametrize(
    "attack", [bomb, wrong_name, wrong_size, no_stream, cut_stream, pipe, device, others]
)
def test_what_is_no_object_is_left_out_and_counted(tmp_path: Path, attack: Callable[[Path], int]) -> None:
    store, _ = kept(tmp_path, "one", "two")
    wanted = everything(store)
    lost = attack(store / "objects")
    assert GitVersions().bring(store, tmp_path / "ours") == lost
    assert everything(tmp_path / "ours") == wanted


def test_what_is_too_much_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = kept(tmp_path, "one", "two", "three")
    monkeypatch.setattr(foreign_store, "MOST", 4)
    count = len(everything(store))
    assert GitVersions().bring(store, tmp_path / "ours") == count - 4
    assert len(everything(tmp_path / "ours")) == 4


def test_a_version_that_describes_ten_to_the_tenth_files_ends(tmp_path: Path) -> None:
    objects = tmp_path / "versions" / "objects"
    (objects / "pack").mkdir(parents=True)
    tree = loose(objects, b"tree", b"100644 f\0" + bytes.fromhex(loose(objects, b"blob", b"x")))
    for _ in range(10):
        tree = loose(objects, b"tree", b"".join(b"40000 %d\0" % n + bytes.fromhex(tree) for n in range(10)))
    (tmp_path / "workspace").mkdir()
    with pytest.raises(WorkspaceError, match="more than 64 MiB"):
        GitVersions().restore(tmp_path / "workspace", tmp_path / "versions", commit_of(objects, tree))
    assert list((tmp_path / "workspace").iterdir()) == []


def test_a_version_with_a_part_missing_restores_nothing(tmp_path: Path) -> None:
    store, versions = kept(tmp_path, "one", "two")
    blob = git.run_git(store / "objects", "rev-parse", f"{versions[0]}:file").decode().strip()
    (store / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(WorkspaceError, match="part of it was lost"):
        GitVersions().restore(tmp_path / "workspace", store, versions[0])
    assert (tmp_path / "workspace" / "file").read_text() == "two"
