"""The host's end of the tunnel to a module in a pod: local sockets in a folder that connect to those in the pod.

To the core, and to the server that shows apps, a module in a pod looks like any other: a unix socket in its folder.
Each connection to it gets its own connection to the pod's `bridge`, over TLS that knows both certificates. A few more
wait for the module to ask for its way out; their traffic is passed to the egress proxy, as from any sandbox.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Final

from iact.core.errors import ModuleLost
from iact.core.ports import JSON
from iact.sandbox import socket_folder
from iact.sandbox.egress import SOCKET as EGRESS_SOCKET
from iact.sandbox.kubernetes import bridge
from iact.sandbox.kubernetes.bridge import Ends

_CONNECTIONS: Final = 64
"""Concurrent connections to the pod: the core needs one, and one for each health check; an app's page has a few."""
_WAYS_OUT: Final = 4
"""Connections that wait for the module to ask for its way out."""
_DIALLING: Final = 5.0
_BETWEEN: Final = 0.1
_APPS: Final = 16


class Tunnel:
    """Connects `folder` to the pod at `address`. `proxy`: the folder of the egress proxy's socket, or None."""

    def __init__(
        self, folder: Path, address: str, context: ssl.SSLContext, *, proxy: Path | None, apps: bool
    ) -> None:
        self._folder = folder
        self._address = address
        self._context = context
        self._proxy = proxy
        self._apps = apps
        self._servers: dict[str, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self.python = ""
        """The version of the Python in the pod."""

    async def open(self, *, within: float) -> None:
        """Reach the pod, which may take a moment to listen, and start to listen here.

        Raises:
            ModuleLost: nothing with the pod's certificate answers there within `within` seconds.
        """
        try:
            async with asyncio.timeout(within):
                reader, writer = await self._reach()
        except TimeoutError as error:
            raise ModuleLost(
                f"The pod's address {self._address} did not answer within {within:.0f} seconds; check "
                "that the cluster's network lets this host reach its modules "
                "(deploy/kubernetes/modules.yaml)."
            ) from error
        self._begin(self._hear(reader), writer)
        await self._listen(socket_folder.SOCKET)
        if self._proxy is not None:
            for _ in range(_WAYS_OUT):
                self._begin(self._way_out(self._proxy))

    async def probe(self) -> str:
        """The address that the pod reached in the cluster's network, although it must not; "" if none."""
        reader, writer = await self._dial(bridge.PROBE)
        try:
            return (await bridge.receive(reader)).decode("ascii", "replace")[:100]
        finally:
            writer.close()

    async def close(self) -> None:
        """Stop listening and end all connections. May be called twice."""
        self._closed = True
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        running = list(self._tasks)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _reach(self) -> Ends:
        """Open the connection on which the pod sends news, and read its first piece."""
        while True:
            try:
                reader, writer = await self._dial(bridge.NEWS)
                try:
                    self.python = str(_table(await bridge.receive(reader)).get("python", ""))
                except BaseException:
                    writer.close()
                    raise
                return reader, writer
            except (OSError, ValueError):
                await asyncio.sleep(_BETWEEN)

    async def _dial(self, purpose: str) -> Ends:
        async with asyncio.timeout(_DIALLING):
            found = await asyncio.open_connection(
                self._address, bridge.PORT, ssl=self._context, server_hostname=""
            )
            try:
                await bridge.send(found[1], purpose.encode())
            except BaseException:
                found[1].close()
                raise
            return found

    async def _listen(self, name: str) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            this = asyncio.current_task()
            assert this is not None
            self._tasks.add(this)
            try:
                if len(self._tasks) <= _CONNECTIONS:
                    with suppress(OSError, TimeoutError):
                        await bridge.join((reader, writer), await self._dial(name))
            except asyncio.CancelledError:
                pass  # from `close`, which waits for it
            finally:
                self._tasks.discard(this)
                writer.close()

        self._servers[name] = await socket_folder.listen(self._folder, name, serve)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        """Receive the pod's news about apps until the connection ends."""
        with suppress(OSError, ValueError):
            while True:
                told = _table(await bridge.receive(reader)).get("apps")
                found = [str(name) for name in told] if isinstance(told, list) and self._apps else []
                await self._offer([name for name in found if bridge.APP.fullmatch(name)][:_APPS])

    async def _offer(self, apps: list[str]) -> None:
        for gone in set(self._servers) - {socket_folder.SOCKET, *apps}:
            self._servers.pop(gone).close()
            (self._folder / gone).unlink(missing_ok=True)
        for name in apps:
            if name not in self._servers:
                await self._listen(name)

    async def _way_out(self, proxy: Path) -> None:
        """Hold one way out open until the module uses it; then another takes its place."""
        while True:
            far: Ends | None = None
            try:
                far = await self._dial(bridge.EGRESS)
                first = await bridge.receive(far[0])
            except BaseException as error:
                if far is not None:
                    far[1].close()
                if not isinstance(error, OSError | TimeoutError):
                    raise
                # The pod is gone or soon will be; the next call to it will notice.
                await asyncio.sleep(_BETWEEN * 10)
                continue
            self._begin(_leave(proxy, far, first), far[1])

    def _begin(self, work: Coroutine[None, None, None], writer: asyncio.StreamWriter | None = None) -> None:
        """Start `work`. `writer` is closed after it, even if it is cancelled before it starts."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if writer is not None:
            task.add_done_callback(lambda _: writer.close())


async def _leave(proxy: Path, far: Ends, first: bytes) -> None:
    with suppress(OSError):
        await bridge.join(await socket_folder.dial(proxy, EGRESS_SOCKET), far, first)


def _table(piece: bytes) -> dict[str, JSON]:
    """Decode the pod's message, which is untrusted."""
    found: JSON = json.loads(piece) if piece else {}
    if not piece:
        raise ConnectionResetError("the pod has no more to tell")
    return found if isinstance(found, dict) else {}
