"""One agent's interpreter, as the module sees it: started once, called repeatedly, frozen between calls.

It is a separate program (`kernel.py`), because code that runs forever can only be ended from outside, and because a
crash must cause an error for the caller and not end the module. Between two calls all its processes are stopped, so
that no thread or program that it started changes the workspace after the call that started it. They continue at the
next call.

The agent's code controls what the interpreter sends, so its messages are treated as untrusted input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ext_modules.sdk.process import Process
from ext_modules.sdk.supervisor import descendants, send
from ext_modules.sdk.values import JSON, Value

_KERNEL: Final = str(Path(__file__).with_name("kernel.py"))
_STARTS_WITHIN: Final = 30.0
_GIVES_IN_WITHIN: Final = 0.4
"""Seconds that code has to end after an interrupt; then its interpreter is ended."""
_LARGEST_LINE: Final = 1 << 20
_TEXT: Final = re.compile(
    r"text/.*|application/(?:.*\+(?:json|xml|yaml)|(?:x-)?(?:json|ndjson|xml|yaml|toml|javascript|sh|sql|python))(?:;.*)?"
)
"""The types of content that is text."""
_LARGEST_PICTURES: Final = 48 << 20
_LAST_OUTPUT: Final = 0.5
"""Seconds after an answer for which output printed before it is still awaited."""


class Gone(Exception):
    """The interpreter has ended; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a piece of code ended."""

    status: int
    """Its exit status."""
    raised: str
    """The name of the exception; empty: there was none."""
    remarks: tuple[str, ...]
    """What an agent must know about it, in sentences."""
    pictures: tuple[bytes, ...]
    """The figures that it left open, as PNG."""


class Interpreter:
    """Created by `start`, ended by `end`; takes one request at a time."""

    def __init__(self, process: Process, connection: socket.socket) -> None:
        self._process = process
        self._connection = connection
        self._printed: asyncio.Queue[bytes] = asyncio.Queue(maxsize=16)
        self._pump = asyncio.create_task(self._follow())
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._pid = 0
        self._mark = b""

    @classmethod
    async def start(cls) -> Interpreter:
        """Start an interpreter in the workspace.

        Raises:
            Gone: it does not start.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = await Process.start(
                ["python3", "-u", _KERNEL, str(theirs.fileno())],
                cwd=_workspace(),
                environment=_environment(),
                descriptors=[theirs.fileno()],
            )

        interpreter = cls(process, ours)
        try:
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LARGEST_LINE)
            interpreter._reader = reader
            interpreter._writer = writer
            async with asyncio.timeout(_STARTS_WITHIN):
                greeting, _ = await interpreter._answered()

            # Signals go to it: it can't be any other process.
            pid = greeting.get("pid")
            if not isinstance(pid, int) or pid not in descendants(process.pid):
                raise Gone("The Python interpreter did not start.")
            interpreter._pid = pid
        except TimeoutError:
            await interpreter.end()
            raise Gone(f"The Python interpreter did not start within {_STARTS_WITHIN:g} s.") from None
        except BaseException:
            await interpreter.end()
            raise
        return interpreter

    @property
    def pid(self) -> int:
        """The process id of the ancestor of all its processes."""
        return self._process.pid

    async def run(self, code: str, names: Mapping[str, Value]) -> AsyncIterator[bytes | Answer]:
        """Run the code. Yields its output as it comes, and finally how it ended.

        `names`: content that is defined before, by name: text as a str, anything else as bytes.

        Raises:
            Gone: the interpreter ended meanwhile.
        """
        self._thaw()
        self._mark = f"\0{secrets.token_hex(16)}\0".encode()
        announced: list[JSON] = []
        for name, value in names.items():
            kind = "text" if is_text(value) else "bytes"
            announced.append([name, kind, len(value.data)])

        request: dict[str, JSON] = {
            "do": "run",
            "code": code,
            "mark": self._mark.decode(),
            "given": announced,
        }
        self._ask(request, [value.data for value in names.values()])
        async for item in self._ending():
            yield item

    async def _ending(self) -> AsyncIterator[bytes | Answer]:
        """Yield the further output of the running code, and how it ended."""
        answering = asyncio.ensure_future(self._answered())
        try:
            async for chunk in self._until(self._mark, answering):
                yield chunk
            fields, blobs = await answering
        finally:
            answering.cancel()
            await asyncio.wait([answering])

        self.freeze()
        yield _read(fields, blobs)

    async def names(self) -> list[tuple[str, str, str]]:
        """Name, type and beginning of each variable."""
        self._thaw()
        try:
            self._ask({"do": "names"})
            fields, _ = await self._answered()
        finally:
            self.freeze()

        rows = fields.get("names")
        if not isinstance(rows, list):
            return []
        valid = [row for row in rows if isinstance(row, list) and len(row) == 3]
        return [(str(name), str(kind), str(shown)) for name, kind, shown in valid]

    async def interrupt(self) -> bytes | None:
        """Interrupt the running code and return its remaining output, or None if the interpreter does not go on."""
        printed = b""
        nudging = asyncio.create_task(self._nudge())
        try:
            async with asyncio.timeout(_GIVES_IN_WITHIN):
                async for item in self._ending():
                    if isinstance(item, bytes):
                        printed += item
        except (TimeoutError, Gone):
            return None
        finally:
            nudging.cancel()
        return printed

    async def _nudge(self) -> None:
        """Interrupt the code and its children repeatedly, since a program that is just starting ignores signals."""
        while True:
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGINT)
            await asyncio.sleep(_GIVES_IN_WITHIN / 5)

    async def end(self) -> None:
        """End the interpreter and everything it started."""
        if self._writer is not None:
            self._writer.close()
        else:
            self._connection.close()
        self._pump.cancel()
        await self._process.end()

    def freeze(self) -> None:
        """Stop all its processes until the next request."""
        stopped: set[int] = set()
        while fresh := descendants(self._process.pid) - stopped:
            send(fresh, signal.SIGSTOP)
            stopped |= fresh

    def _thaw(self) -> None:
        send(descendants(self._process.pid), signal.SIGCONT)

    def _ask(self, request: Mapping[str, JSON], contents: Sequence[bytes] = ()) -> None:
        """Send a request, and behind it the contents that it announces."""
        if self._writer is None:
            raise Gone("The Python interpreter has ended.")
        self._writer.write(json.dumps(request).encode() + b"\n")
        for content in contents:
            self._writer.write(content)

    async def _follow(self) -> None:
        """Forward its output, no faster than it is consumed."""
        async for chunk in self._process.output():
            await self._printed.put(chunk)

    async def _until(
        self, mark: bytes, answering: asyncio.Future[tuple[Mapping[str, JSON], list[bytes]]]
    ) -> AsyncIterator[bytes]:
        """Yield the output before the mark, or until shortly after the answer if the mark never comes."""
        loop = asyncio.get_running_loop()
        held = b""
        end: float | None = None
        while True:
            if answering.done() and end is None:
                end = loop.time() + _LAST_OUTPUT
            if end is None:
                chunk = await self._chunk(answering, None)
            else:
                chunk = await self._chunk(None, max(0.0, end - loop.time()))
            if chunk is None and end is not None:
                break
            if chunk is None:
                continue

            held += chunk
            before, at_mark, _ = held.partition(mark)
            if at_mark:
                yield before
                return

            upto = len(held) - _begun(held, mark)
            if upto:
                yield held[:upto]
                held = held[upto:]
        yield held

    async def _chunk(
        self, answering: asyncio.Future[tuple[Mapping[str, JSON], list[bytes]]] | None, seconds: float | None
    ) -> bytes | None:
        """The next output; None if the answer comes first, or no output within these seconds."""
        taking = asyncio.ensure_future(self._printed.get())
        waiting: list[asyncio.Future[bytes] | asyncio.Future[tuple[Mapping[str, JSON], list[bytes]]]] = [
            taking
        ]
        if answering is not None:
            waiting.append(answering)
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not taking.done():
                taking.cancel()
        return taking.result() if taking.done() and not taking.cancelled() else None

    async def _answered(self) -> tuple[Mapping[str, JSON], list[bytes]]:
        """Return the interpreter's next answer.

        Raises:
            Gone: there is none, or it is not valid.
        """
        assert self._reader is not None
        try:
            fields = json.loads(await self._reader.readuntil(b"\n"))
            sizes = fields.pop("sizes") if isinstance(fields, dict) else None
            if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
                raise ValueError
            if sum(sizes) > _LARGEST_PICTURES:
                raise ValueError
            return fields, [await self._reader.readexactly(size) for size in sizes]

        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            raise Gone("The Python interpreter ended.") from None
        except (ValueError, KeyError, RecursionError):
            raise Gone("The code broke the Python interpreter's own connection.") from None


