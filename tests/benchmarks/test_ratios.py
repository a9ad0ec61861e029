"""How ratios of costs are checked. Measuring them needs a quiet machine, which `make test-long` does."""

from __future__ import annotations

import pytest

from benchmarks import ratios
from benchmarks.ratios import Ratio


@pytest.mark.parametrize(
    ("measured", "status", "said"), [(1.5, 0, "| 1.50 | 2 |"), (2.5, 1, "2.50 **above its limit**")]
)
def test_a_ratio_that_slipped_is_said_and_fails(
    measured: float,
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(ratios, "RATIOS", {"made up": Ratio("made up", lambda: measured, 2.0)})
    assert ratios.main() == status
    assert said in capsys.readouterr().out


def test_a_ratio_above_its_limit_is_taken_anew_and_the_least_counts() -> None:
    taken = iter([5.0, 3.0, 4.0, 1.0])
    assert Ratio("made up", lambda: next(taken), 2.0).check() == 3.0
    assert next(taken) == 1.0
