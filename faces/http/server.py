"""The server of faces: an application of routes under uvicorn, in the loop that runs the sessions.

Each face is a function that gives its routes. What is the same for all stands here: which names the server is reached
under, that no browser's page may ask it, how many may ask at once, and how an error looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from iact.core.errors import IactError, UsageError
from iact.faces.http.access import Access, Visitors

Face: TypeAlias = Callable[[Access], Sequence[BaseRoute]]

_MOST: Final = 256
"""Requests that are under way at once; one more is refused."""
_CLOSING: Final = 5
"""Seconds that answers under way have to end when the server does."""
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
}


def error_response(
    status: int, sentence: str, *, code: str | None = None, param: str | None = None
) -> Response:
    """An error in the form that OpenAI's API has, which most clients can show."""
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = {"message": sentence, "type": kind, "param": param, "code": code}
    return JSONResponse({"error": told}, status)


def not_installed(face: str, extra: str) -> Response:
    """What a face answers whose packages are not there."""
    return error_response(
        501, f"{face} needs a package that is not installed. Install it: pip install 'iact[{extra}]'."
    )


def application(faces: Sequence[Face], visitors: Visitors) -> Starlette:
    """All faces in one application."""
    access = Access(visitors)
    return Starlette(
        routes=[route for face in faces for route in face(access)],
        exception_handlers={HTTPException: _refused, IactError: _failed, Exception: _broken},
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = error_response(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response


async def _failed(request: Request, error: Exception) -> Response:
    return error_response(400 if isinstance(error, UsageError) else 503, str(error))


async def _broken(request: Request, error: Exception) -> Response:
    return error_response(500, "The server met a bug of its own; its log says more.")


class BackgroundWork:
    """Work of faces that no single request holds: begun with the first that needs it, and ended with the server."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Have it run until the server ends, and cancelled then."""
        self._tasks.append(self._group.create_task(work))

    def end(self) -> None:
        """Cancel all of it."""
        for one in self._tasks:
            one.cancel()


def background_of(scope: Scope) -> BackgroundWork:
    """Where a request's face begins what outlives the request."""
    background = scope["app"].state.background
    assert isinstance(background, BackgroundWork)
    return background


class _Guard:
    """Lets pass what asks for this server by one of its names and comes from no foreign page of a browser."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # uvicorn's parser leaves it to whoever reads a value that what is around it is no part of it (RFC 9110, 5.5).
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
            origins = [
                value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"
            ]
            if len(hosts) != 1 or hosts[0] not in self._names:
                await error_response(421, "This server is not called that.")(scope, receive, send)
                return
            # Nothing that is served here is a page: an origin of our own is a program that says whom it asks.
            if any(one.partition("://")[2] not in self._names for one in origins):
                await error_response(403, "Pages of browsers can't ask this server.")(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: Starlette, host: str, port: int, *, names: Sequence[str] = (), option: str = "--faces"
) -> AsyncIterator[int]:
    """Serve until it is left; gives the port. `names`: further ones under which it is reached, with a port if not 80.
    `option`: by which a person chose the port.

    Raises:
        UsageError: the address can't be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise UsageError(
            f"The server of faces can't listen on {host} port {port} ({error.strerror}); choose another with {option}."
        ) from error
    with listening:
        bound = listening.getsockname()[1]
        own = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
        guard = _Guard(
            app, frozenset({*(f"{name}:{bound}" for name in own), *(name.lower() for name in names)})
        )
        config = uvicorn.Config(
            guard, lifespan="off", ws="none", log_config=None, access_log=False, server_header=False,
            limit_concurrency=_MOST, timeout_graceful_shutdown=_CLOSING,
        )  # fmt: skip
        server = _Server(config)
        async with asyncio.TaskGroup() as group:
            app.state.background = background = BackgroundWork(group)
            group.create_task(server.serve(sockets=[listening]))
            try:
                yield bound
            finally:
                background.end()
                server.should_exit = True
