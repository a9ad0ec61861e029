"""Whose part of a module a call is made in: that of its agent, or of one step of a plan.

What a module keeps between calls (a working directory, a page, jobs) it keeps for each name that calls come under,
and the calls of one name that must not overlap follow each other. A plan's steps are independent of each other as far
as the plan says so; so each comes under a name of its own, made of the plan's path and the step's id.
"""

from __future__ import annotations

from typing import Final

_MARK: Final = "#"
"""In neither a path nor the id of a step."""


def of_step(plan: str, step: str) -> str:
    """The name under which a step of a plan calls."""
    return f"{plan}{_MARK}{step}"


def agent_of(whose: str) -> str:
    """The agent or plan whose authority the calls under a name have."""
    return whose.partition(_MARK)[0]


def step_of(whose: str) -> str:
    """The step of a name; empty for an agent's own."""
    return whose.partition(_MARK)[2]
