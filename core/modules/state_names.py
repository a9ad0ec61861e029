"""Names the part of a module in which a call is made: that of its agent, or of one step of a plan.

A module keeps its state between calls (a working directory, a page, jobs) separately for each name under which calls
are made, and calls under one name that must not overlap run one after the other. A plan's steps are independent of each
other except as the plan says, so each step has its own name, made of the plan's path and the step's id.
"""

from __future__ import annotations

from typing import Final

_MARK: Final = "#"
"""Occurs neither in a path nor in the id of a step."""


def of_step(plan: str, step: str) -> str:
    """The name under which a step of a plan makes calls."""
    return f"{plan}{_MARK}{step}"


def agent_of(whose: str) -> str:
    """The agent or plan whose authority the calls under a name have."""
    return whose.partition(_MARK)[0]


def step_of(whose: str) -> str:
    """The step of a name; empty for an agent's own."""
    return whose.partition(_MARK)[2]
