"""The pod's end of the tunnel between a module and its host.

A module listens on a unix socket, wherever it runs. In a pod that socket is in a folder in memory. This program runs in
a separate container next to the module's and connects to the socket: it accepts TLS connections only from the one host
whose certificate it was given. Only this container has the keys; the module's can't read them.

Each connection begins with its purpose and carries one stream. The way out is a stream, too: the host opens it in
advance, and the pod uses it when the module asks for it. So a pod needs no network except to be reached by its host,
and the host's own proxy decides what a module may reach.

The text of this file is put into the pod unchanged; it imports only the standard library. The host's end, `tunnel`,
uses its functions for what both ends have in common.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import ssl
import stat
import sys
from contextlib import suppress

PORT = 7443
KEYS = "/run/bridge"
"""The folder of the pod's certificate with its key (pod.pem), and the host's certificate (host.pem)."""
EGRESS, NEWS, PROBE = "egress", "news", "probe"
"""Purposes other than the name of a socket: a waiting way out, news from the pod, and whether it reaches a network."""
APP = re.compile(r"app-[0-9a-f]{16}\.sock")
_SOCKETS, _EGRESS_SOCKET = "/run/iact", "/run/egress/egress.sock"
_CHUNK = 32 * 1024
_LOOKS_APART = 0.3
"""Seconds between two checks for sockets of new apps."""
_PROBING = 2.0
_MODULE = "module.sock"

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one piece of at most 65,535 bytes. An empty piece ends this direction, since TLS can't close only one."""
    writer.write(len(data).to_bytes(2, "big") + data)
    await writer.drain()


async def receive(reader: asyncio.StreamReader) -> bytes:
    """The next piece; empty at the end of this direction.

    Raises:
        ConnectionError: the connection ended before the stream did.
    """
    try:
        return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    except asyncio.IncompleteReadError as error:
        raise ConnectionResetError("the tunnel ended") from error


async def join(near: Ends, far: Ends, first: bytes | None = None) -> None:
    """Forward bytes between a socket, `near`, and the tunnel until both directions have ended, or one end broke.

    `first`: a piece that was already received.
    """
    ways = [asyncio.ensure_future(_out(near[0], far[1])), asyncio.ensure_future(_in(far[0], near[1], first))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        near[1].close()
        far[1].close()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _out(near: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
    while data := await near.read(_CHUNK):
        await send(far, data)
    await send(far, b"")


async def _in(far: asyncio.StreamReader, near: asyncio.StreamWriter, first: bytes | None) -> None:
    data = await receive(far) if first is None else first
    while data:
        near.write(data)
        await near.drain()
        data = await receive(far)
    near.write_eof()


class Bridge:
    """Serves the host. `apps`: report the sockets of apps to it."""

    def __init__(self, *, apps: bool) -> None:
        self._apps = apps
        self._ways_out: asyncio.Queue[Ends] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection of the host."""
        try:
            purpose = (await receive(reader)).decode()
            if purpose == EGRESS:
                self._ways_out.put_nowait((reader, writer))
                return  # it stays open until the module uses it
            if purpose == NEWS:
                await self._tell(writer)
            elif purpose == PROBE:
                await send(writer, (await _reached()).encode())
            elif purpose == _MODULE or APP.fullmatch(purpose):
                await join(await _dial(purpose), (reader, writer))
        except (OSError, UnicodeDecodeError):
            pass  # the end of the connection says enough
        writer.close()

    async def leave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle one connection of the module to the outside, over the next way out that the host holds open."""
        while True:
            far = await self._ways_out.get()
            if not far[0].at_eof() and not far[1].is_closing():
                break
        with suppress(OSError):
            await join((reader, writer), far)

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        """Send the version of Python, and then the sockets of apps whenever they change."""
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        await send(writer, json.dumps({"python": version}).encode())
        told: list[str] = []
        while not writer.is_closing():
            found = sorted(filter(APP.fullmatch, os.listdir(_SOCKETS))) if self._apps else []
            if found != told:
                told = found
                await send(writer, json.dumps({"apps": found[:64]}).encode())
            await asyncio.sleep(_LOOKS_APART)


async def _dial(name: str) -> Ends:
    """Connect to a module's socket. The module may have put anything else there: nothing but a socket is opened."""
    descriptor = os.open(f"{_SOCKETS}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise ConnectionRefusedError("no socket")
        return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


async def _reached() -> str:
    """The address of the cluster's API if this pod reaches it: then nothing restricts its connections."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        return ""
    try:
        async with asyncio.timeout(_PROBING):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError):
        return ""
    writer.close()
    return f"{host}:{port}"


def _context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_cert_chain(f"{KEYS}/pod.pem")
    made.load_verify_locations(f"{KEYS}/host.pem")
    made.verify_mode = ssl.CERT_REQUIRED
    return made


async def main(*, way_out: bool, apps: bool) -> None:
    """Serve until the pod ends."""
    bridge, ended = Bridge(apps=apps), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    if way_out:
        await asyncio.start_unix_server(bridge.leave, _EGRESS_SOCKET)
        os.chmod(_EGRESS_SOCKET, 0o666)
    family = socket.AF_INET6 if ":" in os.environ["POD_IP"] else socket.AF_INET
    await asyncio.start_server(bridge.serve, os.environ["POD_IP"], PORT, family=family, ssl=_context())
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(way_out="egress" in sys.argv[1:], apps="apps" in sys.argv[1:]))
