"""Renders records in a process that can be killed, so that no text delays its caller longer than allowed.

A render process limits the time of Markdown on its own (`web.render_tasks`), which costs one exception. What that can't
limit is limited here: a process that has not answered in time is killed, and the next question starts another. A killed
or broken process costs one record its formatting, never its text.
"""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from iact.core.ports import JSON
from iact.web.render_tasks import DraftQuestion, RenderQuestion

_PROGRAM: Final = Path(__file__).with_name("render_program.py")
PATIENCE: Final = 2.0
"""Seconds of wall-clock time for one record: eight times its processor time, for busy machines."""

_TO_START: Final = 15
"""How many times that long a process may take to start: it loads much, at low priority."""

_log = logging.getLogger("iact.web")


class RenderProcess:
    """One process, started when it is first needed and again after it has ended. For one thread at a time.

    `patience`: seconds of wall-clock time that an answer may take.
    """

    def __init__(self, *, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._ready = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process id, if the process lives."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Begin to start the process, if it does not live."""
        if self._socket is not None or self._closed:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            # Without what this process has: no environment, and no signals from its terminal.
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={},
                cwd="/",
                start_new_session=True,
            )
        self._socket, self._ready = ours, False
        if self._closed:
            self._process.kill()

    def render(self, question: RenderQuestion | DraftQuestion) -> Mapping[str, JSON] | None:
        """The answer (`web.render_tasks.answer`), or None if there was none in time."""
        for _ in range(2):  # a process that died since its last question says nothing about this one
            try:
                fresh = self._socket is None
                self.start()
                if self._socket is None:
                    return None
                if not self._ready:
                    _received(self._socket, 1, time.monotonic() + _TO_START * self._patience)
                    self._ready = True
                return _asked(self._socket, question, self._patience)
            except TimeoutError:
                _log.warning("%s took too long to render; its text is shown as it is.", question)
                self._end()
                return None
            except (OSError, ValueError) as error:
                self._end()
                if fresh:
                    _log.warning("%s could not be rendered: %s", question, error)
                    return None
        return None

    def close(self) -> None:
        """End the process for good, from any thread; a caller that waits for an answer gets none."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()

    def reap(self) -> None:
        """Leave nothing of the process behind; call after `close`, when no one waits for an answer any more."""
        self._end()

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> RenderProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
        self.reap()


def _asked(
    wire: socket.socket, question: RenderQuestion | DraftQuestion, seconds: float
) -> Mapping[str, JSON] | None:
    end = time.monotonic() + seconds
    data = json.dumps(question.to_json()).encode()
    wire.settimeout(seconds)
    wire.sendall(len(data).to_bytes(4) + data)
    answer = json.loads(_received(wire, int.from_bytes(_received(wire, 4, end)), end))
    return answer if isinstance(answer, dict) and "html" in answer else None


def _received(wire: socket.socket, size: int, end: float) -> bytes:
    parts = []
    while size:
        wire.settimeout(max(0.001, end - time.monotonic()))
        part = wire.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionResetError("the process ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
