"""The web server: one port with the page and one websocket, guarded by the judgement of `safety`.

websockets' asyncio server answers both: `process_request` sees every request before anything else does and answers the
page itself; a request that it lets through becomes a websocket.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from ssl import SSLContext
from typing import Final, Self, TypedDict, Unpack

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State

from iact.accounts.people import HttpReply
from iact.accounts.rights import LOCAL, Principal
from iact.core.errors import IactError, UsageError
from iact.core.views.figures import Figures, Workload
from iact.web import safety
from iact.web.assets import load
from iact.web.connection import Connection, Shared
from iact.web.downloads import PREFIX, VIEW, VIEWS, Content, Download, view_of
from iact.web.limits import MAX_MESSAGE, PING_SECONDS, SILENT_SECONDS
from iact.web.markup import NOTHING, html, trusted
from iact.web.ports import Entrance, People, PeopleRegister, Product, Runtime, SharedSetup, Tenant, Tenants
from iact.web.streaming import Streams
from iact.web.tokens import AccessTokens
from iact.web.unverified_connections import UnverifiedConnections

MAX_SOCKETS: Final = 64
"""The most websockets of a server with one user, whose pages and commands they all are."""
MAX_SOCKETS_OF_ALL: Final = 1024
"""The most websockets of a server with accounts."""
MAX_PER_PERSON: Final = 64
"""The most of one person there: as many as with one user."""
MAX_PER_LINK: Final = 16
MAX_OF_LINKS: Final = 256
"""The most websockets of all links together, so that nobody who only has links shuts people out."""
MAX_LINKS_PER_ADDRESS: Final = 32
MAX_CONNECTIONS: Final = 512
"""The most connections of clients that have not authenticated yet; `MAX_PER_PEER`: from one address."""

MAX_PER_PEER: Final = 256
_KEPT: Final = "private, max-age=31536000, immutable"
"""For files that never change at their address: the page's files, requested with their version."""
_LOOK: Final = 1.0
"""Seconds for which a check of whether new work is accepted is reused."""
_LOOKING: Final = 3.0
"""Seconds that the check may take."""
_CLOSING: Final = 5.0
"""Seconds that a websocket may take to close."""
_LAST_WORD: Final = 1.0
"""Seconds that the reason has to reach a client whose connection is given up."""
_PLAIN: Final = "text/plain; charset=utf-8"
_STATIC: Final = Path(__file__).parent / "static"

# The library logs whole request lines at DEBUG, and one of them contains the token.
_log = logging.getLogger("iact.web.http")
_log.setLevel(logging.WARNING)
_LOG: Final = logging.getLogger("iact.web")


