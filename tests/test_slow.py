"""The list of slow tests only names tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slow import SLOW

HERE = Path(__file__).parent


@pytest.mark.parametrize("named", SLOW)
def test_it_is_there(named: str) -> None:
    file, _, test = named.partition("::")
    assert (HERE / file).exists()
    assert not test or f"def {test}(" in (HERE / file).read_text(encoding="utf-8")
