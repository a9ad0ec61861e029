"""A web of a few pages behind an HTTP proxy, both of the test's own."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Site:
    """`proxy`: address of the proxy, as the environment names one."""

    proxy: str


@asynccontextmanager
async def website(
    pages: Mapping[str, bytes], *, tls: Path | None = None, hang: bool = False
) -> AsyncIterator[Site]:
    """Serve `pages`, each a whole response by "host:port/path"; hosts without a page get the proxy's 403.

    `tls`: file with key and certificate, for encrypted pages. `hang`: connections stay open after the page.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await _converse(reader, writer, pages, tls, hang)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Site(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        server.close()


async def _converse(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    pages: Mapping[str, bytes],
    tls: Path | None,
    hang: bool,
) -> None:
    target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
    if not any(place.startswith(f"{target}/") for place in pages):
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await writer.drain()
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
        with suppress(ssl.SSLError):
            await writer.start_tls(context)
    path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
    writer.write(pages[f"{target}{path}"])
    await writer.drain()
    if hang:
        await reader.read(1)


def certificate(folder: Path, host: str) -> Path:
    """A file with a new key and a certificate for `host` that it signed itself."""
    made = folder / "certificate.pem"
    if not made.exists():
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}",
             "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
            check=True, capture_output=True,
        )  # fmt: skip
        made.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return made