class _GuardedConnection(ServerConnection):
    """A TCP connection that is one of `unverified` until its request was judged.

    As a websocket, it ends when nothing was heard from its client for a while. A tunnel that swallows bytes, or a
    machine that has gone to sleep, leaves a connection open for ever.
    """

    unverified: UnverifiedConnections[ServerConnection]
    who: Principal | None = None
    """Who sent its request, once that was judged."""
    peer: str = ""
    """The address that it comes from, once its request was judged."""
    seconds: float
    """How long its request may take to arrive. The library's own limit would end long downloads, too."""
    heard: float = 0.0
    """When the last byte came from the client, by the loop's clock."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        late = self.loop.call_later(self.seconds, self.transport.abort)
        self.request_rcvd.add_done_callback(lambda _: late.cancel())
        self.late = late
        peer = transport.get_extra_info("peername")
        oldest = self.unverified.add(self, str(peer[0]) if peer else "")
        if oldest is not None:
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.heard = self.loop.time()
        super().data_received(data)

    async def keepalive(self) -> None:
        """Ask a silent client whether it is there, and end its websocket if it doesn't say so.

        Any byte counts. The library's own check waits for the answer to its question, which arrives late where a slow
        line is still busy with what was sent before.
        """
        looked = self.loop.time()
        while self.protocol.state is State.OPEN:
            await asyncio.sleep(PING_SECONDS)

            # A look that comes late says that this server was away, or asleep, and has not asked meanwhile.
            now = self.loop.time()
            self.heard += max(0.0, now - looked - 2 * PING_SECONDS)
            looked = now

            # A server that doesn't read, because it is busy with this client's requests, can't hear.
            if not self.transport.is_reading():
                self.heard = self.loop.time()

            silent = self.loop.time() - self.heard
            if silent >= SILENT_SECONDS:
                self._give_up(silent)
                return
            if silent >= PING_SECONDS:
                self._tell(lambda: self.protocol.send_ping(b""))

        # Closing takes an answer from the client, too.
        await asyncio.sleep(_CLOSING)
        self.transport.abort()

    def _give_up(self, silent: float) -> None:
        _LOG.info("connection given up", extra={"address": self.peer, "silent_seconds": round(silent)})
        # Where only the way to the server is blocked, this reaches the client.
        self._tell(lambda: self.protocol.fail(CloseCode.GOING_AWAY, "nothing was heard from you"))
        self.loop.call_later(_LAST_WORD, self.transport.abort)

    def _tell(self, put: Callable[[], None]) -> None:
        """Send something without waiting until there is room for it."""
        if self.protocol.state is State.OPEN:
            put()
            self.send_data()

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
    outside: str | None
    admits: Callable[[str], bool]
    send_timeout: float
    hello_timeout: float
    open_timeout: float
    tls: SSLContext | None


class DoorOptions(TypedDict):
    """The arguments that say how a server is reached."""

    outside: str | None
    allow_remote: bool
    admits: Callable[[str], bool]


class PageServer:
    """Serves the page and `/ws` to authorised clients; a subclass answers what is said over `/ws`.

    Args:
        host: the address to bind; anything but loopback needs `allow_remote`.
        port: 0 takes a free one; the property `port` says which.
        key: the secret of this run, for programs; a new one of 256 bits if not given.
        token: the token in the address printed at the start (`web.tokens`); likewise.
        names: further host names under which clients may reach a server beyond loopback.
        outside: the address under which a proxy serves this server.
        admits: whether requests without a program's secret may then come from an address.
        tls: encrypts the port, and says which clients may connect; None: no encryption.
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
        outside: str | None = None,
        admits: Callable[[str], bool] = lambda peer: True,
        send_timeout: float = 10.0,
        hello_timeout: float = 10.0,
        open_timeout: float = 5.0,
        tls: SSLContext | None = None,
    ) -> None:
        if not safety.is_loopback(host) and not allow_remote:
            raise UsageError(
                f"Binding to {host} would open this server to other machines without encryption; bind "
                "to 127.0.0.1, or use accounts behind a proxy with TLS (docs/how-to/deploy.md)."
            )

        self._host = host
        self._port = port
        self._names = tuple(names)
        self._outside = None if outside is None else outside.rstrip("/").lower()
        self._tls = tls

        self._key = key or secrets.token_urlsafe(32)
        self._tokens = AccessTokens(time.monotonic, token)
        self._used = asyncio.Event()
        """Set once a browser has signed in."""
        self._admits = admits
        self._policy: safety.AccessPolicy | None = None
        """How requests are judged; known after `start`, which knows the port."""

        self._send_timeout = send_timeout
        self._hello_timeout = hello_timeout
        self._open_timeout = open_timeout

        self._server: Server | None = None
        self._assets = load(_STATIC)
        self._streams = Streams(patience=send_timeout)
        self._unverified: UnverifiedConnections[ServerConnection] = UnverifiedConnections(
            most=MAX_CONNECTIONS, per_peer=MAX_PER_PEER
        )
        self._refused: Counter[tuple[str, str]] = Counter()

        self._readiness: asyncio.Future[str] | None = None
        """The newest check of whether new work is accepted."""
        self._asked_at = 0.0
        """When it began, by the monotonic clock."""
        self.unavailable = ""
        """Why no new work should be sent here, in one word, such as "draining"; empty if it may be."""

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
        """The token in the address printed at the start."""
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
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{host}:{self._port}/?token={token}"

    @property
    def routes(self) -> frozenset[str]:
        """Every path that a GET finds, except `/ws` and downloads."""
        return frozenset(self._assets.files)

    def identify(self, asked: safety.Asked) -> Principal | None:
        """Who a request comes from, on a server with accounts (`accounts`)."""
        raise NotImplementedError

    def enter(self, asked: safety.Asked) -> HttpReply:
        """Answer a client that signs in, or follows a link (`accounts`)."""
        raise NotImplementedError

    async def unready(self) -> str:
        """Why no new work is accepted, in one word; empty if it is."""
        return ""

    def work(self) -> tuple[Figures, Workload] | None:
        """What sessions did and do, for metrics; None if none are served."""
        return None

    accounts = False
    """Whether there are accounts. Without them, the holder of the server's secret is its one user."""

    def backlog(self) -> list[int]:
        """How many bytes wait to be read by each connected client."""
        connections = self._server.connections if self._server is not None else ()
        return [connection.transport.get_write_buffer_size() for connection in connections]

    async def converse(self, socket: ServerConnection) -> None:
        """Serve a websocket until it ends."""
        raise NotImplementedError

    async def download(self, path: str, who: Principal) -> Download | None:
        """The requester's file that waits to be downloaded at an address."""
        raise NotImplementedError

    async def start(self) -> None:
        """Bind and accept connections.

        Raises:
            UsageError: the address or port can't be used.
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
                ssl=self._tls,
                ssl_handshake_timeout=self._open_timeout if self._tls else None,
                compression=None,
                server_header=None,
                max_size=MAX_MESSAGE,
                max_queue=8,
                open_timeout=None,
                ping_interval=PING_SECONDS,
                close_timeout=_CLOSING,
                logger=_log,
            )
        except OSError as error:
            raise UsageError(
                f"The server can't listen on {host} port {self._port} ({error.strerror}); choose another with --port."
            ) from error

        self._port = self._server.sockets[0].getsockname()[1]
        self._policy = self._access_policy()

    def _access_policy(self) -> safety.AccessPolicy:
        """How requests are judged, now that the port is known."""
        is_named = bool(self._host.strip("[]"))
        host = safety.bracketed(self._host) if is_named else ""
        hosts = safety.own_hosts(host, self._port, self._names)

        identify = self.identify if self.accounts else None
        policy = safety.AccessPolicy(self._key, self._port, hosts, self._tokens.good, identify)
        if self._outside is None:
            return policy

        return replace(policy, origins=frozenset((self._outside,)), admits=self._admits)

    async def stop(self) -> None:
        """Close every connection and the port; returns when all are closed."""
        server = self._server
        if server is None:
            return

        self._server = None
        self._streams.end()
        if self._readiness is not None:
            self._readiness.cancel()

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
        asked = _asked(connection, request)
        if self.accounts:
            verdict = await asyncio.to_thread(self._policy.judge, asked)  # it reads a database
        else:
            verdict = self._policy.judge(asked)

        # Who signs in, or probes, has not shown who they are.
        if not isinstance(verdict, safety.Refused | safety.WantsEntrance | safety.WantsProbe):
            self._unverified.discard(connection)

        match verdict:
            case safety.WantsProbe(path):
                return await self._probed(path)
            case safety.WantsPath(safety.METRICS):
                return await self._metrics()
            case safety.WantsEntrance():
                return await self._enter(asked)
            case safety.Refused():
                return self._refuse(verdict, asked, by_link=_came_by_a_link(request))
            case safety.SignedIn(cookie, token):
                self._tokens.exchange(token)
                _LOG.info("sign-in", extra={"user": LOCAL.user, "address": asked.peer})
                self._used.set()
                return _response(303, "", _PLAIN, [("Location", "/"), ("Set-Cookie", cookie)])
            case safety.WantsPath(path, who):
                return await self._send(connection, request, path, who)
            case safety.WantsSocket(who):
                assert isinstance(connection, _GuardedConnection)
                refusal = self._room(who, asked.peer)
                if refusal is None:
                    connection.who = who
                    connection.peer = asked.peer
                return refusal

    def _refuse(self, refused: safety.Refused, asked: safety.Asked, *, by_link: bool) -> Response:
        """Refuse a request. A browser that isn't signed in is led to where people sign in.

        `by_link`: the page was opened by a link on another site, for which browsers send no cookie; so it may be signed
        in, and tries once more.
        """
        self._refused["http", str(refused.status)] += 1
        # The row and not the path, which may contain the secret of a link.
        row = safety.route_of(asked.target.partition("?")[0])
        _LOG.info("request refused", extra={"status": refused.status, "route": row, "address": asked.peer})

        is_signed_out = refused.status == HTTPStatus.UNAUTHORIZED
        if is_signed_out and self.accounts and asked.target == "/" and not by_link:
            return _response(303, "", _PLAIN, [("Location", safety.SIGN_IN)])
        return _refusal(refused.status, refused.reason, again=by_link)

    async def _send(
        self, connection: ServerConnection, request: Request, path: str, who: Principal
    ) -> Response:
        """Send a file of the page, or one that waits to be downloaded or looked at."""
        if path.startswith((PREFIX, VIEW)):
            download = await self.download(path, who)
            if download is not None:
                return await self._send_download(connection, download, path)

        packed = "gzip" in ", ".join(request.headers.get_all("Accept-Encoding"))
        return self._file(path, request.path.partition("?")[2], packed=packed)

    async def _probed(self, path: str) -> Response:
        """Answer a process monitor: whether this process answers, or whether it accepts new work."""
        why = await self._unreadiness() if path == safety.READY else ""
        if why:
            return _response(503, f"{why}\n", _PLAIN)
        return _response(200, "ok\n", _PLAIN)

    async def _unreadiness(self) -> str:
        """Why no new work is accepted. More than one request a second shares one check."""
        if self._server is None:
            return "closing"
        if self.unavailable:
            return self.unavailable

        is_old = time.monotonic() - self._asked_at > _LOOK
        if self._readiness is None or (self._readiness.done() and is_old):
            self._readiness = asyncio.ensure_future(self.unready())
            self._asked_at = time.monotonic()

        done, _ = await asyncio.wait([self._readiness], timeout=_LOOKING)
        if self._readiness.cancelled():
            return "closing"
        return self._readiness.result() if done else "slow"

    async def _metrics(self) -> Response:
        await asyncio.to_thread(import_module, "iact.web.metrics")  # only now: metrics are rarely requested
        from iact.web import metrics

        connections = len(self._server.connections) if self._server is not None else 0
        text = metrics.exposition(connections, self._refused, self.work())
        return _response(200, text, metrics.MEDIA)

    async def _enter(self, asked: safety.Asked) -> Response:
        """The page on which people sign in, or an answer to its script."""
        path = asked.target.partition("?")[0]
        if asked.method == "GET" and (path == safety.SIGN_IN or path.startswith("/link/")):
            return self._file("/static/sign-in/sign-in.html", "", packed=False)
        reply = await asyncio.to_thread(self.enter, asked)
        return _response(reply.status, reply.body, "application/json; charset=utf-8", reply.headers)

    async def _send_download(
        self, connection: ServerConnection, download: Download, address: str
    ) -> Response:
        view = view_of(address)
        if view is None:
            media = "application/octet-stream"
            headers = [("Content-Disposition", download.disposition)]
        else:
            media = VIEWS[view][0]
            headers = [*VIEWS[view][1]]

        if isinstance(download.content, bytes):
            return _response(200, download.content, media, headers)

        head = _response(200, "", media, [*headers, ("Transfer-Encoding", "chunked")])
        del head.headers["Content-Length"]
        return await self._streams.send(connection, head, download.content)

    def _file(self, path: str, query: str, *, packed: bool) -> Response:
        asset = self._assets.get(path, query)
        if asset is None:
            return _refusal(404, "There is nothing at this address.")

        headers = [("Cache-Control", _KEPT)] if asset.kept else []
        if packed:
            return _response(200, asset.packed, asset.media, [("Content-Encoding", "gzip"), *headers])
        return _response(200, asset.content, asset.media, headers)

    def _room(self, who: Principal, peer: str) -> Response | None:
        """Refuse one more websocket of this client, if it has too many, or if there are too many of all clients."""
        if self._server is None:
            return None

        guarded = [
            connection
            for connection in self._server.connections
            if isinstance(connection, _GuardedConnection)
        ]
        others = [(connection.who, connection.peer) for connection in guarded if connection.who is not None]
        if not self.accounts:
            is_full = len(others) >= MAX_SOCKETS
        elif who.link:
            is_full = _too_many_of_links(others, who, peer)
        else:
            own = sum(other.user == who.user and not other.link for other, _ in others)
            is_full = own >= MAX_PER_PERSON or len(others) >= MAX_SOCKETS_OF_ALL

        if not is_full:
            return None
        return _refusal(503, "Too many clients are connected; close one and try again.")

    def _complete(self, connection: ServerConnection, request: Request, response: Response) -> None:
        """Add the safety headers to the library's own refusals, too."""
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            for name, value in safety.SECURITY_HEADERS:
                if name not in response.headers:
                    response.headers[name] = value


