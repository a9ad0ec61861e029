"""Plays the tasks of the model on board through the whole product, and judges how each ended."""

from __future__ import annotations

import asyncio
import time
import tomllib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.everyday.play import Ending, judge, misread
from iact.core.errors import IactError
from iact.core.models.roles import SMART
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.settings import load
from iact.wiring import models_of, open_runtime

_PLACE: Final = Path(__file__).with_name("tasks.toml")
_POLICY: Final = '[scope.careful]\nfunctions = ["*"]\nclearance = ["files.*", "shell.*"]\n'
"""A scope in which each call waits for a person. Nobody is there, so each is denied at once."""
_PATIENCE: Final = 180.0
"""Seconds after which a task counts as not solved. On a quiet machine it takes ten."""
_MEMORY_SECONDS: Final = "30"
"""For how long a turn waits for its memory: a machine under load must not decide whether something is recalled."""


class Task(Ending):
    """One task, and how it must end."""

    kind: Literal[
        "dialogue", "files", "program", "machine", "child", "plan", "correction", "denied", "memory"
    ]
    says: tuple[str, ...] = ()
    """Messages of a person, each sent when the one before it is answered."""
    before: tuple[str, ...] = ()
    """Messages of an earlier session. If there are any, memory is on."""
    plan: str = ""
    """The steps of a plan that a person wrote, instead of messages."""
    scope: str | None = None
    """The scope of the session."""

    @property
    def name(self) -> str:
        """What is asked last, or the goal of the plan."""
        return self.says[-1] if self.says else self.plan.strip().partition("\n")[0]


class Played(BaseModel):
    """How a task ended. `wrong`: what is missing, or "" if it is solved."""

    model_config = ConfigDict(frozen=True)

    task: Task
    wrong: str
    answer: str
    turns: int
    seconds: float
    misread: int
    """Replies of which an action was not run for its form."""


@dataclass(frozen=True, slots=True)
class Stages:
    """Where tasks are played: on runtimes without and with memory that share one model."""

    plain: Runtime
    remembering: Runtime


def tasks() -> list[Task]:
    """All tasks."""
    return [Task.model_validate(row) for row in _content()["task"]]


def files() -> Mapping[str, str]:
    """The files in the workspace of each task, by their names."""
    return {str(name): str(text).lstrip("\n") for name, text in _content()["files"].items()}


def _content() -> dict[str, Any]:
    return tomllib.loads(_PLACE.read_text(encoding="utf-8"))


@asynccontextmanager
async def open_stages(folder: Path, environment: Mapping[str, str]) -> AsyncIterator[Stages]:
    """Open both runtimes in `folder`, with the model that `environment` chooses, and get that ready.

    Raises:
        ModelError: the model is not to be had; the message says why.
    """
    async with AsyncExitStack() as stack:
        runtimes = []
        models = None
        for memory in ("off", "on"):
            around = {**environment, "IACT_MEMORY": memory, "IACT_MEMORY_BUDGET": _MEMORY_SECONDS}
            settings = load(data=str(folder / f"memory-{memory}"), environment=around)
            settings.data.mkdir(parents=True)
            (settings.data / "policy.toml").write_text(_POLICY, encoding="utf-8")

            if models is None:
                models = models_of(settings)
                stack.push_async_callback(models.close)
                await models.model(SMART).warm()
            runtime = open_runtime(settings, opened=models.lend(), attended=False)
            runtimes.append(await stack.enter_async_context(runtime))
        yield Stages(*runtimes)


async def play(stages: Stages, task: Task) -> Played:
    """Play a task in a new session, and judge how it ended."""
    runtime = stages.remembering if task.before else stages.plain
    await _tell_before(runtime, task)
    session = await runtime.open(scope=task.scope)
    workspace = session.journal.parent / "workspace"
    workspace.mkdir(exist_ok=True)
    for name, text in files().items():
        (workspace / name).write_text(text, encoding="utf-8")

    started = time.monotonic()
    fault = ""
    answer = ""
    try:
        async with asyncio.timeout(_PATIENCE):
            answer = await _answer(session, task)
    except TimeoutError:
        fault = f"it took more than {_PATIENCE:.0f} seconds"
    except IactError as error:
        fault = str(error)
    seconds = time.monotonic() - started

    records = list(session.records())
    turns = session.view.model_calls
    await runtime.close(session.id)
    return Played(
        task=task,
        wrong=fault or judge(task, answer, records, workspace),
        answer=answer,
        turns=turns,
        seconds=round(seconds, 1),
        misread=misread(records),
    )


async def _tell_before(runtime: Runtime, task: Task) -> None:
    """Lead the earlier session of a task, and wait until it is remembered."""
    if not task.before:
        return
    session = await runtime.open()
    for text in task.before:
        await session.ask(text)
    await runtime.close(session.id)

    # What memory is ordered to do is done after all that came before it.
    if runtime.memory is not None:
        await runtime.memory.forget(["no such session/1"])


async def _answer(session: Session, task: Task) -> str:
    """What the person reads last."""
    if task.plan:
        ended = await session.run_plan(task.plan)
        return "" if ended is None else ended.body

    answer = ""
    for text in task.says:
        answer = (await session.ask(text)).body
    return answer
