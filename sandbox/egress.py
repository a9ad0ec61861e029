"""The only way out of a sandbox: a proxy behind a unix socket, for the targets that a module declares.

A container has no network at all. One that may reach something outside also gets this proxy's socket, mounted
read-only. The proxy takes CONNECT and requests of plain HTTP, and only to targets that the session's user permits. It asks for each
connection, so that granting or revoking takes effect at once. It resolves the name itself and dials the very address
that it checked, so a name that resolves to one of our machines, or resolves differently the second time, does not lead
inside. The content is not inspected: TLS stays end to end.

A host that nobody allows, that a person refused, or that doesn't answer reads the same inside, in one sentence and after
a time of the same kind: what a program prints tells an agent nothing about the rights of its session. People read the
reason in the `EgressLine`.

`parse` and `is_outside` decide, without I/O; `EgressProxy` is the shell around them.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import re
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from iact.core.ports import Permit
from iact.sandbox import socket_folder

SOCKET: Final = "egress.sock"
LARGEST_HEAD: Final = 16 * 1024
_CHUNK: Final = 64 * 1024
_LOOKS: Final = 0.2
"""Seconds between two checks whether a module still waits for its answer."""
_STOPPED: Final = "The module was stopped."

_REASONS: Final = {
    200: "Connection established",
    400: "Bad Request",
    403: "Forbidden",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
}
_LAG: Final = (0.02, 0.2)
"""Seconds after which a host that is not allowed is refused, as long as no host has failed to answer."""
_LONGEST_LAG: Final = 2.0
_LAGS: Final[deque[float]] = deque(maxlen=64)
"""How long hosts that did not answer took to fail: what a refusal takes, too."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect to."""

    host: str
    """A name or an address, in lower case."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request of plain HTTP."""

    target: Target
    head: bytes
    """What its target is sent, after which everything passes as it is."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no connection is made, for people."""

    status: int
    """Of HTTP."""
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class EgressBounds:
    """Bounds of one module's egress."""

    bytes: int = 256 << 20
    """In both directions together."""
    seconds: float = 600
    """In which a connection may be open."""
    idle: float = 60
    """Seconds after which a connection over which nothing comes is cut."""
    connecting: float = 15
    """Seconds for a request's head, and as many to connect."""
    connections: int = 32
    """At once."""


@dataclass(frozen=True, slots=True)
class EgressLine:
    """The result of one connection, for people and the journal."""

    session: str
    module: str
    target: str
    """As the module wrote it, made harmless."""
    status: int
    """Of HTTP, 200 if it was connected."""
    reason: str = ""
    """Why it was refused or cut; empty if it was neither."""
    address: str = ""
    """What was connected to."""
    sent: int = 0
    """Bytes, from the module's side."""
    received: int = 0
    """Bytes, from the module's side."""
    seconds: float = 0.0

    def __str__(self) -> str:
        what = "connected to" if self.status == 200 else "was refused"
        where = f" ({self.address})" if self.address else ""
        why = f": {self.reason}" if self.reason else ""
        traffic = f"; {self.sent:,} bytes out, {self.received:,} in, {self.seconds:.1f} s"
        passed = traffic if self.status == 200 else ""
        return f"{self.module} {what} {self.target or 'an unnamed target'}{where}{passed}{why}"


OnEgress = Callable[[EgressLine], None]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the numeric addresses of a name; raises OSError if there are none."""
Dial = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""Connects to a numeric address; raises OSError."""


# --- decisions ------------------------------------------------------------------------------------------


ASKED: Final = "*"
"""In place of a target: whatever is permitted while the module runs."""


def targets(declared: Iterable[str]) -> frozenset[Target]:
    """Parse a manifest's `host:port` texts, without "*".

    Raises:
        ValueError: one of them is not of that form.
    """
    return frozenset(_target(text) for text in declared if text != ASKED)


