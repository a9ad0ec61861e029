"""Runs a program for a call in such a way that no process of it outlives the call.

The program runs under `supervisor.py`, which keeps track of all its descendants. If the program kills its supervisor,
the remaining processes are found by a mark in their environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

MARK: Final = "IACT_CALL"
"""The environment variable that identifies the processes of a call."""

_SUPERVISOR: Final = str(Path(__file__).with_name("supervisor.py"))
_END_WITHIN: Final = 7.0
_LAST_OUTPUT: Final = 0.5
"""Seconds after the death of a supervisor that sent no report during which earlier output is still read."""
_READ: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Status:
    """How a program ended."""

    code: int | None
    """Its exit status, the negative signal number, or None if it was cut short."""
    left: int = 0
    """How many of its processes could not be killed."""


class Process:
    """One program with its descendants; created by `start`, and always ended by `end`.

    `running`: the process ids of the supervisors of all programs that have not been ended yet. `started`: how many
    programs were ever started.
    """

    running: ClassVar[set[int]] = set()
    started: ClassVar[int] = 0

    def __init__(
        self,
        supervisor: subprocess.Popen[bytes],
        control: int,
        mark: str,
        output: asyncio.StreamReader,
        report: _Report,
    ) -> None:
        self._supervisor = supervisor
        self._control = control
        self._mark = mark
        self._output = output
        self._report = report

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        descriptors: Sequence[int] = (),
        stdin: int | None = None,
    ) -> Process:
        """Start `command` with stdout and stderr as one stream. `stdin`: an opened file; None: nothing can be read.

        Raises:
            OSError: no process can be started (too many processes, too little memory).
        """
        mark = secrets.token_hex(16)
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()
            control_end, control, output, output_end, report_pipe, report_end = pipes
            # Returns as soon as the child has been replaced by the supervisor, which takes about a millisecond.
            supervisor = subprocess.Popen(  # noqa: ASYNC220
                [sys.executable, "-I", "-S", _SUPERVISOR, str(control_end), str(report_end), *command],
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output_end,
                stderr=output_end,
                pass_fds=[control_end, report_end, *descriptors],
                start_new_session=True,
                cwd=cwd,
                env={**environment, MARK: mark},
            )
        except BaseException:
            for descriptor in pipes:
                os.close(descriptor)
            raise

        # The supervisor has the other ends: if it dies, ours end.
        cls.running.add(supervisor.pid)
        cls.started += 1
        for descriptor in (control_end, output_end, report_end):
            os.close(descriptor)

        reader = asyncio.StreamReader(limit=_READ)
        report = _Report(mark)
        process = cls(supervisor, control, mark, reader, report)
        try:
            report.output = await _connect(output, asyncio.StreamReaderProtocol(reader))
            await _connect(report_pipe, report)
        except BaseException:
            # Cancelled before it is returned: no caller would end it.
            cls.running.discard(supervisor.pid)
            os.close(control)
            raise
        return process

    @property
    def pid(self) -> int:
        """The process id of the supervisor. All processes of the program are its descendants."""
        return self._supervisor.pid

    async def output(self) -> AsyncIterator[bytes]:
        """Yield the output as it comes, until the program and all its descendants have ended."""
        while chunk := await self._output.read(_READ):
            yield chunk
        # A program may close its output and go on running.
        await self._report.complete.wait()

    async def end(self) -> Status:
        """Kill what still runs and wait until it is gone: a few seconds at most, even when cancelled."""
        os.close(self._control)
        return await _uncancelled(self._ended())

    async def _ended(self) -> Status:
        try:
            async with asyncio.timeout(_END_WITHIN):
                await self._report.complete.wait()
                while await self._output.read(_READ):
                    pass
        except TimeoutError:
            self._supervisor.kill()

        # It has closed its report or was killed, so it ends now.
        while self._supervisor.poll() is None:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        self.running.discard(self.pid)
        return _status(self._report.text) or Status(None, len(marked(self._mark)))


class _Report(asyncio.Protocol):
    """The supervisor's final report. If it died without one, its orphans are killed by their mark.

    An orphan without the mark may hold the output open indefinitely, so `output`, the pipe, is closed in that case.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self.output: asyncio.BaseTransport | None = None
        self.text = b""
        self.complete = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.text += data

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.text:
            kill_marked(self._mark)
            if self.output is not None:
                asyncio.get_running_loop().call_later(_LAST_OUTPUT, self.output.close)
        self.complete.set()


async def _connect(descriptor: int, protocol: asyncio.BaseProtocol) -> asyncio.BaseTransport:
    pipe = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return transport


async def _uncancelled(work: Coroutine[object, object, Status]) -> Status:
    """Wait for `work` even when cancelled, and raise the cancellation afterwards."""
    task = asyncio.ensure_future(work)
    was_cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            was_cancelled = True

    if was_cancelled:
        raise asyncio.CancelledError
    return task.result()


def _status(report: bytes) -> Status | None:
    if not report:
        return None
    fields = json.loads(report)
    return Status(fields["status"], fields["left"])


def marked(mark: str) -> list[int]:
    """Ids of the running processes whose environment carries `mark`."""
    variable = f"{MARK}={mark}".encode()
    pids: list[int] = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            environment = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue

        if variable in environment.split(b"\0"):
            pids.append(int(entry))
    return pids


def kill_marked(mark: str) -> None:
    """Stop, then kill, all processes whose environment carries `mark`, until none is left, for at most 100 rounds."""
    for _ in range(100):
        pids = marked(mark)
        if not pids:
            return

        # All are stopped before any is killed, so that none can start others meanwhile.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
