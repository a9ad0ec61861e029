"""Keeps MCP servers running: one per agent, or one for all, as the `[mcp]` table says.

A connection lives in its own task from opening to end, as the `mcp` package requires. The first connection lists the
tools, and is then used for the first agent. The server is a separate program: it gets its own packages and a clean
environment, and none of the SDK's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import certifi
import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult

from ext_modules.sdk.process import Process
from ext_modules.sdk.values import JSON

from .elicitation import Asker, Elicitation, nobody
from .paging import pages
from .resources import Reading, readings_of
from .tasks import OnProgress, Tasks, telling

PROGRAM: Final = Path("/run/program")
"""The folder of the server's own packages."""
_PASSED_ON: Final = (
    "PATH",
    "LANG",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "https_proxy",
    "http_proxy",
)
_MOST: Final = 8
_UP_WITHIN: Final = 25.0
"""Seconds that a server may take to start."""
_SILENT: Final = 3700.0
"""Seconds that a server may be silent while it answers: a person it asks may take as long, and calls have limits."""
_Given = TypeVar("_Given")
_LOCAL: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class ServerFailed(Exception):
    """The MCP server can't be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The `[mcp]` table of a `module.toml`."""

    command: tuple[str, ...] = ()
    """Starts the server."""
    url: str = ""
    """Its address for streamable HTTP; empty for stdio."""
    shared: bool = False
    """Whether there is one server for all agents, instead of one each."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """For the server."""
    secrets: tuple[str, ...] = ()
    """The names of the module's secrets that the server gets."""

    @classmethod
    def of(cls, table: Mapping[str, object], secrets: tuple[str, ...]) -> Settings:
        """Parse the table.

        Raises:
            ValueError: a value is of the wrong type, or both command and url are missing.
        """
        command = table.get("command", [])
        if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
            raise ValueError("The command in [mcp] must be a list of strings.")

        url = table.get("url", "")
        shared = table.get("shared", False)
        environment = table.get("environment", {})
        if not isinstance(url, str) or not isinstance(shared, bool) or not isinstance(environment, dict):
            raise ValueError("In [mcp], url must be a string, shared true or false, environment a table.")
        if not command and not url:
            raise ValueError("The table [mcp] must name a command or a url.")

        return cls(
            command=tuple(command),
            url=url,
            shared=shared or bool(url),
            environment={str(name): str(value) for name, value in environment.items()},
            secrets=secrets,
        )


