"""`iact mcp`: sessions for Model Context Protocol clients, on standard input and output or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from iact.commands.standard_streams import connected
from iact.core.errors import UsageError
from iact.core.stored.policy import read_policies
from iact.face_server import ServerVisitors
from iact.settings import Settings, make_data_directory
from iact.signals import ENDING, run
from iact.wiring import open_runtime

KEY: Final = "mcp.key"
"""The file in the data directory with the key that HTTP clients send. It is kept, because clients have it configured."""
_HOST: Final = "127.0.0.1"


def mcp(settings: Settings, *, workspace: str | None, intent: str, scope: str, http: int | None) -> int:
    """Serve until the client closes standard input or a signal arrives. Returns 0 after a clean end.

    `http`: the port, or None for standard input and output.

    Raises:
        UsageError: a package is missing, the port is not available, or the directory or scope is unknown.
    """
    if any(
        find_spec(one) is None for one in ("mcp", *(("starlette", "uvicorn") if http is not None else ()))
    ):
        raise UsageError(
            "iact mcp needs a package that is not installed. Install it: pip install 'iact[mcp]'."
        )
    if http is None and not (connected(0) or os.isatty(0)):
        raise UsageError(
            "iact mcp is started by an MCP client, which talks to it through pipes. Enter the command in the client's "
            "settings, or serve with --http PORT; see docs/how-to/mcp-server.md."
        )

    make_data_directory(settings)
    read_policies(settings.data).chosen(scope)
    place = Path(workspace) if workspace else None
    if http is None:
        return run(_mcp(settings, place, intent, scope))
    return run(_by_http(settings, place, intent, scope, http))


async def _mcp(settings: Settings, workspace: Path | None, intent: str, scope: str) -> int:
    from iact.faces.mcp.ask import NewSessions
    from iact.faces.mcp.stdio import serve

    async with open_runtime(settings, workspace, scope=scope) as runtime, asyncio.TaskGroup() as group:
        serving = group.create_task(serve(runtime, NewSessions(intent, scope)))
        with ENDING.calling(serving.cancel):
            await asyncio.wait([serving])
    return 0


async def _by_http(settings: Settings, workspace: Path | None, intent: str, scope: str, port: int) -> int:
    from iact.faces.http.server import application, serving
    from iact.faces.mcp.routes import routes

    stop = asyncio.Event()
    file = settings.data / KEY
    async with open_runtime(settings, workspace, scope=scope) as runtime:
        visitors = ServerVisitors(_key(file), runtime, None, None)
        app = application([partial(routes, intent=intent, scope=scope)], visitors)
        async with serving(app, _HOST, port, option="--http") as bound:
            print(f"iact: mcp at http://{_HOST}:{bound}/mcp, with the key in {file}", flush=True)
            with ENDING.calling(stop.set):
                await stop.wait()
    return 0


def _key(file: Path) -> str:
    """Return the key from a file that only its owner can read. The file is created if it is missing.

    Raises:
        UsageError: the file contains no key.
    """
    if not file.exists():
        temporary = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(secrets.token_urlsafe(32) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, file)  # if two processes start at the same time, one of them creates it
        temporary.unlink()
    found = file.read_bytes().strip()
    if not re.fullmatch(rb"[A-Za-z0-9_-]{32,200}", found):
        raise UsageError(
            f"{file} contains no valid key. Remove the file and start again; a new key is then created."
        )
    return found.decode("ascii")
