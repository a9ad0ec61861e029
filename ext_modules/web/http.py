"""One GET through the egress proxy, with redirects, bounded in size and time.

The proxy decides what can be reached, again at each redirect. Names are not resolved here: the sandbox has no DNS, and
the proxy resolves them.
"""

from __future__ import annotations

import http.client
import os
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

LARGEST: Final = 10 << 20
"""The most bytes of a body, decompressed."""
_REDIRECTS: Final = 5
_STEP: Final = 20.0
"""Seconds for which the other end may be silent."""
_PAGE: Final = 60.0
"""Seconds that a page may take, once its host can be reached."""
_HEAD: Final = 4096
_LOOK: Final = 1.0
"""Seconds between two checks whether the result is still wanted."""
_PORTS: Final = {"http": 80, "https": 443}


class FetchFailed(Exception):
    """The page can't be fetched; the message says why."""


class Unreachable(FetchFailed):
    """The host is not allowed, was refused, or does not answer: which of these, an agent is not told."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} can't be reached from here.")


@dataclass(frozen=True, slots=True)
class Response:
    """The response."""

    url: str
    """After redirects."""
    status: int
    kind: str
    """The media type."""
    charset: str
    """As the server names it; may be empty."""
    body: bytes
    cut: bool
    """Whether the body was larger than `LARGEST`."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many seconds remain, and whether the result is still wanted."""

    remaining: Callable[[], float]
    cancelled: Callable[[], bool]

    def left(self) -> float:
        """Seconds for the next step.

        Raises:
            FetchFailed: no time remains.
        """
        left = self.remaining()
        if left <= 0 or self.cancelled():
            raise FetchFailed("The time was over before the page was there.")
        return min(left, _STEP)

    def answering(self) -> Limit:
        """The limit from now on, once the host can be reached: a page gets less time than a person's decision."""
        remaining = self.remaining
        end = time.monotonic() + _PAGE
        return Limit(lambda: min(remaining(), end - time.monotonic()), self.cancelled)


