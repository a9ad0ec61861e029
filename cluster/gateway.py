"""The entrance: serves the page, finds where a session is, and passes the websocket through to the host that has it.

A gateway stores nothing that matters. Any number of them may serve one store; when one ends, its clients lose a second,
then reconnect on their own to any other. What hosts send is passed on unread. Of what clients send, only a few messages
are read: `hello` names a session, and so selects the host; `sessions` subscribes to changes, and is repeated to the
next host; `address` concerns this server and no host; and requests about sessions that the client does not watch are
carried out at the hosts that have them (`cluster.forwarding`).

With accounts, people sign in here, and hosts learn who they are from statements that only members of the cluster can
sign (`cluster.statements`). The host decides what a user may do; the session's owner decides which host that is.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ssl import SSLContext
from typing import Final, Unpack
from urllib.parse import unquote

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from iact.accounts.people import HttpReply
from iact.accounts.rights import LOCAL, Principal, Role, may, refusal
from iact.cluster.control import KeyOf
from iact.cluster.forwarding import FORWARDED, Forwarder, Headers
from iact.cluster.leases import RENEWAL, HostLease
from iact.cluster.placement import HostUnavailable, Location, Placement
from iact.cluster.statements import StatementWriter
from iact.cluster.user_sessions import name_of
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.web.connection import ENDED, MOVED
from iact.web.downloads import Download
from iact.web.ports import Entrance, People
from iact.web.safety import SOCKET_PATH, Asked
from iact.web.server import PageOptions, PageServer, principal_of

_CONNECTING: Final = 3.0
_PING: Final = 5.0
"""Seconds between two questions whether a host is still there; `_PONG`: for its answer."""
_PONG: Final = 10.0
_AGAIN: Final = 1013
_DOWNLOAD: Final = 10.0

_log = logging.getLogger("iact.cluster")
_log_http = logging.getLogger("iact.cluster.http")
_log_http.setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class GatewayPeople:
    """What several users need."""

    people: People
    """Who a client is."""
    entrance: Entrance
    """How they sign in."""
    statements: StatementWriter
    """What tells hosts who they are."""
    holds: Callable[[str, str], bool]
    """Whether a user has a session with this id in the store. Blocks."""


class Gateway(PageServer):
    """Serves clients of all hosts that `placement` knows. `key_of`: the key that a host expects, where there is one
    user; `people`: for several users; `hosts_tls`: encrypts the connections to hosts."""

    def __init__(
        self,
        placement: Placement,
        key_of: KeyOf,
        *,
        people: GatewayPeople | None = None,
        hosts_tls: SSLContext | None = None,
        **options: Unpack[PageOptions],
    ) -> None:
        super().__init__(**options)
        self._placement = placement
        self._key_of = key_of
        self._people = people
        self._hosts_tls = hosts_tls
        self.accounts = people is not None
        self._passages: set[_Passage] = set()
        self._watching: asyncio.Task[None] | None = None

    def identify(self, asked: Asked) -> Principal | None:
        """See `PageServer.identify`."""
        return self._people.people.identify(asked) if self._people is not None else None

    def enter(self, asked: Asked) -> HttpReply:
        """See `PageServer.enter`."""
        return self._people.entrance.answer(asked) if self._people is not None else HttpReply(404)

    async def start(self) -> None:
        """See `PageServer.start`."""
        await super().start()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """See `PageServer.stop`."""
        if self._watching is not None:
            self._watching.cancel()
        await super().stop()

    async def _watch(self) -> None:
        """Cut the connections to hosts that died: a frozen host keeps its side of a connection open for ever."""
        while True:
            await asyncio.sleep(RENEWAL)
            try:
                alive = {lease.incarnation for lease in await self._placement.hosts()}
            except IactError:
                continue  # the store's state is unknown now
            except Exception:
                _log.exception("Looking which hosts are alive met a bug.")
                continue

            dead = [passage for passage in self._passages if passage.at and passage.at not in alive]
            await asyncio.gather(*(passage.cut() for passage in dead))

    async def converse(self, socket: ServerConnection) -> None:
        """Implement `PageServer.converse`: pass everything through, until one side ends."""
        try:
            async with asyncio.timeout(self._hello_timeout):
                first = await socket.recv()
        except TimeoutError:
            await socket.close(1008, "no message came in time")
            return
        except ConnectionClosed:
            return

        who = principal_of(socket)
        headers = partial(self._headers, who)
        place_of = partial(self._place_of, who)
        passage = _Passage(socket, who, self._placement, headers, place_of, self.new_url, self._hosts_tls)
        self._passages.add(passage)
        try:
            await passage.run(first)
        except* ConnectionClosed:
            pass
        except* Exception as group:
            _log.error("A passage through the gateway ended by an error.", exc_info=group)
        finally:
            self._passages.discard(passage)

        # Without effect where it was closed with a reason.
        await socket.close(1011, "internal error; see the gateway's log")

    async def download(self, path: str, who: Principal) -> Download | None:
        """Implement `PageServer.download`: the file is on one of the hosts, and its address can't be guessed."""
        for lease in await self._placement.hosts():
            headers = self._headers(who, lease, path)
            file = await asyncio.to_thread(_download_at, lease, headers, path, self._hosts_tls)
            if file is not None:
                return file
        return None

    def _headers(self, who: Principal, lease: HostLease, path: str) -> Mapping[str, str]:
        """Implement `cluster.forwarding.Headers` for a principal."""
        if self._people is None:
            return {"Authorization": f"Bearer {self._key_of(lease.incarnation)}"}
        return self._people.statements.header(who, lease.incarnation, path)

    async def _place_of(self, who: Principal, session: str | None) -> tuple[str | None, Role]:
        """The name of a session among hosts, and the user's role in it.

        A session that is neither theirs nor granted to them is answered like one that does not exist.

        Raises:
            UsageError: this id is not valid for a session.
        """
        if self._people is None or who.user == LOCAL.user:
            name = None if session is None else name_of(LOCAL.user, session)
            return name, "owner"

        own = None if session is None or who.link else name_of(who.user, session)
        if own is not None and await asyncio.to_thread(self._people.holds, who.user, session or ""):
            return own, "owner"

        grant = await asyncio.to_thread(self._people.people.grant, who, session)
        if grant is not None:
            return name_of(grant.owner, grant.session), grant.role

        # The host answers that there is none. For the holder of a link there is no host to ask.
        if who.link:
            raise UsageError(f"There is no session {(session or '')[:100]!r} here.")
        return own, "owner"


