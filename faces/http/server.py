"""The server of faces: an application of routes under uvicorn, in the loop that runs the sessions.

Each face is a function that returns its routes. This module has what all faces share: the host names of the server, the
refusal of requests from browser pages, the limit on simultaneous requests, and the format of errors.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
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
from iact.core.ports import JSON
from iact.faces.failure import WorkFailure, failure_from
from iact.faces.http.access import Access, Visitors
from iact.faces.http.half_open import timely_protocol

Face: TypeAlias = Callable[[Access], Sequence[BaseRoute]]

_MOST: Final = 512
"""The maximum number of simultaneous requests; further ones are refused."""
_MOST_OF_ONE: Final = 64
"""The maximum number of simultaneous requests with one credential, so that nobody shuts others out."""
_CLOSING: Final = 5
"""Seconds that running requests have to finish when the server stops."""
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
}


def error_response(
    status: int, sentence: str, *, code: str | None = None, param: str | None = None
) -> Response:
    """An error in the format of OpenAI's API, which most clients can show."""
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    told = {"message": sentence, "type": kind, "param": param, "code": code}
    return JSONResponse({"error": told}, status)


def error_fields(failure: WorkFailure) -> dict[str, JSON]:
    """A failure in the format of OpenAI's API."""
    kind = failure.kind
    return {"error": {"message": failure.sentence, "type": kind.type, "param": None, "code": kind.code}}


def failure_response(failure: WorkFailure, *, acted: bool = False) -> Response:
    """A failure as the response to a request. OpenAI's clients read in a header whether to try again.

    `acted`: whether tools were called before it. The same request again would call them again.
    """
    kind = failure.kind
    headers = {} if kind.again and not acted else {"x-should-retry": "false"}
    return JSONResponse(error_fields(failure), kind.status, headers)


def not_installed(face: str, extra: str) -> Response:
    """The response of a face whose packages are not installed."""
    return error_response(
        501, f"{face} needs a package that is not installed. Install it: pip install 'iact[{extra}]'."
    )


def application(faces: Sequence[Face], visitors: Visitors) -> Starlette:
    """One application with all faces."""
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
    assert isinstance(error, IactError)
    return failure_response(failure_from(error))


async def _broken(request: Request, error: Exception) -> Response:
    return error_response(500, "The server met a bug of its own; its log says more.")


class BackgroundWork:
    """Work of faces that outlives a single request: started by the first request that needs it, ended with the server."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Run `work` until the server stops, then cancel it."""
        self._tasks.append(self._group.create_task(work))

    def end(self) -> None:
        """Cancel all of it."""
        for one in self._tasks:
            one.cancel()


def background_of(scope: Scope) -> BackgroundWork:
    """Where a face starts work that outlives its request."""
    background = scope["app"].state.background
    assert isinstance(background, BackgroundWork)
    return background


class _Guard:
    """Passes requests that address this server by one of its names and don't come from a foreign browser page."""

    def __init__(self, app: ASGIApp, names: frozenset[str]) -> None:
        self._app = app
        self._names = names
        self._running: Counter[bytes] = Counter()
        """How many requests run now, by their credential."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # uvicorn's parser does not strip the white space around values, which is not part of them (RFC 9110, 5.5).
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
            hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
            origins = [
                value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"origin"
            ]
            if len(hosts) != 1 or hosts[0] not in self._names:
                await error_response(421, "This server is not called that.")(scope, receive, send)
                return
            # This server has no pages, so its own origin is sent by a program that names the server it addresses.
            if any(one.partition("://")[2] not in self._names for one in origins):
                await error_response(403, "Pages of browsers can't ask this server.")(scope, receive, send)
                return
        await self._bounded(scope, receive, send)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless too many run already."""
        credential = next(
            (value for name, value in scope.get("headers", ()) if name == b"authorization"), b""
        )
        if self._running.total() >= _MOST or self._running[credential] >= _MOST_OF_ONE:
            refused = error_response(503, "Too many requests are running; end one and try again.")
            await refused(scope, receive, send)
            return

        self._running[credential] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running[credential] -= 1
            self._running += Counter()  # forgets credentials that have none left


class _Server(uvicorn.Server):
    """A server that leaves signals to the owner of the loop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    app: Starlette, host: str, port: int, *, names: Sequence[str] = (), option: str = "--faces"
) -> AsyncIterator[int]:
    """Serve until the context exits. Yields the port.

    `names`: further host names of the server, with a port if it is not 80. `option`: the option that sets the port.

    Raises:
        UsageError: the address is not available.
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
            http=timely_protocol(), timeout_graceful_shutdown=_CLOSING,
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
