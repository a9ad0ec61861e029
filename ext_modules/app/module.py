"""Ephemeral web apps: an agent writes one, the user opens it and types what no agent may see.

    idle --serve--> serving --stop, or the app ends--> idle

The app answers HTTP on its own unix socket, next to the module's, so that only the core's server reaches it. No
function here calls the app, because an agent could then ask it for what the user typed. The app's output is discarded
once it serves.

A process serves one app. Whatever that app left behind (files, processes, open sockets) could tell the next one, and so
its agent, what was typed. So the sandbox is replaced before the same agent's next app (`core.modules.instances`).
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ext_modules.sdk import Call, Module, Result
from ext_modules.sdk.call import AgentState
from ext_modules.sdk.process import Process

module = Module(
    "app",
    "Serves a small web app that you write, for the user to open and to type a secret into.",
    keywords=["app", "web", "form", "secret", "password", "token", "key", "credential", "login", "wsgi", "html", "user", "ask"],
    states={"idle": "No app is served.", "serving": "Your app is served; the user can open it."},
)  # fmt: skip

SOCKETS: Final = Path(os.environ.get("IACT_SOCKETS", "/run/iact"))
"""The only folder that the core sees as well. It holds at most eight files."""
_PORT: Final = os.environ.get("IACT_APPS_PORT", "")
"""The port on the user's machine at which the user reaches the apps."""
_UP_WITHIN: Final = 15.0
_RUNNER: Final = str(Path(__file__).with_name("runner.py"))
_PR_SET_DUMPABLE: Final = 4
_PASSED_ON: Final = (
    "PATH",
    "LANG",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "https_proxy",
    "http_proxy",
    "NO_PROXY",
    "no_proxy",
)


class AppFailed(Exception):
    """The app can't be served; the message says why."""


@dataclass(eq=False, slots=True)
class _App:
    """An app that is being served."""

    name: str
    process: Process
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to end it."""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has ended."""

    @property
    def socket(self) -> Path:
        return SOCKETS / f"app-{self.name}.sock"


_served: dict[tuple[str, str], _App] = {}
_taken: set[tuple[str, str]] = set()
"""Who served an app here, or is about to: at most one."""
_group: list[asyncio.TaskGroup] = []


@module.lifespan
@asynccontextmanager
async def serving() -> AsyncIterator[None]:
    """End the app together with the module. No app may look into this process, and answer in its name."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError("The process can't be closed to others.")
    async with asyncio.TaskGroup() as group:
        _group.append(group)
        try:
            yield
        finally:
            _group.clear()
            for app in _served.values():
                app.stop.set()


@module.function(
    impact=1,
    summary="Serve a small web app; gives the address that the user opens.",
    body="source",
    states=["idle"],
    exclusive=True,
    timeout=60,
)
async def serve(call: Call, source: str) -> Result:
    """Serves a Python program that defines a WSGI application named `app`, and gives its address for the user, who opens it
    in a frame of its own. You can't open it, and see nothing of what is typed into it, unless your app answers GET /share
    with a text (text/plain) and the user shares that: you have it as $from_app, then. It is for secrets, not for answers
    that you need. Only the standard library is there, no workspace. What must last lives in the program's memory, and ends with
    it; what it prints is lost once it serves. It must listen within 15 s. You have one at a time: stop it before the next.

    ```app.serve
    def app(environ, start_response):
        start_response("200 OK", [("Content-Type", "text/html")])
        return [b"<form method=post><input type=password name=key><button>Keep</button></form>"]
    ```
    """
    key = (call.session, call.agent)
    if _taken:
        raise AppFailed("An app was served here before, and is not cleared away yet. Serve yours again.")
    _taken.add(key)
    try:
        app = await _start(source)
    except BaseException:
        _taken.clear()  # nobody knew its address, so nothing was typed
        raise
    _served[key] = app
    _group[0].create_task(_watch(key, app, call.agent_state))
    call.move("serving", note=f"the app {app.name} is served")
    address = f"http://{app.name}.localhost:{_PORT}/"
    return Result(
        f"Your app is served. Ask the user to open {address}\n", data={"app": app.name, "url": address}
    )


@module.function(
    impact=1,
    summary="End your app, with what was typed into it.",
    states=["serving"],
    exclusive=True,
    timeout=30,
)
async def stop(call: Call) -> str:
    await _end(_served[(call.session, call.agent)])
    return "The app has ended.\n"


async def _start(source: str) -> _App:
    """Start the app and wait until it listens.

    Raises:
        AppFailed: it does not. The message has the app's output, since the user can't have typed anything yet.
    """
    name = secrets.token_hex(8)
    file = Path("/tmp") / f"app-{name}.py"
    await asyncio.to_thread(file.write_text, source, encoding="utf-8")
    socket = SOCKETS / f"app-{name}.sock"
    environment = {variable: os.environ[variable] for variable in _PASSED_ON if variable in os.environ}
    process = await Process.start(
        [sys.executable, "-I", _RUNNER, str(file), str(socket)], cwd="/tmp", environment=environment
    )

    printed = b""
    try:
        async with asyncio.timeout(_UP_WITHIN):
            async for chunk in process.output():
                printed += chunk
                if printed.endswith(b"ready\n") and socket.exists():
                    return _App(name, process)
    except TimeoutError:
        printed += b"It did not come up in time."
    except BaseException:
        await process.end()
        raise

    await process.end()
    text = printed.decode("utf-8", "replace").strip()
    raise AppFailed(text[-2000:] or "The app ended before it listened.")


async def _watch(key: tuple[str, str], app: _App, state: AgentState) -> None:
    """Discard the app's output until it ends or is told to end; then clean up after it."""
    dropping = asyncio.create_task(_drop(app.process))
    stopping = asyncio.create_task(app.stop.wait())
    try:
        await asyncio.wait((dropping, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (dropping, stopping):
            task.cancel()
        await app.process.end()
        with suppress(OSError):
            app.socket.unlink()

        _served.pop(key, None)
        note = "the app was stopped" if app.stop.is_set() else "the app ended by itself"
        state.move("idle", note=note)
        app.over.set()


async def _drop(process: Process) -> None:
    async for _ in process.output():
        pass


async def _end(app: _App) -> None:
    app.stop.set()
    await app.over.wait()