def _too_many_of_links(others: Sequence[tuple[Principal, str]], who: Principal, peer: str) -> bool:
    """Whether the holder of a link at the address `peer` must close a websocket first."""
    of_links = [(other, place) for other, place in others if other.link]
    same_link = sum(other.link == who.link for other, _ in of_links)
    same_address = sum(place == peer for _, place in of_links)
    bounds = (
        (same_link, MAX_PER_LINK),
        (same_address, MAX_LINKS_PER_ADDRESS),
        (len(of_links), MAX_OF_LINKS),
        (len(others), MAX_SOCKETS_OF_ALL),
    )
    return any(count >= most for count, most in bounds)


class PeopleOptions(TypedDict, total=False):
    """What a `WebServer` with accounts needs; as its arguments."""

    people: People
    tenants: Tenants
    entrance: Entrance
    register: PeopleRegister
    setup: SharedSetup
    outside: str | None
    allow_remote: bool
    admits: Callable[[str], bool]


class WebServer(PageServer):
    """Serves the sessions of `runtime`. `product`: what the rest of the product provides; without it, those messages
    are refused. `people`, `tenants`, `entrance`, `register`, `setup`: where there are several users; `runtime` is then
    that of the user `local`, the holder of this run's key. `options`: as `PageServer`."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        product: Product | None = None,
        people: People | None = None,
        tenants: Tenants | None = None,
        entrance: Entrance | None = None,
        register: PeopleRegister | None = None,
        setup: SharedSetup | None = None,
        **options: Unpack[PageOptions],
    ) -> None:
        super().__init__(**options)

        self._local = Tenant(runtime, product)
        self._people = people
        self._entrance = entrance
        self._tenants = tenants
        self.accounts = people is not None
        self._shared = Shared(
            self.new_url,
            refused=self._refused,
            tenants=tenants,
            people=people,
            register=register,
            setup=setup,
        )
        self._open: set[Connection] = set()

    def offer(self, name: str, content: Content) -> str:
        """Offer a file to be downloaded once, by the holder of this run's key. Returns its path on this server."""
        return self._shared.downloads.put(name, content, LOCAL.whose)

    def identify(self, asked: safety.Asked) -> Principal | None:
        """See `PageServer.identify`."""
        return self._people.identify(asked) if self._people is not None else None

    def enter(self, asked: safety.Asked) -> HttpReply:
        """See `PageServer.enter`."""
        if self._entrance is None:
            return HttpReply(404)
        return self._entrance.answer(asked)

    async def unready(self) -> str:
        """See `PageServer.unready`."""
        return await self._local.runtime.unready()

    def work(self) -> tuple[Figures, Workload] | None:
        """See `PageServer.work`; over all users."""
        runtime = self._local.runtime
        figures = Figures()
        figures.add(runtime.figures)
        workload = runtime.workload()

        if self._tenants is not None:
            figures.add(self._tenants.figures)
            workload += self._tenants.workload()

        return figures, workload

    def watches(self, session: str) -> bool:
        """Whether a client watches a session."""
        return any(connection.watches == session for connection in self._open)

    async def send_away(self, session: str | None) -> None:
        """Close the connections that watch a session (None: all), since it is served elsewhere from now on."""
        async with asyncio.TaskGroup() as group:
            for connection in self._open:
                if session is None or connection.watches == session:
                    group.create_task(connection.send_away())

    async def stop(self) -> None:
        """See `PageServer.stop`."""
        await super().stop()
        self._shared.rendered.close()

    async def converse(self, socket: ServerConnection) -> None:
        """See `PageServer.converse`."""
        who = principal_of(socket)
        if who.link:
            await self._serve(socket, who, None)  # the holder of a link owns nothing here
            return
        if who.user == LOCAL.user:
            await self._serve(socket, who, self._local)
            return

        assert self._tenants is not None
        async with AsyncExitStack() as stack:
            try:
                own = await stack.enter_async_context(self._tenants.lease(who.user))
            except IactError as error:
                _LOG.info("connection refused", extra={"user": who.user, "code": type(error).__name__})
                # The protocol has room for 123 bytes of a reason.
                await socket.close(1013, str(error).encode()[:120].decode("utf-8", "ignore"))
                return

            await self._serve(socket, who, own)

    async def _serve(self, socket: ServerConnection, who: Principal, own: Tenant | None) -> None:
        """Serve a websocket until it ends. `own`: what `who` owns, or None."""
        connection = Connection(
            socket,
            who,
            own,
            self._shared,
            send_timeout=self._send_timeout,
            hello_timeout=self._hello_timeout,
        )
        about = {"user": who.user}
        if who.link:
            about["link"] = who.link

        self._open.add(connection)
        _LOG.info("connection opened", extra=about)
        try:
            await connection.serve()
        finally:
            self._open.discard(connection)
            _LOG.info("connection closed", extra=about)

    async def download(self, path: str, who: Principal) -> Download | None:
        """See `PageServer.download`."""
        return self._shared.downloads.take(path, who.whose)


