"""The way in: serves the page, asks where a session is, and passes the websocket through to the host that has it.

A gateway keeps nothing that matters. Any number of them may serve one store; one that ends costs its clients a second,
after which they come back by themselves, to any of them. What hosts say is passed on as it comes. Of what clients say
few messages are looked at: `hello` names a session, and so chooses the host; `sessions` wants to be told of changes,
and is said again to another host; `address` is about this server and no host; and what is to be done with sessions that
the client does not watch is done at the hosts that have them (`cluster.errands`).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Unpack
from urllib.parse import unquote

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed, WebSocketException

from iact.accounts.rights import Principal
from iact.cluster.control import KeyOf
from iact.cluster.errands import ERRANDS, Errands
from iact.cluster.leases import RENEWAL, HostLease
from iact.cluster.placement import HostUnavailable, Location, Placement
from iact.core.errors import IactError
from iact.core.ports import JSON
from iact.web.connection import MOVED
from iact.web.downloads import Download
from iact.web.server import PageOptions, PageServer

_CONNECTING: Final = 3.0
_AGAIN: Final = 1013
_DOWNLOAD: Final = 10.0

_log = logging.getLogger("iact.cluster")
_log_http = logging.getLogger("iact.cluster.http")
_log_http.setLevel(logging.WARNING)


class Gateway(PageServer):
    """Serves clients of all hosts that `placement` knows. `key_of`: what a host wants to be shown."""

    def __init__(self, placement: Placement, key_of: KeyOf, **options: Unpack[PageOptions]) -> None:
        super().__init__(**options)
        self._placement = placement
        self._key_of = key_of
        self._passages: set[_Passage] = set()
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """As `PageServer.start`."""
        await super().start()
        self._watching = asyncio.create_task(self._watch())

    async def stop(self) -> None:
        """As `PageServer.stop`."""
        if self._watching is not None:
            self._watching.cancel()
        await super().stop()

    async def _watch(self) -> None:
        """Cut the passages to hosts that died: one that is frozen keeps its side of a connection for ever."""
        while True:
            await asyncio.sleep(RENEWAL)
            try:
                alive = {one.incarnation for one in await self._placement.hosts()}
            except IactError:
                continue  # nothing can be known now
            except Exception:
                _log.exception("Looking which hosts are alive met a bug.")
                continue
            await asyncio.gather(*(one.cut() for one in self._passages if one.at and one.at not in alive))

    async def converse(self, socket: ServerConnection) -> None:
        """As `PageServer.converse`: pass everything through, until one side ends."""
        try:
            async with asyncio.timeout(self._hello_timeout):
                first = await socket.recv()
        except TimeoutError:
            await socket.close(1008, "no message came in time")
            return
        except ConnectionClosed:
            return
        passage = _Passage(socket, self._placement, self._key_of, self.new_url)
        self._passages.add(passage)
        try:
            await passage.run(first)
        except* ConnectionClosed:
            pass
        except* Exception as group:
            _log.error("A passage through the gateway ended by an error.", exc_info=group)
        finally:
            self._passages.discard(passage)
        await socket.close(1011, "internal error; see the gateway's log")

    async def download(self, path: str, who: Principal) -> Download | None:
        """As `PageServer.download`: it waits at one of the hosts, and nobody else can guess its address."""
        for lease in await self._placement.hosts():
            found = await asyncio.to_thread(_download_at, lease, self._key_of(lease.incarnation), path)
            if found is not None:
                return found
        return None


class _Passage:
    """One client, and the host that it speaks to now."""

    def __init__(
        self, client: ServerConnection, placement: Placement, key_of: KeyOf, new_url: Callable[[], str]
    ) -> None:
        self._client = client
        self._placement = placement
        self._key_of = key_of
        self._new_url = new_url
        self._errands = Errands(placement, key_of)
        self._told: str | bytes | None = None
        """With which message the client asked to be told of all sessions."""
        self.at = ""
        """The incarnation of the host that it speaks to."""

    async def run(self, first: str | bytes) -> None:
        """Pass on what comes, beginning with `first`, until one side ends."""
        frame: str | bytes | None = first
        while frame is not None:
            location = await self._locate(frame)
            if location is None:
                frame = await self._client.recv()
                continue
            try:
                async with self._connected(location) as host:
                    if self._told is not None:
                        await host.send(self._told)
                    frame = await self._pass(host, frame)
            except HostUnavailable as error:
                await self._client.close(_AGAIN, _short(str(error)))
                return

    async def cut(self) -> None:
        """Send the client away from a host that does not answer any more; it comes back, and is led to another."""
        await self._client.close(_AGAIN, "the host does not answer")

    async def _locate(self, frame: str | bytes) -> Location | None:
        """The host for the session that a `hello` names, or for one that is new; None: the client was told why not."""
        said = _looked_at(frame) or {}
        session = said.get("session") if said.get("type") == "hello" else None
        try:
            return await self._placement.place(session if isinstance(session, str) else None)
        except IactError as error:
            refused = {"type": "error", "id": said.get("id"), "code": "failed", "message": str(error)}
            await self._client.send(json.dumps(refused))
            return None

    @asynccontextmanager
    async def _connected(self, location: Location) -> AsyncIterator[ClientConnection]:
        lease = location.lease
        key = self._key_of(lease.incarnation)
        async with AsyncExitStack() as stack:
            connecting = connect(
                f"ws://{lease.page}/ws", additional_headers={"Authorization": f"Bearer {key}"},
                open_timeout=_CONNECTING, close_timeout=_CONNECTING, compression=None, proxy=None, max_size=None, max_queue=8,
                logger=_log_http,
            )  # fmt: skip
            try:
                host = await stack.enter_async_context(connecting)
            except (OSError, TimeoutError, WebSocketException) as error:
                raise HostUnavailable(f"The host {lease.host} does not answer.") from error
            self.at = lease.incarnation
            yield host

    async def _pass(self, host: ClientConnection, first: str | bytes) -> str | bytes | None:
        """Pass on in both directions, beginning with `first`; gives the message that belongs to another host, or None when it is over."""
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
        # However it ended, the client comes back and is led to where its session is then.
        code = host.close_code if host.close_code in (MOVED, 1008) else _AGAIN
        await self._client.close(code or _AGAIN, _short(host.close_reason or "the host has ended"))

    async def _up(self, host: ClientConnection, first: str | bytes) -> str | bytes | None:
        await self._say(host, first)
        async for frame in self._client:
            said = _looked_at(frame) or {}
            if said.get("type") == "hello" and await self._elsewhere(said.get("session")):
                return frame
            await self._say(host, frame)
        return None

    async def _say(self, host: ClientConnection, frame: str | bytes) -> None:
        """Pass a message on, or answer it here."""
        said = _looked_at(frame) or {}
        match said.get("type"):
            case "sessions":
                self._told = frame
            case "address":
                answer = {"type": "ok", "id": said.get("id"), "url": self._new_url()}
                await self._client.send(json.dumps(answer))
                return
            case str(kind) if kind in ERRANDS:
                await self._client.send(json.dumps(await self._errands.run(said)))
                return
        await host.send(frame)

    async def _elsewhere(self, session: JSON) -> bool:
        """Whether a session is to be had at another host than the one that the client speaks to."""
        if not isinstance(session, str):
            return False
        at = await self._placement.locate(session)
        return at is None or at.lease.incarnation != self.at


_LOOKED_AT: Final = ('"hello"', '"sessions"', '"address"', '"session.')
_SMALL: Final = 1 << 16


def _looked_at(frame: str | bytes) -> Mapping[str, JSON] | None:
    """The message, if it may be one that is looked at; whatever is none of these goes through as it is."""
    if not isinstance(frame, str) or len(frame) > _SMALL or not any(one in frame for one in _LOOKED_AT):
        return None
    try:
        said = json.loads(frame)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _short(reason: str) -> str:
    """As the reason of a close, which has room for 123 bytes."""
    return reason.encode()[:120].decode("utf-8", "ignore")


def _download_at(lease: HostLease, key: str, path: str) -> Download | None:
    """A file that waits at a host. Blocks."""
    client = httpx.Client(timeout=_DOWNLOAD, trust_env=False)
    request = client.build_request(
        "GET", f"http://{lease.page}{path}", headers={"Authorization": f"Bearer {key}"}
    )
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

    name = answer.headers.get("Content-Disposition", "").rpartition("filename*=UTF-8''")[2]
    return Download(unquote(name) or "file", pieces)
