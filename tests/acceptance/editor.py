"""An editor: the official SDK's client of the Agent Client Protocol, connected to a process of `iact acp`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from acp import PROTOCOL_VERSION, text_block
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from acp.schema import (
    AcceptElicitationResponse,
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AllowedOutcome,
    ClientCapabilities,
    ContentToolCallContent,
    CreateElicitationResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationMode,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UserMessageChunk,
)
from pydantic import BaseModel

from tests.acceptance.product import Product
from tests.command import kill, program

PATIENCE = 300.0


class Person:
    """The editor's user. `choose`: the answer to a question; None leaves it open. `fills_in`: what goes into a form; None
    declines it."""

    def __init__(self, choose: str | None = None, fills_in: dict[str, str] | None = None) -> None:
        self.choose = choose
        self.fills_in = fills_in
        self.forms: list[tuple[str, ElicitationMode]] = []
        self.updates: list[tuple[str, BaseModel]] = []
        self.asked: list[tuple[ToolCallUpdate, Sequence[PermissionOption]]] = []
        self.leaves = asyncio.Event()
        self._changed = asyncio.Condition()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: object
    ) -> RequestPermissionResponse:
        """Show a question."""
        self.asked.append((tool_call, options))
        await self._notify()
        if self.choose is None:
            await self.leaves.wait()
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        assert self.choose in [one.option_id for one in options]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choose))

    async def create_elicitation(
        self, message: str, mode: ElicitationMode, **_: object
    ) -> CreateElicitationResponse:
        """Show a form."""
        self.forms.append((message, mode))
        if self.fills_in is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content=self.fills_in)

    async def session_update(self, session_id: str, update: BaseModel, **_: object) -> None:
        """Show an update."""
        self.updates.append((session_id, update))
        await self._notify()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def sees(self, condition: Callable[[], bool]) -> None:
        """Wait until the editor shows something."""
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(condition)

    def forget(self) -> None:
        """Clear the screen."""
        self.updates.clear()
        self.asked.clear()

    def of(self, kind: type[BaseModel]) -> list[BaseModel]:
        """The updates of one kind."""
        return [update for _, update in self.updates if isinstance(update, kind)]

    @property
    def said(self) -> str:
        """The agent's text."""
        return _text(
            [one.content for one in self.of(AgentMessageChunk) if isinstance(one, AgentMessageChunk)]
        )

    @property
    def thought(self) -> str:
        """The agent's thoughts."""
        return _text(
            [one.content for one in self.of(AgentThoughtChunk) if isinstance(one, AgentThoughtChunk)]
        )

    @property
    def heard(self) -> str:
        """The user's messages, as sent to the editor."""
        return _text([one.content for one in self.of(UserMessageChunk) if isinstance(one, UserMessageChunk)])

    @property
    def calls(self) -> dict[str, tuple[str, str | None]]:
        """The title and last status of each tool call."""
        found: dict[str, tuple[str, str | None]] = {}
        for _, update in self.updates:
            if isinstance(update, ToolCallStart):
                found[update.tool_call_id] = update.title, update.status
            elif isinstance(update, ToolCallProgress):
                assert update.tool_call_id in found, "an update of a call that never began"
                found[update.tool_call_id] = found[update.tool_call_id][0], update.status
        return found

    @property
    def plan(self) -> list[tuple[str, str]]:
        """The plan as it is shown now."""
        plans = [one for one in self.of(AgentPlanUpdate) if isinstance(one, AgentPlanUpdate)]
        return [(one.content, one.status) for one in plans[-1].entries] if plans else []


def _text(blocks: Sequence[object]) -> str:
    return "".join(one.text for one in blocks if isinstance(one, TextContentBlock))


def shown(call: ToolCallUpdate) -> str:
    """The text that a tool call shows."""
    blocks = [one.content for one in call.content or () if isinstance(one, ContentToolCallContent)]
    return _text(blocks)


class Editor:
    """The editor with its connection. `process`: the agent that it started."""

    def __init__(
        self, person: Person, agent: ClientSideConnection, process: asyncio.subprocess.Process
    ) -> None:
        self.person = person
        self.agent = agent
        self.process = process

    async def new(self, folder: Path) -> NewSessionResponse:
        """Open a session in a directory."""
        return await self.agent.new_session(cwd=str(folder), mcp_servers=[])

    async def prompt(self, session: str, text: str) -> PromptResponse:
        """Send a message, and wait for the end of its answer."""
        async with asyncio.timeout(PATIENCE):
            return await self.agent.prompt(session_id=session, prompt=[text_block(text)])

    async def kill(self) -> None:
        """SIGKILL."""
        kill(self.process.pid)
        await self.process.wait()


@asynccontextmanager
async def editing(
    product: Product, choose: str | Person | None = None, *options: str, forms: bool = False
) -> AsyncIterator[Editor]:
    """An editor that has started `iact acp`, which must end successfully when the connection is closed. `choose`: as in
    `Person`, or a `Person`. `forms`: whether it says that it shows forms."""
    process = await asyncio.create_subprocess_exec(
        *program("acp", *options),
        env=product.environment, cwd=product.data.parent,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )  # fmt: skip
    person = choose if isinstance(choose, Person) else Person(choose)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    errors = asyncio.ensure_future(process.stderr.read())
    agent = ClientSideConnection(
        cast(Client, person), process.stdin, process.stdout, use_unstable_protocol=True
    )
    try:
        able = ClientCapabilities()
        if forms:
            able.elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities())
        started = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=able)
        assert started.protocol_version == PROTOCOL_VERSION
        yield Editor(person, agent, process)
        killed = process.returncode is not None
        person.leaves.set()
        await agent.close()
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert await process.wait() == 0 or killed
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        told = (await errors).decode()
        assert "Traceback" not in told, told
