"""A module that comes to another state by itself: its agent is told with what it next has to do."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ext_modules.sdk import Call, Module, wire
from ext_modules.sdk import server as serving
from iact.core.journal import read_journal
from iact.core.models.roles import Models
from iact.core.ports import CatalogueEntry, ModuleInstance, Permit, Report, Right
from iact.core.session.runtime import Runtime
from iact.core.stored.replay import replay
from tests.core.session.fakes import FakeHost, ScriptedModel, TickingClock, replies


def house() -> Module:
    module = Module("house", "A house.", states={"outside": "Outdoors.", "inside": "A hall."})

    @module.function(impact=0, states=["outside"])
    async def enter(call: Call) -> str:
        """Enters."""
        call.move("inside", note="the door fell shut")
        return "Entered."

    @module.function(impact=0, states=["inside"])
    async def leave(call: Call) -> str:
        """Leaves."""
        call.move("outside")
        return "Left."

    return module


@dataclass
class Instance:
    """The module as it runs, in this process."""

    target: str
    name: str = "house"
    secrets: Mapping[str, str] = field(default_factory=dict)
    serves_apps: bool = False

    async def why_lost(self) -> str | None:
        return None

    async def freeze(self) -> None:
        return None

    async def stop(self) -> None:
        return None


class Host(FakeHost):
    """A catalogue with the house, which answers on a socket."""

    def __init__(self, module: Module, socket: Path) -> None:
        super().__init__()
        self._manifest = wire.manifest(module).SerializeToString()
        self._socket = socket

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [CatalogueEntry("house", "0" * 64, "shipped", "A house.", self._manifest)]

    async def start(
        self,
        name: str,
        *,
        session: str,
        workspace: Path,
        report: Report,
        digest: str | None = None,
        egress: Sequence[str] = (),
        secrets: Sequence[str] = (),
        right: Right = "work",
        agent: str = "",
        copy: str = "",
        permit: Permit | None = None,
    ) -> ModuleInstance:
        return Instance(f"unix:{self._socket}")


def test_an_agent_is_told_of_what_happened_by_itself_and_of_nothing_twice(tmp_path: Path) -> None:
    turns = ["```house.enter\n```", "I am in.", "I see."]
    model = ScriptedModel(replies({"/": turns}))

    async def main() -> Path:
        module = house()
        with tempfile.TemporaryDirectory() as folder:  # the path of a socket has at most 107 bytes
            async with module.running():
                server, _ = await serving.start(module, Path(folder) / "s")
                try:
                    async with Runtime(
                        tmp_path,
                        Models({"smart": model}),
                        Host(module, Path(folder) / "s"),
                        clock=TickingClock(),
                    ) as opened:
                        session = await opened.open()
                        await session.ask("Go in")
                        module.agent(session.id, "/").move("outside", note="the house fell down")
                        async with asyncio.timeout(40):
                            while not any(record.kind == "state" for record in session.records()):  # noqa: ASYNC110
                                await asyncio.sleep(0.02)
                        await session.ask("Where are you?")
                        return session.journal
                finally:
                    await server.stop(None)

    journal = asyncio.run(main())
    replay(journal, verify=True)
    _, inside, later = [asked.newest for asked in model.asked]
    assert "is in the state `inside` now (A hall; the door fell shut). New in it:\n- `house.leave`" in inside
    assert "(state) " in later
    assert "`house` is in the state `outside` (the house fell down)" in later
    assert "Notice" not in later, "it knows what that state offers"
    found = [record for record in read_journal(journal).records if record.kind == "state"]
    assert [(one.agent, one.text("function")) for one in found] == [("/", "house.enter")]