class _Passage:
    """One client, and the host that it is connected to. `place_of`: a session's name among hosts, and the client's role
    in it."""

    def __init__(
        self,
        client: ServerConnection,
        who: Principal,
        placement: Placement,
        headers: Headers,
        place_of: Callable[[str | None], Awaitable[tuple[str | None, Role]]],
        new_url: Callable[[], str],
        tls: SSLContext | None,
    ) -> None:
        self._client = client
        self._who = who
        self._placement = placement
        self._headers = headers
        self._place_of = place_of
        self._new_url = new_url
        self._tls = tls
        self._forwarder = Forwarder(placement, who, headers, tls)
        self._subscription: str | bytes | None = None
        """The message with which the client subscribed to changes of all sessions."""
        self.at = ""
        """The incarnation of the host that it is connected to."""

    async def run(self, first: str | bytes) -> None:
        """Pass on messages, beginning with `first`, until one side ends."""
        frame: str | bytes | None = first
        while frame is not None:
            location = await self._locate(frame)
            if location is None:
                frame = await self._client.recv()
                continue

            try:
                async with self._connected(location) as host:
                    if self._subscription is not None:
                        await host.send(self._subscription)
                    frame = await self._pass(host, frame)
            except HostUnavailable as error:
                await self._client.close(_AGAIN, _short(str(error)))
                return

    async def cut(self) -> None:
        """Close the client's connection to a host that has stopped answering. It reconnects, and is led to another
        host."""
        await self._client.close(_AGAIN, "the host does not answer")

    async def _locate(self, frame: str | bytes) -> Location | None:
        """The host for the session that a `hello` names, or for a new one. None if the client was told why there is
        none."""
        message = _read_here(frame)
        session = message.get("session") if message.get("type") == "hello" else None
        try:
            name, role = await self._place_of(session if isinstance(session, str) else None)
            if name is not None and role == "reader":
                # Viewing must not start anything: the host that had it last has a copy.
                location = await self._placement.locate(name)
                if location is not None:
                    return location
            return await self._placement.place(name)
        except IactError as error:
            sentence = str(error)

        refused = {"type": "error", "id": message.get("id"), "code": "failed", "message": sentence}
        await self._client.send(json.dumps(refused))
        return None

    @asynccontextmanager
    async def _connected(self, location: Location) -> AsyncIterator[ClientConnection]:
        lease = location.lease
        scheme = "wss" if self._tls else "ws"
        async with AsyncExitStack() as stack:
            connecting = connect(
                f"{scheme}://{lease.page}{SOCKET_PATH}", ssl=self._tls,
                additional_headers=self._headers(lease, SOCKET_PATH),
                open_timeout=_CONNECTING, close_timeout=_CONNECTING, compression=None, proxy=None, max_size=None, max_queue=8,
                ping_interval=_PING, ping_timeout=_PONG,
                logger=_log_http,
            )  # fmt: skip
            try:
                host = await stack.enter_async_context(connecting)
            except (OSError, TimeoutError, WebSocketException) as error:
                raise HostUnavailable(f"The host {lease.host} does not answer.") from error

            self.at = lease.incarnation
            yield host

    async def _pass(self, host: ClientConnection, first: str | bytes) -> str | bytes | None:
        """Pass messages on in both directions, beginning with `first`. Returns the message that belongs to another
        host, or None when the connection has ended."""
        async with asyncio.TaskGroup() as group:
            down = group.create_task(self._down(host))
            try:
                return await self._up(host, first)
            except ConnectionClosed:
                return None
            finally:
                down.cancel()

    async def _down(self, host: ClientConnection) -> None:
        try:
            async for frame in host:
                await self._client.send(frame)
        except ConnectionClosed:
            pass
        # However it ended, the client reconnects and is led to where its session is then.
        code = host.close_code if host.close_code in (MOVED, ENDED, 1008) else _AGAIN
        await self._client.close(code or _AGAIN, _short(host.close_reason or "the host has ended"))

    async def _up(self, host: ClientConnection, first: str | bytes) -> str | bytes | None:
        """Pass on what the client sends. Returns the message that belongs to another host, or None at the end."""
        await self._say(host, first)
        async for frame in self._client:
            message = _read_here(frame)
            if message.get("type") == "hello" and await self._elsewhere(message.get("session")):
                return frame
            await self._say(host, frame)
        return None

    async def _say(self, host: ClientConnection, frame: str | bytes) -> None:
        """Pass a message on, or answer it here."""
        message = _read_here(frame)
        match message.get("type"):
            case "sessions":
                self._subscription = frame
            case "address":
                await self._client.send(json.dumps(self._address(message)))
                return
            case str(kind) if kind in FORWARDED:
                await self._client.send(json.dumps(await self._forwarder.run(message)))
                return
        await host.send(frame)

    def _address(self, message: Mapping[str, JSON]) -> dict[str, JSON]:
        """The answer to a request for an address under which another browser can sign in."""
        if may(self._who, "admin", "owner"):
            return {"type": "ok", "id": message.get("id"), "url": self._new_url()}
        return {"type": "error", "id": message.get("id"), "code": "forbidden", "message": refusal("admin")}

    async def _elsewhere(self, session: JSON) -> bool:
        """Whether a session is on another host than the one that the client is connected to."""
        if not isinstance(session, str):
            return False
        try:
            name, _ = await self._place_of(session)
        except IactError:
            return False  # its current host will report the same
        at = None if name is None else await self._placement.locate(name)
        return at is None or at.lease.incarnation != self.at


