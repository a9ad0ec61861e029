"""The web server: one port with the page and one websocket, behind the judgement of `safety`.

websockets' asyncio server answers both: `process_request` sees every request before anything else
does and answers the page itself; what it lets through becomes a websocket.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import secrets
import time
from collections.abc import Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final, Self, TypedDict, Unpack

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from iact.core.errors import UsageError
from iact.web import safety
from iact.web.assets import load
from iact.web.connection import Connection, Shared
from iact.web.downloads import PREFIX, Content, Download
from iact.web.limits import MAX_MESSAGE
from iact.web.ports import Product, Runtime
from iact.web.streaming import Streams
from iact.web.tokens import AccessTokens
from iact.web.unverified import UnverifiedConnections

MAX_SOCKETS: Final = 64
MAX_CONNECTIONS: Final = 512
"""Of clients that have not shown yet that they may be here; so the next one."""

MAX_PER_PEER: Final = 256
_STATIC: Final = Path(__file__).parent / "static"

# The library logs whole request lines at DEBUG, and one of them carries the token.
_log = logging.getLogger("iact.web.http")
_log.setLevel(logging.WARNING)


class _GuardedConnection(ServerConnection):
    """A TCP connection that is one of `unverified` until its request was judged."""

    unverified: UnverifiedConnections[ServerConnection]
    seconds: float
    """In which its request must come. The library's own limit would end long downloads, too."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        late = self.loop.call_later(self.seconds, self.transport.abort)
        self.request_rcvd.add_done_callback(lambda _: late.cancel())
        self.late = late
        peer = transport.get_extra_info("peername")
        oldest = self.unverified.add(self, str(peer[0]) if peer else "")
        if oldest is not None:
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.late.cancel()
        self.unverified.discard(self)
        super().connection_lost(exc)


class PageOptions(TypedDict, total=False):
    """The arguments of `PageServer`."""

    host: str
    port: int
    key: str | None
    token: str | None
    allow_remote: bool
    names: Iterable[str]
    send_timeout: float
    hello_timeout: float
    open_timeout: float


