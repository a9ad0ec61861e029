"""How to talk to hosts: one JSON object over a websocket, one answer.

The client must know the key of the seals, which all hosts and gateways of a store have; the key that it shows to a host
is derived from it. A message has `do`: `open` a `session`; `give` a `session` to a `host`; `drain`; `search` for a
`query` in the texts of at most `limit` sessions of a `user`; `status`. The answer has `ok`, or `error` with a sentence
and its `code`.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from http import HTTPStatus
from ssl import SSLContext
from typing import Final, TypeVar

from websockets.asyncio.client import connect
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.http11 import Request, Response

from iact.cluster.leases import HostLease
from iact.cluster.placement import HostUnavailable, Moved
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON

Act = Callable[[Mapping[str, JSON]], Awaitable[Mapping[str, JSON]]]
"""Carries out a message; raises `IactError`."""

KeyOf = Callable[[str], str]
"""The key that a host of this incarnation expects."""

_LARGEST: Final = 1 << 20
_CONNECTING: Final = 3.0
_LONGEST: Final = 600.0
"""Seconds that an answer may take: draining waits for running work."""

_Answer = TypeVar("_Answer")

_log = logging.getLogger("iact.cluster")
_log_http = logging.getLogger("iact.cluster.http")
_log_http.setLevel(logging.WARNING)  # at DEBUG the library logs the key


async def all_of(each: Iterable[Coroutine[None, None, _Answer]]) -> list[_Answer]:
    """The answers of several hosts, asked at the same time; in the order given."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(asking) for asking in each]
    return [task.result() for task in tasks]


class ControlServer:
    """Listens for messages to one host. With `tls`, connections are encrypted."""

    def __init__(self, act: Act, key: str, *, host: str, port: int, tls: SSLContext | None = None) -> None:
        self._tls = tls
        self._act = act
        self._key = key
        self._host = host
        self._port = port
        self._server: Server | None = None

    @property
    def port(self) -> int:
        """The port in use, available after `start`."""
        return self._port

    async def start(self) -> None:
        """Listen.

        Raises:
            UsageError: the address can't be used.
        """
        try:
            self._server = await serve(
                self._handle, self._host, self._port, ssl=self._tls,
                process_request=self._judge, compression=None, server_header=None,
                max_size=_LARGEST, logger=_log_http,
            )  # fmt: skip
        except OSError as error:
            raise UsageError(
                f"This host can't listen on {self._host} port {self._port} ({error.strerror}); choose another with "
                "--control-port."
            ) from error

        # Asked for as 0, it is any that was free.
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        server = self._server
        self._server = None
        if server is not None:
            server.close()
            await server.wait_closed()

    def _judge(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse a connection without the key."""
        authorizations = request.headers.get_all("Authorization")
        if len(authorizations) == 1:
            given = authorizations[0].encode("utf-8", "replace")
            if hmac.compare_digest(given, f"Bearer {self._key}".encode()):
                return None
        return connection.respond(HTTPStatus.UNAUTHORIZED, "The key of this host is wanted.\n")

    async def _handle(self, socket: ServerConnection) -> None:
        async for frame in socket:
            answer = json.dumps(await self._answer(frame))
            with suppress(ConnectionClosed):  # the caller is gone; its request is done
                await socket.send(answer)

    async def _answer(self, frame: str | bytes) -> Mapping[str, JSON]:
        try:
            message = json.loads(frame)
            if not isinstance(message, dict):
                raise UsageError("A message to a host is a JSON object.")
            return {"ok": dict(await self._act(message))}

        except Moved as error:
            return {"error": str(error), "code": "moved"}
        except (UsageError, ValueError) as error:
            return {"error": str(error), "code": "usage"}
        except IactError as error:
            return {"error": str(error), "code": "failed"}

        except Exception:
            _log.exception("A message to this host failed.")
            return {"error": "An error in the host stopped this; its log has the details.", "code": "failed"}


class ControlClient:
    """Talks to hosts; implements `cluster.placement.Peers`. With `tls`, connections are encrypted."""

    def __init__(self, key_of: KeyOf, tls: SSLContext | None = None) -> None:
        self._key_of = key_of
        self._tls = tls

    async def ask(self, lease: HostLease, message: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """See `Peers.ask`."""
        try:
            async with asyncio.timeout(_LONGEST), self._connect(lease) as socket:
                await socket.send(json.dumps(dict(message)))
                answer = json.loads(await socket.recv())
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise HostUnavailable(
                f"The host {lease.host} at {lease.control} does not answer: {reason}."
            ) from error

        if not isinstance(answer, dict):
            raise HostUnavailable(
                f"The host {lease.host} at {lease.control} gave an answer that can't be read."
            )
        result = answer.get("ok")
        if isinstance(result, dict):
            return result

        sentence = str(answer.get("error", ""))
        match answer.get("code"):
            case "moved":
                raise Moved(sentence)
            case "usage":
                raise UsageError(sentence)
            case _:
                raise IactError(sentence)

    def _connect(self, lease: HostLease) -> connect:
        scheme = "wss" if self._tls else "ws"
        return connect(
            f"{scheme}://{lease.control}/", ssl=self._tls,
            additional_headers={"Authorization": f"Bearer {self._key_of(lease.incarnation)}"},
            open_timeout=_CONNECTING, compression=None, proxy=None, max_size=_LARGEST, logger=_log_http,
        )  # fmt: skip
