"""The interpreter itself: `kernel.py SOCKET_FD`, a separate program that can be interrupted, frozen and killed.

It reads requests from the socket, each a line of JSON, followed by the contents that the line announces. It answers each
with a line of JSON, followed by the bytes that the line announces. The code prints to standard output; the request's `mark` follows the output and precedes the answer.
The code shares this process and may break it in any way, so the reader must not trust its answers.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import linecache
import os
import signal
import socket
import sys
import traceback
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType, ModuleType
from typing import BinaryIO

MOST_FIGURES = 12
LARGEST_FIGURE = 4 << 20
"""The most bytes of one picture; a larger picture is reported and left out."""
WIDEST = 120
MOST_NAMES = 200


class Kernel:
    """One name space, in which pieces of code run one after another."""

    def __init__(self) -> None:
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        self.names = vars(main)
        self.running = False
        self._count = 0
        self._first = set(self.names)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Interrupt the agent's code only. An interrupt that arrives too late has no effect."""
        if self.running:
            self.running = False
            raise KeyboardInterrupt

    def run(self, code: str) -> tuple[int, str, list[str], list[bytes]]:
        """Return the exit status, the type of the exception, remarks, and the pictures that were drawn."""
        self._count += 1
        name = f"<run {self._count}>"
        # Lets a traceback show the lines of the code.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        raised = ""
        status = 0
        try:
            body, last = compiled(code, name)
            self.running = True
            try:
                exec(body, self.names)
                if last is not None:
                    self._show(eval(last, self.names))
            finally:
                self.running = False
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
            raised = "" if not status else "SystemExit"
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
        except BaseException as error:
            status, raised = 1, type(error).__name__
            told(error)
        remarks, pictures = figures()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        return status & 0xFF or int(bool(status)), raised, remarks, pictures

    def _show(self, value: object) -> None:
        """Print the value of the last line, if it is an expression, as an interpreter does."""
        if value is not None:
            self.names["_"] = value
            print(repr(value))

    def listed(self) -> list[tuple[str, str, str]]:
        """Name, type and beginning of each variable that the code defined."""
        variables: list[tuple[str, str, str]] = []
        for name, value in list(self.names.items()):
            if name in self._first or name.startswith("_") or isinstance(value, ModuleType):
                continue
            if len(variables) == MOST_NAMES:
                break
            variables.append((name, type(value).__name__, brief(value)))
        return variables


def compiled(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """Compile `code`, with the last line separate if it is an expression."""
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        ending = tree.body.pop()
        assert isinstance(ending, ast.Expr)
        last = compile(ast.Expression(ending.value), name, "eval")
    return compile(tree, name, "exec"), last


def told(error: BaseException) -> None:
    """Print the stack trace, without the frames of this file."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        shown.stack[:] = [frame for frame in shown.stack if frame.filename != __file__]
        text = "".join(shown.format())
    except Exception:
        text = f"{type(error).__name__}, which can't be shown\n"
    sys.stderr.write(text)


def brief(value: object) -> str:
    """Describe a value in one line. This runs the value's own code, which may fail."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"shape {shape}"
    try:
        text = " ".join(repr(value)[: 4 * WIDEST].split())
    except Exception as error:
        return f"can't be shown: {type(error).__name__}"
    return text if len(text) <= WIDEST else text[:WIDEST] + "…"


def figures() -> tuple[list[str], list[bytes]]:
    """Draw all open figures of matplotlib as PNG, and close them."""
    plots = sys.modules.get("matplotlib.pyplot")
    if plots is None:
        return [], []

    remarks: list[str] = []
    pictures: list[bytes] = []
    try:
        numbers = list(plots.get_fignums())
        for number in numbers[:MOST_FIGURES]:
            out = io.BytesIO()
            plots.figure(number).savefig(out, format="png", dpi=110, bbox_inches="tight")
            if out.tell() > LARGEST_FIGURE:
                remarks.append(f"Figure {number} has more than {LARGEST_FIGURE >> 20} MiB and was left out.")
            else:
                pictures.append(out.getvalue())
        if len(numbers) > MOST_FIGURES:
            remarks.append(f"Of {len(numbers)} figures the first {MOST_FIGURES} are given.")
    except BaseException as error:
        remarks.append(f"A figure can't be drawn: {type(error).__name__}: {str(error)[:300]}")

    with contextlib.suppress(Exception):
        plots.close("all")
    return remarks, pictures


def answer(connection: socket.socket, said: Mapping[str, object], blobs: Sequence[bytes] = ()) -> None:
    """Send one answer and the bytes it announces."""
    line = json.dumps({**said, "sizes": [len(blob) for blob in blobs]})
    connection.sendall(line.encode("utf-8", "replace") + b"\n" + b"".join(blobs))


def received(stream: BinaryIO, announced: Sequence[tuple[str, str, int]]) -> dict[str, str | bytes]:
    """Read the contents that a request announces, as name, "text" or "bytes", and size."""
    contents: dict[str, str | bytes] = {}
    for name, kind, size in announced:
        content = stream.read(size)
        contents[name] = content.decode() if kind == "text" else content
    return contents


def main() -> None:
    """Serve until the other side closes the connection."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    connection.set_inheritable(False)
    sys.argv[:] = [""]
    sys.path[0] = ""

    kernel = Kernel()
    signal.signal(signal.SIGINT, kernel.interrupt)
    own = os.getpid()
    answer(connection, {"pid": own})
    with connection.makefile("rb") as requests:
        while line := requests.readline():
            request = json.loads(line)
            if request["do"] == "names":
                answer(connection, {"names": kernel.listed()})
                continue

            kernel.names.update(received(requests, request["given"]))
            status, raised, remarks, pictures = kernel.run(request["code"])
            if os.getpid() != own:
                os._exit(status)  # a child process that the code forked and did not end
            with contextlib.suppress(OSError):
                os.write(1, request["mark"].encode())
            answer(connection, {"status": status, "raised": raised, "remarks": remarks}, pictures)


if __name__ == "__main__":
    main()
