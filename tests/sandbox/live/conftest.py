"""Overlays for tests, taken away whatever happens in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iact.sandbox.live import mounting, open_live
from iact.sandbox.live.overlay import Overlay

Open = Callable[[], Overlay]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A live directory, empty."""
    folder = tmp_path / "directory"
    folder.mkdir()
    return folder


@pytest.fixture
def opened(tmp_path: Path, directory: Path) -> Iterator[Open]:
    """Opens the overlay of `directory`, as often as it is asked to."""
    made: list[Overlay] = []

    def opens() -> Overlay:
        made.append(open_live(directory, tmp_path / "store"))
        return made[-1]

    yield opens
    for overlay in made:
        overlay.close()
    mounting.unmount(tmp_path / "store" / "merged")
