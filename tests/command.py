"""Runs the command `iact` in separate processes, without importing the program again in each.

`python -m iact` spends 1.5 s of processor time on imports before it begins; the thousand commands of the tests spent
most of their time there. Instead, each test process has one *stem*: a process that has imported the whole program and
does nothing else. A command is a fork of the stem, with its own arguments, environment, working directory and standard
streams. It runs `iact/__main__.py` as `python -m iact` would, and ends as that does.

A fork can't test a cold start: the order of imports, their cost, and what they read from the
environment. The tests of packaging, completion and architecture start Python for that. So do tests that limit a process
before it starts, or that need a process which others recognize by its arguments.

The stem has one thread, so that its forks are complete. It receives requests over a socket whose messages carry the
streams, and ends with the test process that it belongs to. A program that starts a command itself (an editor, a client
of a protocol) is given `program(…)`: a process that asks the stem, and represents the fork in signals and in its end.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

_LEFT_OUT: Final = (
    "iact.__main__", "iact.setup", "iact.examples", "iact.cluster", "iact.accounts", "iact.faces.inspect",
)  # fmt: skip
"""Modules that no command needs, or only commands that name them."""
_LONGEST: Final = 1 << 17
"""The most bytes of a request."""
_FORKED: Final = Path(__file__).with_name("forked.py")


def _address() -> str:
    """The address at which other processes ask this process's stem, in the abstract namespace, without a file."""
    return f"iact-tests-{os.getpid()}"


