"""The interpreter itself: `kernel.py SOCKET_FD`, a program of its own that can be interrupted, frozen and killed.

It reads requests from the socket, each a line of JSON, and answers each with a line of JSON and the bytes that this
announces. Whatever the code prints goes to standard output; behind it, and before the answer, the request's `mark`.
The code shares this process, and may break it in any way; who listens takes nothing here for granted.
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

MOST_FIGURES = 12
LARGEST_FIGURE = 4 << 20
"""Bytes of one picture; a larger one is told of and left out."""
WIDEST = 120
MOST_NAMES = 200


class Kernel:
    """One name space, in which pieces of code run one after the other."""

    def __init__(self) -> None:
        main = sys.modules["__main__"] = ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        self.names = vars(main)
        self.running = False
        self._count = 0
        self._first = set(self.names)

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Only code of the agent's is interrupted; one that arrives too late has nothing to end."""
        if self.running:
            self.running = False
            raise KeyboardInterrupt

    def run(self, code: str) -> tuple[int, str, list[str], list[bytes]]:
        """Exit status, the type of what was raised, remarks, and the pictures that were drawn."""
        self._count += 1
        name = f"<run {self._count}>"
        # A traceback shows the lines of what was run.
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
        """The value of the last line, if that is an expression, as an interpreter shows it."""
        if value is not None:
            self.names["_"] = value
            print(repr(value))

    def listed(self) -> list[tuple[str, str, str]]:
        """Name, type and beginning of what the code defined."""
        found: list[tuple[str, str, str]] = []
        for name, value in list(self.names.items()):
            if name in self._first or name.startswith("_") or isinstance(value, ModuleType):
                continue
            if len(found) == MOST_NAMES:
                break
            found.append((name, type(value).__name__, brief(value)))
        return found


def compiled(code: str, name: str) -> tuple[CodeType, CodeType | None]:
    """`code`, and its last line apart if that is an expression."""
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        ending = tree.body.pop()
        assert isinstance(ending, ast.Expr)
        last = compile(ast.Expression(ending.value), name, "eval")
    return compile(tree, name, "exec"), last


def told(error: BaseException) -> None:
    """The stack trace, without what is ours."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        shown.stack[:] = [frame for frame in shown.stack if frame.filename != __file__]
        text = "".join(shown.format())
    except Exception:
        text = f"{type(error).__name__}, which can't be shown\n"
    sys.stderr.write(text)


def brief(value: object) -> str:
    """One line about a value. Its own code is run for that, and may fail."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"shape {shape}"
    try:
        text = " ".join(repr(value)[: 4 * WIDEST].split())
    except Exception as error:
        return f"can't be shown: {type(error).__name__}"
    return text if len(text) <= WIDEST else text[:WIDEST] + "…"


def figures() -> tuple[list[str], list[bytes]]:
    """All open figures of matplotlib as PNG; they are closed by that."""
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
    """Send one answer with what it announces."""
    line = json.dumps({**said, "sizes": [len(blob) for blob in blobs]})
    connection.sendall(line.encode("utf-8", "replace") + b"\n" + b"".join(blobs))


def main() -> None:
    """Serve until the other side is gone."""
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
            asked = json.loads(line)
            if asked["do"] == "names":
                answer(connection, {"names": kernel.listed()})
                continue
            status, raised, remarks, pictures = kernel.run(asked["code"])
            if os.getpid() != own:
                os._exit(status)  # a child that the code forked and let go on
            with contextlib.suppress(OSError):
                os.write(1, asked["mark"].encode())
            answer(connection, {"status": status, "raised": raised, "remarks": remarks}, pictures)


if __name__ == "__main__":
    main()