class PageServer:
    """Serves the page and `/ws` to whoever may have them; what is said over `/ws` is for a subclass to answer.

    Args:
        host: the address to bind; anything but loopback needs `allow_remote`.
        port: 0 takes a free one; `port` tells which.
        key: the secret of this run, for programs; a fresh one of 256 bits if not given.
        token: that of the address of the start (`web.tokens`); likewise.
        names: further host names under which clients may reach a server beyond loopback.
        send_timeout, hello_timeout, open_timeout: seconds that a client may take to read a message, to send
            its first one, and to send its request.

    Raises:
        UsageError: the address is not loopback and `allow_remote` is not set.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str | None = None,
        token: str | None = None,
        allow_remote: bool = False,
        names: Iterable[str] = (),
        send_timeout: float = 10.0,
        hello_timeout: float = 10.0,
        open_timeout: float = 5.0,
    ) -> None:
        if not safety.is_loopback(host) and not allow_remote:
            raise UsageError(
                f"Binding to {host} would open this server to other machines without encryption; "
                "bind to 127.0.0.1, or say explicitly that you want it."
            )
        self._host = host
        self._port = port
        self._key = key or secrets.token_urlsafe(32)
        self._tokens = AccessTokens(time.monotonic, token)
        self._used = asyncio.Event()
        self._names = tuple(names)
        self._send_timeout = send_timeout
        self._hello_timeout = hello_timeout
        self._open_timeout = open_timeout
        self._assets = load(_STATIC)
        self._server: Server | None = None
        self._streams = Streams(patience=send_timeout)
        self._unverified: UnverifiedConnections[ServerConnection] = UnverifiedConnections(
            most=MAX_CONNECTIONS, per_peer=MAX_PER_PEER
        )
        self._policy: safety.AccessPolicy | None = None

    @property
    def port(self) -> int:
        """The port in use; known after `start`."""
        return self._port

    @property
    def key(self) -> str:
        """The secret of this run; the command line sends it as `Authorization: Bearer …`."""
        return self._key

    @property
    def token(self) -> str:
        """That of the address of the start."""
        return self._tokens.first

    @property
    def url(self) -> str:
        """The address to open in a browser, with the token of the start."""
        return self._url(self._tokens.first)

    def new_url(self) -> str:
        """An address with a token of its own, for one more browser."""
        return self._url(self._tokens.issue())

    async def signed_in(self) -> None:
        """Wait until the first browser has signed in."""
        await self._used.wait()

    def _url(self, token: str) -> str:
        everywhere = {"", "0.0.0.0", "::"}
        host = "127.0.0.1" if self._host in everywhere else safety.bracketed(self._host)
        return f"http://{host}:{self._port}/?token={token}"

    @property
    def routes(self) -> frozenset[str]:
        """Every path that a GET finds, but for `/ws` and downloads."""
        return frozenset(self._assets)

    def backlog(self) -> list[int]:
        """How many bytes wait to be read by each client that is connected."""
        connections = self._server.connections if self._server is not None else ()
        return [one.transport.get_write_buffer_size() for one in connections]

    async def converse(self, socket: ServerConnection) -> None:
        """Serve a websocket until it ends."""
        raise NotImplementedError

    async def download(self, path: str) -> Download | None:
        """The file that waits to be downloaded at an address."""
        raise NotImplementedError

    async def start(self) -> None:
        """Bind and accept.

        Raises:
            UsageError: the address or port can't be had.
        """
        host = "127.0.0.1" if self._host == "localhost" else self._host.strip("[]")
        self._unverified = UnverifiedConnections(most=MAX_CONNECTIONS, per_peer=MAX_PER_PEER)

        class Guarded(_GuardedConnection):
            unverified = self._unverified
            seconds = self._open_timeout

        try:
            self._server = await serve(
                self.converse,
                host,
                self._port,
                process_request=self._answer,
                process_response=self._complete,
                create_connection=Guarded,
                compression=None,
                server_header=None,
                max_size=MAX_MESSAGE,
                max_queue=8,
                open_timeout=None,
                ping_interval=20,
                ping_timeout=20,
                close_timeout=5,
                logger=_log,
            )
        except OSError as error:
            raise UsageError(
                f"The server can't listen on {host} port {self._port} ({error.strerror}); choose another with --port."
            ) from error
        self._port = self._server.sockets[0].getsockname()[1]
        hosts = safety.own_hosts(
            self._host.strip("[]") and safety.bracketed(self._host), self._port, self._names
        )
        self._policy = safety.AccessPolicy(self._key, self._port, hosts, self._tokens.good)

    async def stop(self) -> None:
        """Close every connection and the port; returns when all is gone."""
        if self._server is not None:
            server, self._server = self._server, None
            self._streams.end()
            server.close()
            await server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer a request, or let it become a websocket (None)."""
        assert self._policy is not None
        verdict = self._policy.judge(_asked(request))
        if not isinstance(verdict, safety.Refused):
            self._unverified.discard(connection)
        match verdict:
            case safety.Refused(status, reason):
                return _refusal(status, reason, again=_came_by_a_link(request))
            case safety.SignedIn(cookie, token):
                self._tokens.exchange(token)
                self._used.set()
                return _response(
                    303, "", "text/plain; charset=utf-8", [("Location", "/"), ("Set-Cookie", cookie)]
                )
            case safety.WantsPath(path):
                download = await self.download(path) if path.startswith(PREFIX) else None
                if download is not None:
                    return await self._send_download(connection, download)
                return self._file(
                    path, packed="gzip" in ", ".join(request.headers.get_all("Accept-Encoding"))
                )
            case safety.WantsSocket():
                return self._room()

    async def _send_download(self, connection: ServerConnection, download: Download) -> Response:
        headers, media = [("Content-Disposition", download.disposition)], "application/octet-stream"
        if isinstance(download.content, bytes):
            return _response(200, download.content, media, headers)
        head = _response(200, "", media, [*headers, ("Transfer-Encoding", "chunked")])
        del head.headers["Content-Length"]
        return await self._streams.send(connection, head, download.content)

    def _file(self, path: str, *, packed: bool) -> Response:
        asset = self._assets.get(path)
        if asset is None:
            return _refusal(404, "There is nothing at this address.")
        if packed:
            return _response(200, asset.packed, asset.media, [("Content-Encoding", "gzip")])
        return _response(200, asset.content, asset.media)

    def _room(self) -> Response | None:
        if self._server is not None and len(self._server.connections) >= MAX_SOCKETS:
            return _refusal(503, "Too many clients are connected; close one and try again.")
        return None

    def _complete(self, connection: ServerConnection, request: Request, response: Response) -> None:
        """Put the safety headers on what the library itself refuses, too."""
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            for name, value in safety.SECURITY_HEADERS:
                if name not in response.headers:
                    response.headers[name] = value