@dataclass(slots=True)
class _Connection:
    """One running server."""

    client: asyncio.Future[Client]
    """Set once it answers."""
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to end it."""
    lost: bool = False
    """Whether it has ended."""
    elicitation: Elicitation = field(default_factory=Elicitation)


class Servers:
    """The servers of one module. `group`: runs a task for each."""

    def __init__(self, settings: Settings, group: asyncio.TaskGroup) -> None:
        self._settings = settings
        self._group = group
        self._spare: _Connection | None = None
        self._running: dict[tuple[str, str], _Connection] = {}

    async def tools(self) -> list[Mapping[str, JSON]]:
        """The server's tools, as it lists them.

        Raises:
            ServerFailed: it did not start, or its list is not valid.
        """
        self._spare = self._open()
        client = await asyncio.shield(self._spare.client)
        try:
            return await _listed(client)
        except Exception as error:
            raise ServerFailed(
                f"The MCP server's list of tools can't be used: {_innermost(error)}"
            ) from error

    async def readings(self) -> list[Reading]:
        """The functions for the server's resources and prompts; call this after `tools`.

        Raises:
            ServerFailed: its lists can't be read.
        """
        assert self._spare is not None
        client = await asyncio.shield(self._spare.client)
        try:
            return await readings_of(client)
        except Exception as error:
            raise ServerFailed(
                f"The MCP server's resources or prompts can't be listed: {_innermost(error)}"
            ) from error

    async def call(
        self,
        agent: tuple[str, str],
        tool: str,
        arguments: Mapping[str, JSON],
        progress: OnProgress,
        asker: Asker = nobody,
    ) -> Mapping[str, JSON]:
        """Call a tool for `agent`, as `use` does. Returns its result."""

        async def work(client: Client) -> CallToolResult:
            with telling(progress):
                return await client.call_tool(tool, dict(arguments), progress_callback=progress)

        result = await self.use(agent, work, asker)
        fields: Mapping[str, JSON] = result.model_dump(mode="json", by_alias=True)
        return fields

    async def use(
        self, agent: tuple[str, str], work: Callable[[Client], Awaitable[_Given]], asker: Asker = nobody
    ) -> _Given:
        """Run `work` with the server of `agent` (session and path), which is started again if it has ended.

        `asker`: forwards questions that the server asks meanwhile to a person.

        Raises:
            ServerFailed: no server is available, or it ended during the call.
            MCPError: the server refuses the call.
        """
        connection = self._of(agent)
        client = await asyncio.shield(connection.client)
        try:
            with connection.elicitation.by(asker):
                return await work(client)
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise

            connection.lost = True
            connection.stop.set()
            raise ServerFailed(
                "The MCP server ended during the call; the next call starts it anew."
            ) from error

    def _of(self, agent: tuple[str, str]) -> _Connection:
        """The connection for an agent; a new one if there is none. Raises ServerFailed."""
        key = ("", "") if self._settings.shared else agent
        running = self._running.get(key)
        if running is not None and not running.lost:
            return running

        self._running = {key: connection for key, connection in self._running.items() if not connection.lost}
        if len(self._running) >= _MOST:
            raise ServerFailed(f"{_MOST} agents use this server already, and no more can at once.")

        spare = self._spare
        self._spare = None
        connection = spare if spare is not None and not spare.lost else self._open()
        self._running[key] = connection
        return connection

    def close(self) -> None:
        """Stop all servers. Their tasks end shortly afterwards."""
        if self._spare is not None:
            self._spare.stop.set()
        for connection in self._running.values():
            connection.stop.set()

    def _open(self) -> _Connection:
        connection = _Connection(asyncio.get_running_loop().create_future())
        self._group.create_task(self._keep(connection))
        return connection

    async def _keep(self, connection: _Connection) -> None:
        """Hold one connection open until it is told to stop. Errors are reported to those who wait for it."""
        try:
            async with (
                asyncio.timeout(_UP_WITHIN) as opening,
                self._connected(connection.elicitation) as client,
            ):
                opening.reschedule(None)
                connection.client.set_result(client)
                await connection.stop.wait()
        except Exception as error:
            if not connection.client.done():
                failed = ServerFailed(f"The MCP server did not come up: {_innermost(error)}")
                connection.client.set_exception(failed)
                connection.client.exception()  # perhaps nothing waits for it any more
        finally:
            connection.lost = True

    @asynccontextmanager
    async def _connected(self, elicitation: Elicitation) -> AsyncIterator[Client]:
        """Connect to a server: over its standard streams, or by HTTP."""
        settings = self._settings
        if not settings.url:
            command, *arguments = _command(settings.command)
            server = StdioServerParameters(
                command=command, args=arguments, env=_environment(settings), cwd=_place()
            )
            async with Client(server, extensions=[Tasks()], elicitation_callback=elicitation) as client:
                yield client
            return

        is_local = (urlsplit(settings.url).hostname or "") in _LOCAL
        async with (
            _program(settings),
            httpx2.AsyncClient(trust_env=not is_local, timeout=httpx2.Timeout(30, read=_SILENT)) as http,
            Client(
                streamable_http_client(settings.url, http_client=http),
                extensions=[Tasks()],
                elicitation_callback=elicitation,
            ) as client,
        ):
            yield client


async def _listed(client: Client) -> list[Mapping[str, JSON]]:
    """List all tools."""
    return [
        tool.model_dump(mode="json", by_alias=True)
        async for page in pages(client.list_tools)
        for tool in page.tools
    ]


@asynccontextmanager
async def _program(settings: Settings) -> AsyncIterator[None]:
    """Run the command of a server that answers by HTTP, if there is one. Continues when its port is open."""
    if not settings.command:
        os.environ.setdefault("SSL_CERT_FILE", certifi.where())
        yield
        return

    process = await Process.start(
        _command(settings.command), cwd=_place(), environment=_environment(settings)
    )
    try:
        async with asyncio.TaskGroup() as group:
            draining = group.create_task(_log(process))
            parts = urlsplit(settings.url)
            host = parts.hostname or ""
            port = parts.port or 80
            while not await asyncio.to_thread(_answers, host, port):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            yield
            draining.cancel()
    finally:
        await process.end()


async def _log(process: Process) -> None:
    """Forward the server's output to the container's log, which is bounded."""
    async for chunk in process.output():
        sys.stdout.write(chunk.decode("utf-8", "replace"))


def _answers(host: str, port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=1):
        return True
    return False


def _command(command: tuple[str, ...]) -> list[str]:
    """The command line of `command`. Runs a script that came with the server's packages with our Python."""
    script = PROGRAM / "bin" / command[0]
    return ["python3", str(script), *command[1:]] if script.is_file() else list(command)


def _environment(settings: Settings) -> dict[str, str]:
    own = {name: os.environ[name] for name in (*_PASSED_ON, *settings.secrets) if name in os.environ}
    if "HTTPS_PROXY" in own:
        own["NO_PROXY"] = ",".join(_LOCAL)
    return {**own, "PYTHONPATH": str(PROGRAM), "PYTHONUNBUFFERED": "1", **settings.environment}


def _place() -> str:
    return "/workspace" if os.path.isdir("/workspace") and os.access("/workspace", os.R_OK) else "/tmp"


def _innermost(error: BaseException) -> str:
    """Describe an error, without the groups around it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error)[:300]}" if str(error) else type(error).__name__
