"""Laws: what was done in the overlay and applied is what would have come of doing it in the directory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from iact.core.path_names import decode, encode
from iact.core.ports import FileState
from iact.sandbox.live import open_live
from iact.sandbox.live.overlay import Overlay
from tests.rounds import rounds
from tests.sandbox.live.trees import Op, Tree, do, ops, refreshed, snapshot

ROUNDS = settings(max_examples=rounds(25), deadline=None)

many = st.lists(ops, max_size=14)


@contextmanager
def both(first: Sequence[Op]) -> Iterator[tuple[Overlay, Path, Path]]:
    """The overlay of a directory made by these, the directory, and a copy of it."""
    with tempfile.TemporaryDirectory() as place:
        directory, copy = Path(place) / "directory", Path(place) / "copy"
        directory.mkdir()
        for op in first:
            do(directory, op)
        shutil.copytree(directory, copy, symlinks=True)
        overlay = open_live(directory, Path(place) / "store")
        try:
            yield overlay, directory, copy
        finally:
            overlay.close()


def separate(folder: Path) -> None:
    """Give each name of a file with several its own copy, as applying does."""
    for place in folder.rglob("*"):
        if place.is_file() and not place.is_symlink() and place.stat().st_nlink > 1:
            shutil.copy2(place, folder / ".copy")
            (folder / ".copy").replace(place)


def paths_of(overlay: Overlay) -> list[str]:
    return [change.path for change in overlay.changes()]


@ROUNDS
@given(many, many, many)
@example(  # a copied file that gets a second name in a new folder
    [], [("write", "a", "a", 0)], [("write", "b/a", "a", 0), ("hard", "a", "b/b", 0)]
)
@example([("write", "a", "a", 0)], [("hard", "a", "b", 0)], [("write", "a", "a", 1), ("hard", "b", "c/d", 0)])
def test_what_is_applied_is_what_was_meant(first: list[Op], second: list[Op], third: list[Op]) -> None:
    with both(first) as (overlay, directory, copy):
        for batch in (second, third):
            refreshed(overlay)
            for op in batch:
                do(overlay.folder, op)
                do(copy, op)
            assert snapshot(overlay.folder) == snapshot(copy)
            outcomes = overlay.apply(paths_of(overlay))
            assert {each.outcome for each in outcomes} <= {"applied"}, outcomes
            assert snapshot(directory) == snapshot(copy)
            assert overlay.changes() == ()
            separate(copy)
        refreshed(overlay)
        assert snapshot(overlay.folder) == snapshot(copy)


@ROUNDS
@given(many, many, st.randoms(use_true_random=False))
def test_changes_tell_the_whole_difference(first: list[Op], second: list[Op], random: object) -> None:
    with both(first) as (overlay, directory, _):
        refreshed(overlay)
        for op in second:
            do(overlay.folder, op)
        before, after = snapshot(directory), snapshot(overlay.folder)
        told = {change.path: change for change in overlay.changes()}
        assert set(told) == differing(before, after)
        for path, change in told.items():
            name = "/".join(decode(path) or ())
            assert (change.was is not None, change.now is not None) == (name in before, name in after)
            assert (change.kind, change.conflict) == (kind(name, before, after), False)
            assert overlay.patch(path).startswith("--- ")


@ROUNDS
@given(many, many, st.sets(st.integers(0, 30)))
def test_what_is_not_applied_is_untouched_and_waits(
    first: list[Op], second: list[Op], chosen: set[int]
) -> None:
    with both(first) as (overlay, directory, _):
        refreshed(overlay)
        for op in second:
            do(overlay.folder, op)
        meant, before = snapshot(overlay.folder), snapshot(directory)
        paths = paths_of(overlay)
        some = [path for at, path in enumerate(paths) if at in chosen]
        done = {each.path for each in overlay.apply(some) if each.outcome == "applied"}
        after = snapshot(directory)
        for path in paths:
            name = "/".join(decode(path) or ())
            assert after.get(name) == (meant if path in done else before).get(name)
        assert differing(before, after) == done
        assert set(paths_of(overlay)) == set(paths) - done
        refreshed(overlay)
        assert snapshot(overlay.folder) == meant


@ROUNDS
@given(many, many)
def test_what_is_dropped_never_was(first: list[Op], second: list[Op]) -> None:
    with both(first) as (overlay, directory, _):
        refreshed(overlay)
        before = snapshot(directory)
        for op in second:
            do(overlay.folder, op)
        overlay.drop(paths_of(overlay))
        assert overlay.changes() == ()
        assert snapshot(overlay.folder) == snapshot(directory) == before


@ROUNDS
@given(many, many, st.sets(st.integers(0, 30)))
def test_what_is_not_dropped_stays(first: list[Op], second: list[Op], chosen: set[int]) -> None:
    """What is let be again needs its folder, and what is in a folder that never was was not either."""
    with both(first) as (overlay, directory, _):
        refreshed(overlay)
        for op in second:
            do(overlay.folder, op)
        meant, before = snapshot(overlay.folder), snapshot(directory)
        changed = {change.path: change for change in overlay.changes()}
        some = [path for at, path in enumerate(changed) if at in chosen]
        overlay.drop(some)
        left = snapshot(overlay.folder)
        folders = [path for path in changed if not _is_folder(changed[path].now)]
        dropped = {*some, *(one for one in folders if any(inside(path, [one]) for path in some))}
        never = [path for path in dropped if not _is_folder(changed[path].was)]
        stay = [path for path in changed if path not in dropped and not inside(path, never)]
        for path in stay:
            name = "/".join(decode(path) or ())
            assert left.get(name) == meant.get(name)
        assert set(stay) >= set(paths_of(overlay))
        assert snapshot(directory) == before


@given(
    st.binary(min_size=1).filter(
        lambda name: b"\0" not in name and b"/" not in name and name not in (b".", b"..")
    )
)
def test_every_name_can_be_written_down(name: bytes) -> None:
    written = encode(os.fsdecode(name))
    assert written.encode()
    assert decode(written) == (os.fsdecode(name),)


def _is_folder(state: FileState | None) -> bool:
    return state is not None and state.type == "folder"


def inside(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def differing(before: Tree, after: Tree) -> set[str]:
    return {encode(name) for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def kind(name: str, before: Tree, after: Tree) -> str:
    return "add" if name not in before else "delete" if name not in after else "modify"
