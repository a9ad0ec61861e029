"""Growth and overhead are held by ratios within one run; absolute figures are the benchmarks' own."""

from __future__ import annotations

import pytest

from benchmarks.ratios import RATIOS, Ratio


@pytest.mark.parametrize("name", RATIOS)
def test_no_ratio_has_slipped(name: str) -> None:
    ratio = RATIOS[name]
    found = ratio.check()
    assert found <= ratio.limit, (
        f"{ratio.says}: {found:.2f} times, at most {ratio.limit:g} is allowed. Something costs more than it did; "
        f"`python -m benchmarks --short` tells all ratios."
    )


def test_a_ratio_above_its_limit_is_taken_anew_and_the_least_counts() -> None:
    taken = iter([5.0, 3.0, 4.0, 1.0])
    assert Ratio("made up", lambda: next(taken), 2.0).check() == 3.0
    assert next(taken) == 1.0
