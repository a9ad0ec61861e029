"""What agents are told at the end of a scripted year: what is wished and decided now, and nothing else."""

from __future__ import annotations

import asyncio

from benchmarks.memory import year


def test_after_a_year_agents_are_told_what_holds_and_nothing_that_was_withdrawn_or_is_another_project_s() -> (
    None
):
    found = asyncio.run(year.measure())
    assert (found.asked, found.answerable) == (200, 184)
    assert found.right >= 0.95 * found.answerable
    for place, asked in found.asked_at.items():
        assert found.right_at[place] >= 0.95 * asked
    assert (found.withdrawn, found.replaced, found.foreign, found.orders) == (0, 0, 0, 0)
