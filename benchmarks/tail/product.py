"""The product's own session with the same work: the runtime builds every context, and the real server counts it.

Each reply is the text of the server's model, followed by the call that a better model would have made, so that the
session has the requested number of turns. The journal is verified. It also shows what the whole block of each turn
would have been.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from benchmarks.tail.layouts import STATIC, command, folder, printed
from iact.core import Runtime
from iact.core.context.tail import tail
from iact.core.gate.gate import Ticket
from iact.core.language.variables import Table
from iact.core.models.roles import Models
from iact.core.modules.client import Completed, OnArtifact, Outcome
from iact.core.modules.invoker import FunctionCall, Modules
from iact.core.modules.manifest import Manifest
from iact.core.ports import (
    JSON,
    CatalogueEntry,
    ChatMessage,
    ModelEvent,
    ModelProfile,
    ModuleHost,
    Report,
    StaticPrompt,
    StreamEnd,
    TextDelta,
)
from iact.core.records.parts import Bounds
from iact.core.stored.replay import replay
from iact.core.tree.apply import apply
from iact.core.tree.tree import Tree
from tests.core.session.fakes import FakeHost, FakeModules, World

Say = Callable[[Sequence[ChatMessage]], Awaitable[str]]
"""Has the server reply to a context, and measures the call."""

_STATE: Final = re.compile(r"\n\n\(state\) [^\n]*\Z")
_WIDE: Final = 10**9
_MANIFEST: Final = Manifest.model_validate(
    {
        "name": "shell",
        "version": "1",
        "purpose": "For measurements.",
        "keywords": (),
        "functions": (
            {
                "name": "run",
                "alias": "BASH",
                "summary": "Run a script in the sandbox.",
                "documentation": "Runs its body.",
                "schema_text": '{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}',
                "body": "command",
                "impact": 1,
            },
        ),
    }
)


class _Clock:
    """A clock that advances by a minute at every reading, so that no two turns have the same time."""

    def __init__(self) -> None:
        self._looked = 0

    def now(self) -> datetime:
        self._looked += 1
        return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(minutes=self._looked)

    def monotonic(self) -> float:
        return float(self._looked)

    async def sleep(self, seconds: float) -> None:
        return None


@dataclass
class _Worker:
    """The model of the session: the server's text, then a call, for the requested number of turns."""

    say: Say
    turns: int
    contexts: list[Sequence[ChatMessage]] = field(default_factory=list)
    profile: ModelProfile = field(
        default_factory=lambda: ModelProfile("embedded", _WIDE, static=StaticPrompt(STATIC))
    )

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int | None = None
    ) -> AsyncGenerator[ModelEvent, None]:
        number = len(self.contexts)
        self.contexts.append(list(messages))
        said = re.sub(r"[`~]", "'", await self.say(messages))
        call = f"\n\n```shell.run\n{command(number + 1)}\n```" if number + 1 < self.turns else ""
        yield TextDelta((said.strip() or "So be it.") + call)
        yield StreamEnd("stop")

    async def warm(self) -> None:
        return None

    async def close(self) -> None:
        return None


class _Shell(FakeModules):
    """The module in memory."""

    def __init__(self) -> None:
        super().__init__(World())
        self._made = 0

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
        self._made += 1
        data: dict[str, JSON] = {"exit_status": 0, "cwd": folder(self._made)}
        return Completed(printed(self._made), "text/plain", data, None, (), None)

    async def describe(self, module: str, report: Report, *, digest: str | None = None) -> Manifest:
        return _MANIFEST


class _Host(FakeHost):
    """A catalogue with that module. Starts nothing."""

    async def catalogue(self) -> Sequence[CatalogueEntry]:
        return [CatalogueEntry("shell", "0" * 64, "shipped", "For measurements.", _MANIFEST.to_proto())]


async def play(say: Say, turns: int) -> list[tuple[str, str]]:
    """Run the session. Returns the state that each turn was shown, and what its whole block would have been."""

    def open_modules(host: ModuleHost, session: str, workspace: Path) -> Modules:
        return _Shell()

    worker = _Worker(say, turns)
    bounds = Bounds(turns=turns + 1, tokens=_WIDE, activation=float(_WIDE))
    with tempfile.TemporaryDirectory() as data:
        async with Runtime(
            Path(data),
            Models({"smart": worker}),
            _Host(),
            clock=_Clock(),
            bounds=bounds,
            open_modules=open_modules,
        ) as opened:
            session = await opened.open()
            await session.ask("Go through the files one by one and report.")
            wholes = _whole_blocks(session.journal)
    assert len(wholes) == len(worker.contexts) == turns
    inputs = [message.content for message in worker.contexts[-1] if message.role == "user"]
    told = [match.group() if (match := _STATE.search(text)) else "" for text in inputs]
    return [(one, f"\n\n{whole}") for one, whole in zip(told, wholes, strict=True)]


def _whole_blocks(journal: Path) -> list[str]:
    """The whole block that each turn would have had."""
    verified = replay(journal, verify=True)
    tree, found = Tree(strict=True, blobs=lambda digest: b""), list[str]()
    for record in verified.records:
        variables = (
            tree.root.table.copy() if tree.agents else Table()
        )  # in the state in which the turn saw them
        apply(tree, record)
        if "context" in record.fields:
            told = tree.root.context.told
            assert told is not None
            found.append(tail(told.seen, variables))
    return found
