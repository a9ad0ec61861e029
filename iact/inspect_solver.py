"""The solver that Inspect finds: `--solver iact/agent`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

from inspect_ai.solver import Generate, Solver, TaskState, solver

from iact.core.errors import UsageError
from iact.core.records.ways import Way
from iact.core.session.models import Models
from iact.core.session.runtime import Runtime
from iact.faces.inspect.sample import SampleBounds
from iact.faces.inspect.solver import SessionSolver
from iact.settings import load
from iact.wiring import open_runtime


@solver
def agent(
    intent: str | int | float = "1",
    scope: str | None = None,
    mode: Way = "dialogue",
    memory: bool = False,
    data: str | None = None,
) -> Solver:
    """Run one iact session for each sample.

    Args:
        intent: The highest impact that calls may have: 0, 1, 2 or the name of a level.
        scope: A scope of the policy.
        mode: How to work on a sample: dialogue, auto, or a plan mode.
        memory: Whether sessions remember earlier ones, which makes samples depend on each other.
        data: The data directory, where the journals are kept.
    """
    if mode not in get_args(Way):
        raise UsageError(f"There is no way of working {mode!r}; there are {', '.join(get_args(Way))}.")
    settings = load(data=data).model_copy(update={"memory": "on" if memory else "off"})

    @asynccontextmanager
    async def opened(models: Models | None, bounds: SampleBounds) -> AsyncIterator[Runtime]:
        async with open_runtime(settings, opened=models, bound=bounds.of) as runtime:
            yield runtime

    session = SessionSolver(opened, str(intent), scope, mode, settings.context)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return await session.solve(state)

    return solve
