"""What the official conformance suite (`@modelcontextprotocol/conformance` 0.1.16) says of our server, scenario by scenario.

The suite speaks the revisions with a handshake, and most of its scenarios call tools, resources and prompts of a server
that is written for it. What such a scenario finds here says nothing about us, so it is named and not counted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import uvicorn
from mcp.server.context import ServerRequestContext

from iact.core.session.runtime import Runtime
from iact.faces.mcp.ask import NewSessions
from iact.faces.mcp.server import mcp_server
from tests.core.session.fakes import replies, runtime
from tests.node import FOLDER, NODE

SUITE: Final = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

PASSES: Final = {
    "server-initialize": 1,
    "ping": 1,
    "tools-list": 1,
    "resources-list": 1,
    "server-sse-multiple-streams": 2,
    "dns-rebinding-protection": 2,
}
"""Scenarios that pass, with how many checks."""

EMPTY: Final = {"server-sse-polling"}
"""It checks nothing where its own tool `test_reconnection` is missing."""

NOT_OFFERED: Final = {
    "logging-set-level",  # deprecated in revision 2026-07-28; progress says what happens
    "completion-complete",  # ids of sessions come from the list of resources
    "resources-subscribe",  # revision 2026-07-28 has subscriptions/listen in its place, which we don't offer either
    "resources-unsubscribe",
    "prompts-list",  # we have no prompts
}
"""Scenarios about what we don't offer, and don't claim to: none of it is in our capabilities."""

FIXTURES: Final = {
    "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
    "tools-call-mixed-content", "tools-call-with-logging", "tools-call-error", "tools-call-with-progress",
    "tools-call-sampling", "tools-call-elicitation", "json-schema-2020-12", "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums", "resources-read-text", "resources-read-binary", "resources-templates-read",
    "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
}  # fmt: skip
"""Scenarios that need the suite's own tools, resources and prompts: not applicable."""

_LINE: Final = re.compile(
    r"^(?P<mark>[✓✗]) (?P<name>\S+): (?P<passed>\d+) passed, (?P<failed>\d+) failed$", re.MULTILINE
)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """Our server by streamable HTTP; gives its address."""
    async with runtime(folder, replies({})) as opened, asyncio.TaskGroup() as group:

        async def runtime_of(context: ServerRequestContext[None]) -> Runtime:
            return opened

        app = mcp_server(runtime_of, NewSessions()).streamable_http_app()
        server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=1)
        )
        serving = group.create_task(server.serve())
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)
        (port,) = {one.getsockname()[1] for listening in server.servers for one in listening.sockets}
        yield f"http://127.0.0.1:{port}/mcp"
        server.should_exit = True


async def suite(*arguments: str) -> str:
    """What the suite prints."""
    process = await asyncio.create_subprocess_exec(
        NODE, str(SUITE), *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    printed, _ = await process.communicate()
    return printed.decode()


async def test_what_passes_of_the_suites_server_scenarios(tmp_path: Path) -> None:
    async with served(tmp_path) as url:
        printed = await suite("server", "--url", url, "--suite", "all")
    found = {one["name"]: (int(one["passed"]), int(one["failed"])) for one in _LINE.finditer(printed)}
    assert set(found) == {*PASSES, *EMPTY, *NOT_OFFERED, *FIXTURES}, printed
    assert {name: passed for name, (passed, failed) in found.items() if passed and not failed} == PASSES
    assert {name for name, counts in found.items() if counts == (0, 0)} == EMPTY
    assert {name for name, (_, failed) in found.items() if failed} == NOT_OFFERED | FIXTURES
