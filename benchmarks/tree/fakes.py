"""A model that answers at once, and a module in memory. Everything else in these measurements is the product."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.tree.measure import RESULT
from iact.core import Runtime
from iact.core.gate.gate import Ticket
from iact.core.journal.stores import JournalStore
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.ports import (
    CatalogueEntry,
    ChatMessage,
    Memory,
    ModelEvent,
    ModelProfile,
    ModuleHost,
    Report,
    StreamEnd,
    TextDelta,
)
from iact.core.records.parts import Bounds
from tests.core.session.fakes import FakeHost, FakeModules, World

_OPENING: Final = re.compile(r"^You are agent (\S+), called by .+\.$", re.MULTILINE)
_WIDE: Final = 10**24
"""A budget of tokens that is never exhausted."""

_FUNCTION: Final = {
    "name": "read",
    "summary": "Reads.",
    "documentation": "Gives some lines.",
    "schema_text": '{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}',
    "body": "text",
}
_MANIFEST: Final = Manifest.model_validate(
    {
        "name": "t",
        "version": "1",
        "purpose": "For measurements.",
        "keywords": (),
        "functions": (_FUNCTION, {**_FUNCTION, "name": "write", "impact": 1}),
    }
)

Script = Callable[[str, int], str]
"""An agent's replies: (path, number of turns so far) → text."""


@dataclass
class InstantModel:
    """Replies with the text of `script`, in one piece. Its own cost does not grow with the context.

    `hold`: agents below the root wait for this event before they answer. `waiting`: how many wait.
    """

    script: Script
    hold: asyncio.Event | None = None
    waiting: int = 0
    profile: ModelProfile = field(default_factory=lambda: ModelProfile("instant", _WIDE))

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        opening = _OPENING.search(messages[1].content)
        assert opening is not None, "the static prompt holds examples, so the opening is elsewhere"
        if self.hold is not None and opening[1] != "/":
            self.waiting += 1
            await self.hold.wait()
        yield TextDelta(self.script(opening[1], len(messages) // 2 - 1))
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


class InstantModules(FakeModules):
    """The module of one session, in memory."""

    def __init__(self) -> None:
        super().__init__(World())

    async def call(
        self,
        ticket: Ticket,
        call: FunctionCall,
        *,
        on_output: Callable[[str], None],
        on_artifact: OnArtifact,
        report: Report,
    ) -> Outcome:
        ticket.redeem(call.request)
        return Completed(RESULT, "text/plain", {}, None, (), None)

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        return _MANIFEST


class InstantHost(FakeHost):
    """A catalogue with that module. Starts nothing."""

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [CatalogueEntry("t", "0" * 64, "shipped", "For measurements.", _MANIFEST.to_proto())]


def runtime(
    data: Path,
    model: InstantModel,
    *,
    agents: int = 1,
    memory: Memory | None = None,
    journals: JournalStore | None = None,
) -> AbstractAsyncContextManager[Runtime]:
    """The real runtime with its journals in `data`, and bounds that are never reached."""

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return InstantModules()

    bounds = Bounds(agents=agents + 1, turns=10**6, tokens=_WIDE, activation=10.0**6)
    models, host = Models({"smart": model}), InstantHost()
    return Runtime(
        data, models, host, bounds=bounds, open_modules=open_modules, memory=memory, journals=journals
    )