class WebServer(PageServer):
    """Serves the sessions of `runtime`. `product`: what the rest of the product can tell and make; without, those messages
    are refused. `options`: as `PageServer`."""

    def __init__(
        self, runtime: Runtime, *, product: Product | None = None, **options: Unpack[PageOptions]
    ) -> None:
        super().__init__(**options)
        self._runtime = runtime
        self._shared = Shared(product, self.new_url)
        self._open: set[Connection] = set()

    def offer(self, name: str, content: Content) -> str:
        """Lay a file ready to be downloaded once; gives its path on this server."""
        return self._shared.downloads.put(name, content)

    async def send_away(self, session: str | None) -> None:
        """Close the connections that watch a session (None: all), since it is served elsewhere from now on."""
        async with asyncio.TaskGroup() as group:
            for one in self._open:
                if session is None or one.watches == session:
                    group.create_task(one.send_away())

    async def stop(self) -> None:
        """As `PageServer.stop`."""
        await super().stop()
        self._shared.rendered.close()

    async def converse(self, socket: ServerConnection) -> None:
        """As `PageServer.converse`."""
        connection = Connection(
            socket,
            self._runtime,
            self._shared,
            send_timeout=self._send_timeout,
            hello_timeout=self._hello_timeout,
        )
        self._open.add(connection)
        try:
            await connection.serve()
        finally:
            self._open.discard(connection)

    async def download(self, path: str) -> Download | None:
        """As `PageServer.download`."""
        return self._shared.downloads.take(path)


def _asked(request: Request) -> safety.Asked:
    headers = request.headers
    return safety.Asked(
        method=request.method,
        target=request.path,
        hosts=tuple(headers.get_all("Host")),
        origins=tuple(headers.get_all("Origin")),
        cookies=tuple(headers.get_all("Cookie")),
        authorizations=tuple(headers.get_all("Authorization")),
    )


def _response(
    status: int, content: str | bytes, media: str, headers: Iterable[tuple[str, str]] = ()
) -> Response:
    body = content.encode() if isinstance(content, str) else content
    standard = [("Content-Type", media), ("Content-Length", str(len(body))), ("Connection", "close")]
    given = list(headers)
    replaced = {name for name, _ in given}
    safe = [(name, value) for name, value in safety.SECURITY_HEADERS if name not in replaced]
    return Response(status, HTTPStatus(status).phrase, Headers([*standard, *safe, *given]), body)


_REFUSAL_STYLE: Final = (
    "body{font:16px/1.55 system-ui,sans-serif;max-width:34rem;margin:18vh auto;padding:0 1.5rem;"
    "color:#22252b;background:#fbfbfa}h1{font-size:1.25rem;margin:0 0 .5rem}a{color:#2456a6}"
    "@media(prefers-color-scheme:dark){body{color:#e4e4e1;background:#17181b}a{color:#8fb4ee}}"
)
_REFUSAL_HASH: Final = base64.b64encode(hashlib.sha256(_REFUSAL_STYLE.encode()).digest()).decode()
_REFUSAL_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_REFUSAL_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def _came_by_a_link(request: Request) -> bool:
    """Whether a browser opens the page because another site, or a file, led it here."""
    site = request.headers.get_all("Sec-Fetch-Site")
    return site == ["cross-site"] and request.path == "/"


def _refusal(status: int, reason: str, *, again: bool = False) -> Response:
    """A readable page that needs nothing else from the server. `reason` is one of our own sentences.

    `again`: it is tried once more by itself.
    """
    # A strict cookie is not sent along when another site's link led here; following a link of our own sends it.
    refresh = '<meta http-equiv="refresh" content="0;url=/">' if again and status == 401 else ""
    link = '<p><a href="/">Try again</a> if you came here by a link.</p>' if status == 401 else ""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"{refresh}<title>iact: {HTTPStatus(status).phrase}</title><style>{_REFUSAL_STYLE}</style>"
        f"<h1>{HTTPStatus(status).phrase}</h1><p>{reason}</p>{link}</html>\n"
    )
    headers = [("Content-Security-Policy", _REFUSAL_POLICY)]
    if status == 405:
        headers.append(("Allow", "GET"))
    return _response(status, page, "text/html; charset=utf-8", headers)