def principal_of(socket: ServerConnection) -> Principal:
    """Who sent the request of a websocket that was accepted."""
    assert isinstance(socket, _GuardedConnection)
    assert socket.who is not None
    return socket.who


def _asked(connection: ServerConnection, request: Request) -> safety.Asked:
    headers = request.headers
    peer = connection.remote_address

    return safety.Asked(
        method=request.method,
        target=request.path,
        hosts=tuple(headers.get_all("Host")),
        origins=tuple(headers.get_all("Origin")),
        cookies=tuple(headers.get_all("Cookie")),
        authorizations=tuple(headers.get_all("Authorization")),
        headers=tuple((name.lower(), value) for name, value in headers.raw_items()),
        peer=str(peer[0]) if peer else "",
    )


def _response(
    status: int, content: str | bytes, media: str, headers: Iterable[tuple[str, str]] = ()
) -> Response:
    body = content.encode() if isinstance(content, str) else content
    standard = [("Content-Type", media), ("Content-Length", str(len(body))), ("Connection", "close")]
    own = list(headers)

    # What a response says about its own safety comes before what is the rule.
    replaced = {name for name, _ in own}
    safe = [(name, value) for name, value in safety.SECURITY_HEADERS if name not in replaced]

    return Response(status, HTTPStatus(status).phrase, Headers([*standard, *safe, *own]), body)


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
    """Whether a browser opens the page because of a link on another site, or in a file."""
    site = request.headers.get_all("Sec-Fetch-Site")
    return site == ["cross-site"] and request.path == "/"


def _refusal(status: int, reason: str, *, again: bool = False) -> Response:
    """A readable page that needs nothing else from the server. `reason` is one of our own sentences.

    `again`: the page retries once automatically.
    """
    refresh = NOTHING
    link = NOTHING
    if status == 401:
        link = html('<p><a href="/">Try again</a> if you came here by a link.</p>')
    if status == 401 and again:
        # A browser sends no strict cookie after a link from another site; it does after a link of our own.
        refresh = html('<meta http-equiv="refresh" content="0;url=/">')

    page = html(
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "{refresh}<title>iact: {phrase}</title><style>{style}</style><h1>{phrase}</h1><p>{reason}</p>{link}</html>\n",
        refresh=refresh,
        phrase=HTTPStatus(status).phrase,
        style=trusted(_REFUSAL_STYLE),
        reason=reason,
        link=link,
    )
    headers = [("Content-Security-Policy", _REFUSAL_POLICY)]
    if status == 405:
        headers.append(("Allow", "GET"))
    return _response(status, page, "text/html; charset=utf-8", headers)
