"""A fifth of the table of ends (`python -m benchmarks.ends` plays all of it): nothing goes on, and the next start goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.ends.cells import Cell, a_fifth
from benchmarks.ends.played import play


@pytest.mark.parametrize("cell", a_fifth(), ids=lambda cell: cell.name.replace(" · ", "-").replace(" ", "_"))
def test_nothing_is_left_after_an_end_and_the_next_start_goes_on(cell: Cell, tmp_path: Path) -> None:
    outcome = play(cell, tmp_path)
    assert not outcome.wrong