def _begun(data: bytes, mark: bytes) -> int:
    """How many bytes at the end may be the beginning of the mark."""
    for at in range(max(0, len(data) - len(mark) + 1), len(data)):
        if mark.startswith(data[at:]):
            return len(data) - at
    return 0


def _read(fields: Mapping[str, JSON], blobs: list[bytes]) -> Answer:
    """An answer. The code could have sent anything."""
    status = fields.get("status")
    if not isinstance(status, int):
        status = 1
    raised = fields.get("raised")
    remarks = fields.get("remarks")
    if not isinstance(remarks, list):
        remarks = []
    return Answer(
        status=status,
        raised=str(raised)[:100] if raised else "",
        remarks=tuple(str(remark)[:500] for remark in remarks[:20]),
        pictures=tuple(blob for blob in blobs if blob.startswith(b"\x89PNG\r\n\x1a\n")),
    )


def is_text(value: Value) -> bool:
    """Whether content is defined as a str: its type says that it is text, and it is UTF-8."""
    if not _TEXT.fullmatch(value.media_type.lower()):
        return False
    try:
        value.data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _workspace() -> str:
    folder = os.environ.get("IACT_WORKSPACE", "/workspace")
    return folder if os.path.isdir(folder) else tempfile.gettempdir()


def _environment() -> dict[str, str]:
    """The interpreter's environment: where its packages are, that it has no screen, and few threads to compute with."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GRPC_", "IACT_"))}
    temporary = tempfile.gettempdir()
    return {
        **inherited,
        "HOME": temporary,
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": f"{temporary}/matplotlib",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "LANG": inherited.get("LANG", "C.UTF-8"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