_READ_HERE: Final = ('"hello"', '"sessions"', '"address"', '"session.')
_SMALL: Final = 1 << 16


def _read_here(frame: str | bytes) -> Mapping[str, JSON]:
    """The message, if it may be one that gateways read; empty for all others, which pass through unchanged."""
    if not isinstance(frame, str) or len(frame) > _SMALL:
        return {}
    if not any(mark in frame for mark in _READ_HERE):
        return {}

    try:
        message = json.loads(frame)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _short(reason: str) -> str:
    """Shorten to fit the reason of a close frame, which has room for 123 bytes."""
    return reason.encode()[:120].decode("utf-8", "ignore")


def _download_at(
    lease: HostLease, headers: Mapping[str, str], path: str, tls: SSLContext | None
) -> Download | None:
    """A file to be downloaded from a host. Blocks."""
    client = httpx.Client(timeout=_DOWNLOAD, trust_env=False, verify=tls or True)
    scheme = "https" if tls else "http"
    request = client.build_request("GET", f"{scheme}://{lease.page}{path}", headers=dict(headers))
    try:
        answer = client.send(request, stream=True)
    except httpx.HTTPError:
        client.close()
        return None
    if answer.status_code != 200:
        answer.close()
        client.close()
        return None

    def pieces() -> Iterator[bytes]:
        try:
            yield from answer.iter_raw()
        finally:
            answer.close()
            client.close()

    disposition = answer.headers.get("Content-Disposition", "")
    name = disposition.rpartition("filename*=UTF-8''")[2]
    return Download(unquote(name) or "file", pieces)
