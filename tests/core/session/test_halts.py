"""What a change of rights asks of the modules: for whom, up to which impact, and whether idle workers end too."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path

from iact.core.models.roles import Models
from iact.core.modules.invoker import Modules
from iact.core.ports import ModuleHost
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from tests.core.session.fakes import FakeHost, FakeModules, ScriptedModel, TickingClock, World, replies

Halt = tuple[tuple[bool, ...], float, bool]
PATHS = ("/", "/a", "/a/b", "/ab")


class Asked(FakeModules):
    """Remembers what it was asked to end, by agent."""

    def __init__(self, halts: list[Halt]) -> None:
        super().__init__(World())
        self._halts = halts

    async def halt(self, agents: Callable[[str], bool], *, most: float, idle: bool) -> None:
        self._halts.append((tuple(agents(path) for path in PATHS), most, idle))


def test_pause_lockdown_and_a_lowered_intent_reach_what_runs(tmp_path: Path) -> None:
    halts: list[Halt] = []

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return Asked(halts)

    script = replies(
        {
            "/": ["```CALL a\nGo\n```", "```CALL ab\nGo\n```", "Done."],
            "/a": ["```CALL b\nGo\n```", "Done."],
            "/a/b": ["Done."],
            "/ab": ["Done."],
        }
    )

    async def change(session: Session) -> None:
        await session.pause("/a")
        await session.resume("/a")
        await session.set_intent(2)
        await session.set_intent(1)
        await session.set_intent(1)
        await session.lockdown(True)
        await session.lockdown(False)

    async def main() -> None:
        models = Models({"smart": ScriptedModel(script)})
        async with Runtime(
            tmp_path, models, FakeHost(), clock=TickingClock(), open_modules=open_modules
        ) as runtime:
            session = await runtime.open()
            await session.ask("Go")
            await change(session)

    asyncio.run(main())
    everybody = (True, True, True, True)
    assert halts == [
        ((False, True, True, False), math.inf, False),
        (everybody, 1, True),
        (everybody, -math.inf, True),
    ]