class Command(subprocess.Popen[str]):
    """One process of the command, like `subprocess.Popen`, except that the stem starts it and reports how it ended."""

    def _execute_child(
        self, args: Sequence[str], executable: object, preexec_fn: object, close_fds: bool, pass_fds: object,
        cwd: Path | None, env: Mapping[str, str], startupinfo: object, creationflags: int, shell: bool,
        p2cread: int, p2cwrite: int, c2pread: int, c2pwrite: int, errread: int, errwrite: int, *others: object,
    ) -> None:  # fmt: skip
        """Let the stem fork, in place of `Popen`, which forks and executes a program. Has the same parameters."""
        assert preexec_fn is None, "a function of this process can't run in a fork of another one"
        self._told, told = os.pipe()
        streams = [own if given == -1 else given for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        request = {"arguments": list(args), "environment": dict(env), "cwd": str(cwd or Path.cwd())}
        socket.send_fds(_stem(), [json.dumps(request).encode()], [*streams, told])
        os.close(told)
        for theirs, ours in ((p2cread, p2cwrite), (c2pwrite, c2pread), (errwrite, errread)):
            if -1 not in (theirs, ours):
                os.close(theirs)
        self._closed_child_pipe_fds = True
        self._child_created = True
        self.pid = self._tell()

    def _tell(self) -> int:
        """The next number from the stem: first the process id, later how the process ended."""
        line = b""
        while not line.endswith(b"\n"):
            piece = os.read(self._told, 1)
            assert piece, "the process that starts commands has ended"
            line += piece
        return int(line)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """Ask the stem, where `Popen` asks the system for a child."""
        with selectors.DefaultSelector() as told:
            told.register(self._told, selectors.EVENT_READ)
            if not told.select(0 if wait_flags & os.WNOHANG else None):
                return 0, 0
        status = self._tell()
        os.close(self._told)
        return self.pid, status

    def _internal_poll(self, *unused: object, **others: object) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def program(*arguments: str) -> list[str]:
    """The command line to give to a third-party program that starts `python -m iact` with `arguments`."""
    _stem()
    return [sys.executable, "-I", "-S", str(_FORKED), _address(), *arguments]


def kill(process: int) -> None:
    """Send SIGKILL to the command that `process` represents, which was started by `program(…)`. `process` ends too."""
    os.kill(
        int(Path(f"/proc/{process}/comm").read_text(encoding="utf-8").removeprefix("for ")), signal.SIGKILL
    )


def iact(
    *arguments: str, environment: Mapping[str, str], cwd: Path, stdin: str = "", seconds: float = 180.0
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    with Command(
        arguments, env=environment, cwd=cwd, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            out, errors = process.communicate(stdin, timeout=seconds)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(["iact", *arguments], process.returncode, out, errors)


def _stem() -> socket.socket:
    """The connection to this process's stem. The first call, from any thread, starts the stem."""
    with _STARTING:
        return _started()


_STARTING: Final = threading.Lock()


@cache
def _started() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as others:
        others.bind(f"\0{_address()}")
        others.listen()
        passed = [theirs.fileno(), others.fileno()]
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, *map(str, passed)],
            pass_fds=passed, stdin=subprocess.PIPE, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip

    def end() -> None:
        ours.close()
        process.communicate()

    atexit.register(end)
    return ours


def _modules() -> Iterator[str]:
    """Every module of the program that most commands may import."""
    program = importlib.import_module("iact")
    for found in pkgutil.iter_modules(program.__path__, "iact."):
        if found.name not in _LEFT_OUT:
            yield found.name
            if found.ispkg:
                inside = importlib.import_module(found.name)
                below = (each.name for each in pkgutil.walk_packages(inside.__path__, f"{found.name}."))
                yield from (name for name in below if not name.startswith(_LEFT_OUT))


def _forked(line: socket.socket, others: socket.socket) -> dict[str, object]:
    """Fork a command for each request. Returns in the fork, with the request. Kills forks that no one waits for."""
    told: dict[int, int] = {}
    ends: dict[int, int] = {}
    with selectors.DefaultSelector() as awaited:
        awaited.register(line, selectors.EVENT_READ)
        awaited.register(others, selectors.EVENT_READ)
        while True:
            for key, _ in awaited.select():
                if awaited.get_map().get(key.fd) is not key:
                    continue  # closed a moment ago
                if key.fd in ends:
                    ended = ends.pop(key.fd)
                    awaited.unregister(key.fd)
                    os.close(key.fd)
                    _, status = os.waitpid(ended, 0)
                    _forget(awaited, told[ended])
                    _tell(told.pop(ended), status)
                    continue
                if key.fd in told.values():
                    _forget(awaited, key.fd)
                    os.kill(next(child for child, one in told.items() if one == key.fd), signal.SIGKILL)
                    continue
                asking = others.accept()[0] if key.fd == others.fileno() else line
                request, streams, _, _ = socket.recv_fds(asking, _LONGEST, 4)
                if asking is not line:
                    asking.close()
                elif not request:
                    os._exit(0)
                if len(streams) < 4:
                    continue  # the client was killed meanwhile
                if (child := os.fork()) == 0:
                    for number, stream in enumerate(streams[:3]):
                        os.dup2(stream, number)
                    for each in (*streams, *told.values(), *ends):
                        os.close(each)
                    line.close()
                    others.close()
                    return dict(json.loads(request))
                told[child] = streams.pop()
                for stream in streams:
                    os.close(stream)
                _tell(told[child], child, last=False)
                end = os.pidfd_open(child)
                ends[end] = child
                awaited.register(end, selectors.EVENT_READ)
                awaited.register(
                    told[child], selectors.EVENT_READ
                )  # the writing end of a pipe whose reader is gone


def _forget(awaited: selectors.BaseSelector, stream: int) -> None:
    if stream in awaited.get_map():
        awaited.unregister(stream)


def _tell(told: int, number: int, *, last: bool = True) -> None:
    with suppress(BrokenPipeError):  # the client may be gone
        os.write(told, b"%d\n" % number)
    if last:
        os.close(told)


def main() -> None:
    """Run the stem. Each command continues from here, too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the tests closes the connection
    for name in _modules():
        importlib.import_module(name)
    assert len(os.listdir("/proc/self/task")) == 1, "an import has started a thread, which a fork would lose"
    gc.collect()
    gc.freeze()
    request = _forked(*(socket.socket(fileno=int(number)) for number in sys.argv[1:3]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    match request:
        case {"arguments": list(arguments), "environment": dict(environment), "cwd": str(cwd)}:
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(cwd)
            sys.argv = ["iact", *arguments]
            tempfile.tempdir = None
            time.tzset()
            try:
                runpy.run_module("iact", run_name="__main__", alter_sys=True)
            except SystemExit as end:
                _end(end.code)
            _end(0)


def _end(status: str | int | None) -> None:
    """End this process as Python does, in the same order, but without freeing objects. Does not print a text status."""
    if isinstance(status, str):
        sys.exit(status)
    threading._shutdown()  # type: ignore[attr-defined]  # what Python calls first at its end
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((status or 0) & 0xFF)


if __name__ == "__main__":
    main()
