"""How long a module may take to come up on a busy machine."""

from __future__ import annotations

import os

import pytest

from iact.sandbox.host import crowding


@pytest.mark.parametrize(
    ("load", "processors", "coming_up", "times"),
    [
        (0.0, 2, 1, 1.0),
        (1.9, 2, 1, 1.0),
        (6.0, 2, 1, 3.0),
        (500.0, 2, 1, 6.0),
        (0.0, 2, 20, 6.0),
        (0.0, 16, 20, 1.25),
    ],
)
def test_a_busy_machine_gives_a_module_more_time(
    monkeypatch: pytest.MonkeyPatch, load: float, processors: int, coming_up: int, times: float
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: processors)

    assert crowding(coming_up) == times