def _target(text: str) -> Target:
    match = re.fullmatch(r"\[([0-9a-fA-F:.]{2,45})\]:([0-9]{1,5})|([A-Za-z0-9._-]{1,253}):([0-9]{1,5})", text)
    if match is None:
        raise ValueError(f"{text!r} is not of the form host:port.")

    host = match[1] or match[3]
    port = int(match[2] or match[4])
    if not 0 < port < 65536:
        raise ValueError(f"{text!r} is not of the form host:port.")
    return Target(host.lower().removesuffix("."), port)


def inside(given: Mapping[str, str]) -> dict[Target, Target]:
    """Parse the settings for targets on the user's own machines: `host:port`, each with the `address:port` to dial.

    Raises:
        ValueError: one is not of that form, or leads to a name.
    """
    ways = {_target(name): _target(to) for name, to in given.items()}
    for to in ways.values():
        ipaddress.ip_address(to.host)
    return ways


def parse(head: bytes) -> Target | PlainRequest | Refusal:
    """The target that a request's head (up to the blank line) asks for, or why it is refused."""
    line, _, fields = head.partition(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or not re.fullmatch(rb"HTTP/1\.[01]", words[2]) or not line.isascii():
        return Refusal(400, "The request is not one of HTTP/1.1.")
    if any(byte < 0x20 and byte not in b"\r\n\t" for byte in head):
        return Refusal(400, "The request's head holds control characters.")

    if words[0] != b"CONNECT":
        return _plain(words, fields)

    for line in fields.removesuffix(b"\r\n\r\n").split(b"\r\n"):
        if line.lower().startswith((b"transfer-encoding:", b"content-length:")):
            return Refusal(400, "A CONNECT request has no body.")
    try:
        return _target(words[1].decode())
    except ValueError:
        return Refusal(400, "CONNECT takes host:port.")


_METHOD: Final = re.compile(rb"[A-Z]{1,20}")
_ADDRESS: Final = re.compile(
    rb"http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?((?:[/?][^\s#]*)?)"
)
"""Without a line feed alone, which some servers take for the end of a line."""
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[^\r\n]*")
_NOT_PASSED: Final = frozenset({b"host", b"connection", b"keep-alive", b"te", b"upgrade"})
"""Fields that are about one connection, and not about the request."""


def _plain(words: Sequence[bytes], fields: bytes) -> PlainRequest | Refusal:
    """A request of plain HTTP to an address, as its target is sent it: one request, after which the connection ends."""
    method, address, version = words
    parts = _ADDRESS.fullmatch(address)
    if not _METHOD.fullmatch(method) or parts is None:
        return Refusal(
            400, "The request is neither CONNECT nor one to an address of the form http://host/path."
        )

    port = parts[2] or b"80"
    try:
        target = _target(f"{parts[1].decode()}:{port.decode()}")
    except ValueError:
        return Refusal(400, "The request's address names no host and port.")

    kept: list[bytes] = []
    sizes = 0
    for line in fields.removesuffix(b"\r\n\r\n").split(b"\r\n"):
        field = _FIELD.fullmatch(line)
        if field is None and line:
            return Refusal(400, "A field of the request's head can't be read.")
        name = field[1].lower() if field is not None else b""
        sizes += name in (b"content-length", b"transfer-encoding")
        if name and name not in _NOT_PASSED and not name.startswith(b"proxy-"):
            kept.append(line)
    if sizes > 1:
        return Refusal(400, "The request says twice how long it is.")

    path = parts[3] if parts[3].startswith(b"/") else b"/" + parts[3]
    host = str(target).removesuffix(":80").encode()
    lines = [b" ".join((method, path, version)), b"Host: " + host, *kept, b"Connection: close", b"", b""]
    return PlainRequest(target, b"\r\n".join(lines))


_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""All of IPv6 that has been assigned as global unicast so far (RFC 4291, IANA's registry)."""


def is_outside(address: str) -> bool:
    """Whether `address` is global: not of this machine or its networks, nor one that disguises such an address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False

    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_outside(str(ip.ipv4_mapped))
        # 6to4 and Teredo contain an IPv4 address, to which a gateway on the way would deliver.
        if ip not in _UNICAST or ip.scope_id or ip.sixtofour or ip.teredo:
            return False

    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _log(line: EgressLine) -> None:
    """The default `on_line`: write to the log."""
    logging.getLogger(__name__).info("%s", line)


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that this machine's resolver returns for `host`."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in answers))


async def dial(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a numeric address."""
    return await asyncio.open_connection(address, port, limit=_CHUNK)


@dataclass(frozen=True, slots=True)
class Outside:
    """How a host lets modules out: what is called for each connection, the bounds, and the means."""

    on_line: OnEgress = _log
    bounds: EgressBounds = EgressBounds()
    resolve: Resolve = resolve
    dial: Dial = dial
    inside: Mapping[Target, Target] = field(default_factory=dict)
    """Targets that a person declared to lead to their own machines, with numeric addresses; not resolved elsewhere."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """A person's settings about the outside world; modules of ours receive the ones that they name."""


# --- the shell ------------------------------------------------------------------------------------------


class _Cut(Exception):
    """A bound was hit; the message says which."""


class EgressProxy:
    """One module's proxy. Its socket is in its own folder, which is mounted into the container read-only."""

    def __init__(
        self,
        folder: Path,
        allowed: frozenset[Target],
        outside: Outside,
        *,
        session: str,
        module: str,
        permit: Permit | None = None,
    ) -> None:
        """`permit`: asked about every target, including `allowed`; without it, exactly `allowed` can be reached."""
        self.folder = folder
        self._allowed = allowed
        self._permit = permit
        self._outside = outside
        self._bounds = outside.bounds
        self._blank = EgressLine(session, module, "", 0)
        self._left = self._bounds.bytes
        self._serving: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def given(self, session: str, permit: Permit | None) -> None:
        """Assign the proxy to a session, whose `permit` is asked from now on."""
        self._blank = replace(self._blank, session=session)
        self._permit = permit

    async def open(self) -> None:
        """Create the folder and the socket in it, and serve.

        Raises:
            OSError: they can't be created.
        """
        self.folder.mkdir(mode=0o711, parents=True)
        self.folder.chmod(0o711)
        self._server = await socket_folder.listen(self.folder, SOCKET, self._serve, limit=LARGEST_HEAD)
        (self.folder / SOCKET).chmod(0o666)

    async def close(self) -> None:
        """End all connections and remove the folder. May be called twice."""
        server = self._server
        self._server = None
        if server is not None:
            server.close()

        running = list(self._serving)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

        with suppress(OSError):
            (self.folder / SOCKET).unlink(missing_ok=True)
            self.folder.rmdir()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the module, and tell what came of it, however it ends."""
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)

        begun = time.monotonic()
        line = self._blank
        try:
            line = await self._connection(reader, writer)
        except asyncio.CancelledError:  # from close(); the server would treat it as a failure of ours
            line = replace(line, status=503, reason=_STOPPED)
        except OSError as error:
            line = replace(line, status=502, reason=f"The connection broke ({error.strerror}).")
        finally:
            self._serving.discard(task)
            writer.transport.abort()
            self._outside.on_line(replace(line, seconds=time.monotonic() - begun))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> EgressLine:
        head = await self._head(reader)
        line = replace(self._blank, target=_harmless(head) if isinstance(head, bytes) else "")
        asked = parse(head) if isinstance(head, bytes) else head
        if isinstance(asked, Refusal):
            await _answer(writer, asked.status, asked.reason)
            return replace(line, status=asked.status, reason=asked.reason)

        plain = asked if isinstance(asked, PlainRequest) else None
        target = asked.target if isinstance(asked, PlainRequest) else asked
        way = await self._allowed_way(target, reader)
        if isinstance(way, Refusal):
            # One sentence for all reasons: the law of silence. Some programs print a status line, others a body.
            await _answer(writer, 502, unreachable(target.host), phrase=unreachable(target.host))
            return replace(line, status=way.status, reason=way.reason)

        address, far_reader, far_writer = way
        passing = _Passing(self._take, self._bounds.idle)
        try:
            if plain is None:
                await _answer(writer, 200, "")
            else:
                await passing.begin(far_writer, plain.head)
            reason = await passing.run((reader, writer), (far_reader, far_writer), self._bounds.seconds)
        except asyncio.CancelledError:  # from close(); the address and the traffic are reported all the same
            reason = _STOPPED
        finally:
            far_writer.transport.abort()
        return replace(
            line, status=200, address=address, reason=reason, sent=passing.sent, received=passing.received
        )

    async def _allowed_way(
        self, target: Target, reader: asyncio.StreamReader
    ) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter] | Refusal:
        """Connect to a target, if it may be reached. A refusal takes as long as a host takes that does not answer."""
        refused = await self._refusal(target, reader)
        if refused is not None:
            await asyncio.sleep(random.choice(_LAGS) if _LAGS else random.uniform(*_LAG))
            return refused

        begun = time.monotonic()
        way = await self._reach(target)
        if isinstance(way, Refusal):
            _LAGS.append(min(time.monotonic() - begun, _LONGEST_LAG))
        return way

    async def _refusal(self, target: Target, reader: asyncio.StreamReader) -> Refusal | None:
        if len(self._serving) > self._bounds.connections:
            return Refusal(503, f"More than {self._bounds.connections} connections are open.")
        if self._left <= 0:
            return Refusal(403, f"The module has used up its {self._bounds.bytes:,} bytes.")
        if not await self._permits(target, reader):
            return Refusal(403, "Nobody allows the module to reach this target.")
        return None

    async def _permits(self, asked: Target, reader: asyncio.StreamReader) -> bool:
        """Whether the module may reach the target. Waits for the answer until the module gives up."""
        if self._permit is None:
            return asked in self._allowed

        permit = asyncio.ensure_future(self._permit(asked.host, asked.port))
        gone = asyncio.ensure_future(_gone(reader))
        try:
            # Most answers come at once. A module that closed its writing side may still be reading.
            await asyncio.wait((permit,), timeout=_LOOKS)
            await asyncio.wait((permit, gone), return_when=asyncio.FIRST_COMPLETED)
            return permit.done() and permit.result()
        finally:
            permit.cancel()
            gone.cancel()
            await asyncio.gather(permit, gone, return_exceptions=True)

    async def _head(self, reader: asyncio.StreamReader) -> bytes | Refusal:
        try:
            async with asyncio.timeout(self._bounds.connecting):
                return await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return Refusal(431, f"The request's head has more than {LARGEST_HEAD:,} bytes.")
        except asyncio.IncompleteReadError:
            return Refusal(400, "The request ended before its head did.")
        except TimeoutError:
            return Refusal(408, "The request's head did not come in time.")

    async def _reach(self, asked: Target) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter] | Refusal:
        """Connect to `asked`, at an address that was checked."""
        try:
            async with asyncio.timeout(self._bounds.connecting):
                inner = self._outside.inside.get(asked)
                if inner is not None:
                    return await self._dial([inner.host], inner.port)

                addresses = await self._outside.resolve(asked.host, asked.port)
                # One inner address among them is reason enough to refuse: no honest name server returns such a list.
                if not addresses or not all(is_outside(address) for address in addresses):
                    return Refusal(403, "The name leads to an address that is not a global one.")
                return await self._dial(addresses[:4], asked.port)
        except TimeoutError:
            return Refusal(502, "No connection could be made in time.")
        except (OSError, UnicodeError):  # UnicodeError: a label of the name is too long
            return Refusal(502, "The name can't be resolved.")

    async def _dial(
        self, addresses: Sequence[str], port: int
    ) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter] | Refusal:
        """Connect to the first of these addresses that takes a connection."""
        failed = ""
        for address in addresses:
            try:
                reader, writer = await self._outside.dial(address, port)
                return address, reader, writer
            except OSError as error:
                failed = error.strerror or type(error).__name__
        return Refusal(502, f"No connection can be made ({failed}).")

    def _take(self, size: int) -> None:
        """Count `size` bytes.

        Raises:
            _Cut: there were too many.
        """
        self._left -= size
        if self._left < 0:
            raise _Cut(f"The module has used up its {self._bounds.bytes:,} bytes.")


_Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Passing:
    """Bytes that pass both ways between two ends, until both are done or a bound is hit."""

    def __init__(self, take: Callable[[int], None], idle: float) -> None:
        self._take = take
        self._idle = idle
        self._heard = time.monotonic()
        self.sent = 0
        self.received = 0

    async def begin(self, writer: asyncio.StreamWriter, head: bytes) -> None:
        """Send the head of a request, before anything passes."""
        self.sent += len(head)
        with suppress(_Cut):  # the next bytes end it
            self._take(len(head))
        await _write(writer, head)

    async def run(self, near: _Ends, far: _Ends, seconds: float) -> str:
        """Forward bytes. Return why the connection was cut, or ""."""
        try:
            async with asyncio.timeout(seconds):
                return await self._until_cut(near, far)
        except TimeoutError:
            return f"It was open for {seconds:g} s, which is the most."

    async def _until_cut(self, near: _Ends, far: _Ends) -> str:
        reason = ""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._out(near[0], far[1]))
                group.create_task(self._in(far[0], near[1]))
        except* _Cut as cut:
            reason = str(cut.exceptions[0])
        except* OSError:
            reason = "The connection broke."
        return reason

    async def _out(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await self._read(reader):
            self.sent += len(data)
            await _write(writer, data)
        _finish(writer)

    async def _in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await self._read(reader):
            self.received += len(data)
            await _write(writer, data)
        _finish(writer)

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """Return the next bytes, or none at the end.

        Raises:
            _Cut: there were too many, or none came in either direction for too long.
        """
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    data = await reader.read(_CHUNK)
            except TimeoutError:
                if time.monotonic() - self._heard >= self._idle:
                    raise _Cut(f"Nothing came for {self._idle:g} s.") from None
                continue
            self._heard = time.monotonic()
            self._take(len(data))
            return data


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _gone(reader: asyncio.StreamReader) -> None:
    """Wait until the module closes its end. Bytes that it sends before the answer are discarded."""
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110  (a reader does not notify of its end)
        await asyncio.sleep(_LOOKS)


def _finish(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        writer.write_eof()


def unreachable(host: str) -> str:
    """What a module reads of a host that it can't reach, whatever the reason."""
    return f"{host} can't be reached from here"


async def _answer(writer: asyncio.StreamWriter, status: int, reason: str, *, phrase: str = "") -> None:
    """Send a response's head, and for a refusal its reason as the body. `phrase`: what follows the status."""
    body = f"{reason}\n".encode() if reason else b""
    fields = (
        f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n" if body else ""
    )
    head = f"HTTP/1.1 {status} {phrase or _REASONS[status]}\r\n{fields}\r\n".encode()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(5):
            await _write(writer, head + body)
            if body:
                writer.close()
                await writer.wait_closed()


def _harmless(head: bytes) -> str:
    """What a request named as its target: untrusted text, made printable and short."""
    words = head.partition(b"\r\n")[0].split(b" ")
    named = words[1] if len(words) > 1 else words[0]
    return "".join(char if char.isprintable() else "?" for char in named[:262].decode("ascii", "replace"))
