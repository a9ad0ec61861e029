"""A module's time stands while a person has to answer, and only then."""

from __future__ import annotations

import asyncio

import pytest

from iact.core.modules.time_limit import time_limit


async def test_what_a_call_waited_is_not_of_its_time_and_all_else_is() -> None:
    loop = asyncio.get_running_loop()
    began, limit = loop.time(), 0.1

    def asked_for_thrice_its_limit() -> float:
        return min(loop.time() - began, 3 * limit)

    with pytest.raises(TimeoutError):
        async with time_limit(limit, asked_for_thrice_its_limit) as scope:
            await asyncio.Event().wait()
    assert scope.expired()
    assert loop.time() - began >= 4 * limit


async def test_a_time_limit_of_somebody_else_inside_is_not_taken_for_this_one() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(60.0, lambda: 0.0) as scope:
            raise TimeoutError
    assert not scope.expired()
