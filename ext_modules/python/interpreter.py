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
    """How a piece of code ended. `raised`: the name of the exception, or ""."""

    status: int
    raised: str
    remarks: tuple[str, ...]
    pictures: tuple[bytes, ...]


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
        made = cls(process, ours)
        try:
            made._reader, made._writer = await asyncio.open_connection(sock=ours, limit=_LARGEST_LINE)
            async with asyncio.timeout(_STARTS_WITHIN):
                said, _ = await made._answered()
            pid = said.get("pid")
            if not isinstance(pid, int) or pid not in descendants(process.pid):
                raise Gone("The Python interpreter did not start.")
            made._pid = pid
        except TimeoutError:
            await made.end()
            raise Gone(f"The Python interpreter did not start within {_STARTS_WITHIN:g} s.") from None
        except BaseException:
            await made.end()
            raise
        return made

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
        contents = [value.data for value in names.values()]
        given: list[JSON] = [
            [name, "text" if is_text(value) else "bytes", len(value.data)] for name, value in names.items()
        ]
        self._ask({"do": "run", "code": code, "mark": self._mark.decode(), "given": given}, contents)
        async for item in self._ending():
            yield item

    async def _ending(self) -> AsyncIterator[bytes | Answer]:
        """Yield the further output of the running code, and how it ended."""
        answering = asyncio.ensure_future(self._answered())
        try:
            async for chunk in self._until(self._mark, answering):
                yield chunk
            said, blobs = await answering
        finally:
            answering.cancel()
            await asyncio.wait([answering])
        self.freeze()
        yield _read(said, blobs)

    async def names(self) -> list[tuple[str, str, str]]:
        """Name, type and beginning of each variable."""
        self._thaw()
        try:
            self._ask({"do": "names"})
            said, _ = await self._answered()
        finally:
            self.freeze()
        listed = said.get("names")
        rows = listed if isinstance(listed, list) else []
        return [
            (str(row[0]), str(row[1]), str(row[2])) for row in rows if isinstance(row, list) and len(row) == 3
        ]

    async def interrupt(self) -> bytes | None:
        """Interrupt the running code and return its remaining output, or None if the interpreter does not go on."""
        printed = b""
        nudging = asyncio.create_task(self._nudge())
        try:
            async with asyncio.timeout(_GIVES_IN_WITHIN):
                async for item in self._ending():
                    printed += item if isinstance(item, bytes) else b""
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
        held = b""
        last: float | None = None
        while True:
            if answering.done() and last is None:
                last = asyncio.get_running_loop().time() + _LAST_OUTPUT
            taking = asyncio.ensure_future(self._printed.get())
            waiting: list[asyncio.Future[bytes] | asyncio.Future[tuple[Mapping[str, JSON], list[bytes]]]]
            waiting = [taking] if last is not None else [taking, answering]
            left = None if last is None else max(0.0, last - asyncio.get_running_loop().time())
            try:
                await asyncio.wait(waiting, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not taking.done():
                    taking.cancel()
            if not taking.done() or taking.cancelled():
                if last is not None:
                    break
                continue
            held += taking.result()
            before, found, _ = held.partition(mark)
            if found:
                yield before
                return
            # Hold back what may be the beginning of the mark.
            begun = next(
                (
                    at
                    for at in range(max(0, len(held) - len(mark) + 1), len(held))
                    if mark.startswith(held[at:])
                ),
                len(held),
            )
            if begun:
                yield held[:begun]
                held = held[begun:]
        yield held

    async def _answered(self) -> tuple[Mapping[str, JSON], list[bytes]]:
        """Return the interpreter's next answer.

        Raises:
            Gone: there is none, or it is not valid.
        """
        assert self._reader is not None
        try:
            line = await self._reader.readuntil(b"\n")
            said = json.loads(line)
            sizes = said.pop("sizes") if isinstance(said, dict) else None
            if not isinstance(sizes, list) or not all(isinstance(size, int) and size >= 0 for size in sizes):
                raise ValueError
            if sum(sizes) > _LARGEST_PICTURES:
                raise ValueError
            return said, [await self._reader.readexactly(size) for size in sizes]
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            raise Gone("The Python interpreter ended.") from None
        except (ValueError, KeyError, RecursionError):
            raise Gone("The code broke the Python interpreter's own connection.") from None


def _read(said: Mapping[str, JSON], blobs: list[bytes]) -> Answer:
    status, raised, remarks = said.get("status"), said.get("raised"), said.get("remarks")
    return Answer(
        status if isinstance(status, int) else 1,
        str(raised)[:100] if raised else "",
        tuple(str(one)[:500] for one in remarks[:20]) if isinstance(remarks, list) else (),
        tuple(blob for blob in blobs if blob.startswith(b"\x89PNG\r\n\x1a\n")),
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
    given = os.environ.get("IACT_WORKSPACE", "/workspace")
    return given if os.path.isdir(given) else tempfile.gettempdir()


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
