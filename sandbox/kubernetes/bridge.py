"""The pod's end of the tunnel between a module and its host.

A module listens on a unix socket, wherever it runs. In a pod that socket is in a folder in memory, and this program,
in a container of its own beside the module's, leads there: it listens for TLS connections of one host, whose
certificate it was given, and for nobody else. Only this container has the keys; the module's can't read them.

Each connection begins with its purpose and carries one stream. The way out is a stream, too, which the host opens
ahead of time and the pod uses when the module asks for it: so a pod needs no network but to be reached by its host, and
the host's own proxy decides what a module may reach.

The text of this file is put into the pod as it is; it imports the standard library alone. The host's end, `tunnel`, uses
its functions for what both do alike.
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
"""Where the pod's certificate with its key is (pod.pem), and the host's certificate (host.pem)."""
EGRESS, NEWS, PROBE = "egress", "news", "probe"
"""Purposes besides the name of a socket: a way out that waits, what the pod has to tell, whether it reaches a network."""
APP = re.compile(r"app-[0-9a-f]{16}\.sock")
_SOCKETS, _EGRESS_SOCKET = "/run/iact", "/run/egress/egress.sock"
_CHUNK = 32 * 1024
_LOOKS_APART = 0.3
"""Seconds between two looks for the sockets of new apps."""
_PROBING = 2.0
_MODULE = "module.sock"

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one piece, of at most 65,535 bytes; an empty one ends this direction, since TLS can't close only one."""
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
    """Pass bytes on between a socket, `near`, and the tunnel until both directions have ended, or an end broke.

    `first`: a piece that was received already.
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
    """Serves the host. `apps`: it is told of the sockets of apps."""

    def __init__(self, *, apps: bool) -> None:
        self._apps = apps
        self._ways_out: asyncio.Queue[Ends] = asyncio.Queue()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the host."""
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
            pass  # that connection's end says all there is to say
        writer.close()

    async def leave(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of the module's to the outside: the next way out that the host holds open."""
        while True:
            far = await self._ways_out.get()
            if not far[0].at_eof() and not far[1].is_closing():
                break
        with suppress(OSError):
            await join((reader, writer), far)

    async def _tell(self, writer: asyncio.StreamWriter) -> None:
        """Which Python this is, and then each time the sockets of apps, when they change."""
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
    """Connect to a socket of the module's, which may have put anything else there: nothing is followed but a socket."""
    descriptor = os.open(f"{_SOCKETS}/{name}", os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            raise ConnectionRefusedError("no socket")
        return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


async def _reached() -> str:
    """The address of the cluster's API, if this pod reaches it: then nothing holds its connections back."""
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
