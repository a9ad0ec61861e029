"""What is said of a layer that is thrown away: which entries of it differ from the folder below."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from iact.sandbox.live.layer import Layer
from tests.sandbox.live.trees import plant

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the layer")


@pytest.fixture
def layer(tmp_path: Path) -> Iterator[Layer]:
    """A layer over a folder with some files."""
    folder = tmp_path / "below"
    folder.mkdir()
    plant(folder, {"a": "one", "b": "two", "d/x": "three", "d/e/y": "four"})
    opened = Layer(folder, tmp_path)
    yield opened
    opened.close()


def test_changes_are_files_links_and_deletions(layer: Layer) -> None:
    assert layer.changes() == {}
    (layer.folder / "a").write_text("1")
    (layer.folder / "b").unlink()
    (layer.folder / "d" / "e" / "new").symlink_to("y")
    (layer.folder / "empty").mkdir()
    (layer.folder / os.fsdecode(b"caf\xe9")).write_text("x")
    assert sorted(layer.changes()) == ["a", "b", "caf%E9", "d/e/new"]


def test_what_was_only_opened_for_writing_is_no_change(layer: Layer) -> None:
    with (layer.folder / "a").open("r+"):
        pass
    assert layer.changes() == {}


def test_each_change_of_an_entry_changes_its_value(layer: Layer) -> None:
    place = layer.folder / "a"
    place.write_text("1")
    before = layer.changes()
    place.write_text("2")
    assert layer.changes().keys() == before.keys()
    assert layer.changes() != before
