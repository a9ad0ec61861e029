"""The connection to an agent's server: tunnels of the egress proxy, with limits that the other side can't change.

The SDK gets an HTTP client in which every connection, even an unencrypted one, is a tunnel. So the proxy decides which
hosts are reached, as for any other module. Data is counted as it arrives: nothing that a server sends, endless or
compressed, becomes more than `LARGEST`. Redirects are not followed: an agent that moved has another address, and the
caller must decide about that address again.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Final
from urllib.parse import urlsplit

import certifi
import httpcore
import httpx

LARGEST: Final = 8 << 20
"""The most bytes that one call may receive."""
_HEAD: Final = 4096


class AgentFailed(Exception):
    """The agent can't be asked, or has failed; the message says why."""


class EgressTransport(httpx.AsyncBaseTransport):
    """The transport of one call, to one host. `token`: shown to that host, over encrypted connections only."""

    def __init__(self, host: str, token: str) -> None:
        self._host = host
        self._token = token
        self._received = 0
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_trust(), max_connections=4, network_backend=_Tunnels()
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make one request.

        Raises:
            AgentFailed: it is for another host, or the answer is not one that an agent gives.
        """
        url = request.url
        if url.host != self._host:
            raise AgentFailed(f"{self._host} leads to {url.host[:200]!r}, which was not asked for.")
        if self._token and url.scheme == "https":
            request.headers["Authorization"] = f"Bearer {self._token}"
        request.headers["Accept-Encoding"] = "identity"

        sent = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(sent)
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise self._broken(error) from error

        body = _Body(self, response)
        headers = httpx.Headers(response.headers)
        refusal = _refused(self._host, response.status, headers)
        if refusal:
            await body.aclose()
            raise AgentFailed(refusal)
        return httpx.Response(response.status, headers=headers, stream=body)

    def take(self, size: int) -> None:
        """Count received bytes.

        Raises:
            AgentFailed: there are too many.
        """
        self._received += size
        if self._received > LARGEST:
            raise AgentFailed(f"{self._host} sent more than {LARGEST >> 20} MiB, and was heard no further.")

    def _broken(self, error: Exception) -> AgentFailed:
        if isinstance(error.__context__, ssl.SSLCertVerificationError):
            return AgentFailed(
                f"The certificate of {self._host} is not valid: {error.__context__.verify_message}."
            )
        return AgentFailed(
            f"The connection to {self._host} broke ({type(error).__name__}: {str(error)[:200]})."
        )

    async def pieces(self, response: httpcore.Response) -> AsyncIterator[bytes]:
        """Yield the body of an answer, counting its bytes."""
        assert isinstance(response.stream, AsyncIterable)
        try:
            async for piece in response.stream:
                self.take(len(piece))
                yield piece
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
            raise self._broken(error) from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, transport: EgressTransport, response: httpcore.Response) -> None:
        self._transport = transport
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._transport.pieces(self._response):
            yield piece

    async def aclose(self) -> None:
        await self._response.aclose()


def _refused(host: str, status: int, headers: httpx.Headers) -> str:
    """The reason not to read an answer, or "" to read it."""
    if 300 <= status < 400:
        return f"{host} redirects to {headers.get('Location', 'nowhere')[:200]!r}, which is not followed."
    if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        return f"{host} answers in an encoding that was not asked for."
    return ""


class _Tunnels(httpcore.AsyncNetworkBackend):
    """Connects through the proxy that the environment names. It may ask a person first, so nothing here times out."""

    def __init__(self) -> None:
        self._near = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        proxy = urlsplit(os.environ.get("HTTPS_PROXY", ""))
        if not proxy.hostname:
            raise AgentFailed(f"{host} can't be reached from here.")

        tunnel = await self._near.connect_tcp(proxy.hostname, proxy.port or 80, None, None, socket_options)
        try:
            target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            await tunnel.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii"))
            status = await _answered(tunnel)
        except BaseException:
            await tunnel.aclose()
            raise

        if status == 200:
            return tunnel
        await tunnel.aclose()
        raise AgentFailed(f"{host} can't be reached from here.")


async def _answered(tunnel: httpcore.AsyncNetworkStream) -> int:
    """Read the status of the proxy's answer, byte by byte: the bytes after it belong to the other end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = await tunnel.read(1)
        if not byte or len(head) > _HEAD:
            raise AgentFailed("The tunnel ended before it was open.")
        head += byte
    return int(head.split(b" ", 2)[1])


def _trust() -> ssl.SSLContext:
    """The trusted certificates: the list that came with the module, or the one that a test names."""
    return ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE") or certifi.where())