def checked(url: str) -> SplitResult:
    """Split the address of a web page into its parts.

    Raises:
        FetchFailed: it is not such an address.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise FetchFailed(f"{url[:200]!r} is not an address: {error}.") from error

    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise FetchFailed(f"{url[:200]!r} is not an address of the form https://host/path.")
    if parts.username is not None or parts.password is not None:
        raise FetchFailed("An address with a user name or a password in it is not fetched; give it without.")
    return parts


def fetch(url: str, limit: Limit) -> Response:
    """Fetch `url`. Blocks.

    Raises:
        FetchFailed: it can't be fetched, redirects too often, or redirects to an unencrypted address.
    """
    for _ in range(_REDIRECTS + 1):
        parts = checked(url)
        response = _get(parts, limit)
        if isinstance(response, Response):
            return response

        following = urljoin(parts.geturl(), response)
        if parts.scheme == "https" and not following.startswith("https:"):
            raise FetchFailed(f"{url} redirects to {following[:200]}, which is not encrypted.")
        url = following
    raise FetchFailed(f"It redirects more than {_REDIRECTS} times, the last time to {url[:200]}.")


def _get(parts: SplitResult, limit: Limit) -> Response | str:
    """Return the response, or the address it redirects to."""
    host = _ascii(parts.hostname or "")
    try:
        connection = _connection(host, parts, limit)
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise FetchFailed(_why(error, parts)) from error

    limit = limit.answering()
    try:
        path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
        query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?")
        target = f"{path}?{query}" if query else path
        headers = {"User-Agent": "iact-web/0.1", "Accept": "text/html,text/*;q=0.9,*/*;q=0.5"}
        headers["Accept-Encoding"] = "gzip, identity"
        connection.request("GET", target, headers=headers)
        response = connection.getresponse()

        location = response.headers.get("Location")
        if response.status in (301, 302, 303, 307, 308) and location:
            return location

        body, is_cut = _body(connection, response, limit)
        kind = response.headers.get_content_type()
        charset = response.headers.get_content_charset() or ""
        return Response(parts.geturl(), response.status, kind, charset, body, is_cut)
    except (http.client.HTTPException, OSError, zlib.error, ValueError) as error:
        raise FetchFailed(_why(error, parts)) from error
    finally:
        connection.close()


def _connection(host: str, parts: SplitResult, limit: Limit) -> http.client.HTTPConnection:
    """Open a connection through the proxy that the environment names."""
    proxy = urlsplit(os.environ.get("HTTPS_PROXY", ""))
    if not proxy.hostname:
        raise Unreachable(host)

    port = parts.port or _PORTS[parts.scheme]
    way = _tunnel((proxy.hostname, proxy.port or 80), host, port, limit)
    way.settimeout(limit.left())
    connection = http.client.HTTPConnection(host, port)
    try:
        if parts.scheme == "https":
            connection.sock = _trust().wrap_socket(way, server_hostname=host)
        else:
            connection.sock = way
    except BaseException:
        way.close()
        raise
    return connection


def _tunnel(proxy: tuple[str, int], host: str, port: int, limit: Limit) -> socket.socket:
    """Open a tunnel to `host` through the proxy. It may ask a person first, so it may take all of the call's time.

    Raises:
        Unreachable: there is none, for whatever reason.
    """
    try:
        return _opened(proxy, host, port, limit)
    except (FetchFailed, http.client.HTTPException, OSError, ValueError) as error:
        raise Unreachable(host) from error


def _opened(proxy: tuple[str, int], host: str, port: int, limit: Limit) -> socket.socket:
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    way = socket.create_connection(proxy, timeout=limit.left())
    try:
        way.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("ascii"))

        # In short steps, so that a call that was cut off is noticed.
        way.settimeout(_LOOK)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            limit.left()
            try:
                byte = way.recv(1)  # bytes after the head belong to the other end
            except TimeoutError:
                continue
            if not byte or len(head) > _HEAD:
                raise http.client.HTTPException("no answer of a proxy's")
            head += byte

        if int(head.split(b" ", 2)[1]) != 200:
            raise Unreachable(host)
    except BaseException:
        way.close()
        raise
    return way


def _trust() -> ssl.SSLContext:
    """The trusted certificates: the list that came with the module, or the one that a test names."""
    file = os.environ.get("SSL_CERT_FILE")
    if file:
        return ssl.create_default_context(cafile=file)
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _ascii(host: str) -> str:
    """A host's name as DNS has it."""
    encoding = "ascii" if host.isascii() else "idna"
    try:
        return host.encode(encoding).decode()
    except UnicodeError as error:
        raise FetchFailed(f"{host[:200]!r} is not a host's name.") from error


def _body(
    connection: http.client.HTTPConnection, response: http.client.HTTPResponse, limit: Limit
) -> tuple[bytes, bool]:
    """Return the body, decompressed, and whether it was cut."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", ""):
        raise FetchFailed(f"The page is encoded as {encoding[:40]!r}, which was not asked for.")
    unpacker = zlib.decompressobj(31) if "gzip" in encoding else None

    parts: list[bytes] = []
    room = LARGEST
    while room > 0:
        left = limit.left()
        if connection.sock is not None:
            connection.sock.settimeout(left)
        data = response.read1(64 * 1024)
        if not data:
            break

        piece = unpacker.decompress(data, room) if unpacker else data[:room]
        parts.append(piece)
        room -= len(piece)
    return b"".join(parts), room <= 0


def _why(error: Exception, parts: SplitResult) -> str:
    """Describe in one sentence what went wrong with the connection."""
    where = f"{parts.hostname}:{parts.port or _PORTS[parts.scheme]}"
    if isinstance(error, TimeoutError):
        return f"{where} did not answer in time."
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"The certificate of {where} is not valid: {error.verify_message}."
    return f"{where} did not answer as a web server does ({type(error).__name__}: {str(error)[:200]})."
