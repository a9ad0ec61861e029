"""Programs that outlive the call that started them, until they end, are stopped, or the module ends.

Each job belongs to one agent. At least the head and the tail of its output are kept until they are read. An agent that
has a job, or has not read the end of one, is in the state `jobs`, so its module is known to be in use. The end of a job
is a change of that state, and the agent is notified of it.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from dataclasses import dataclass, field
from typing import Final

from ext_modules.sdk.call import AgentState
from ext_modules.sdk.kept import Kept
from ext_modules.sdk.process import Process, Status

READY: Final = "ready"
BUSY: Final = "jobs"
MOST: Final = 8
"""The most jobs of one agent at a time, including jobs that ended and were not read."""


class NoSuchJob(Exception):
    """The agent has no job with that number."""


@dataclass(slots=True)
class Job:
    """One program."""

    number: int
    title: str
    """The beginning of its script."""
    process: Process
    began: float = field(default_factory=time.monotonic)
    unread: Kept = field(default_factory=Kept)
    """Its output since the last read."""
    status: Status | None = None
    """How it ended; None while it runs."""
    ending: bool = False
    """Whether it has ended, or was told to end."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all its processes are gone."""

    @property
    def exit_status(self) -> int | None:
        """The exit status as a shell reports it, or None while the job runs."""
        if self.status is None:
            return None
        code = self.status.code
        if code is None:
            return 137
        return code if code >= 0 else 128 - code

    def line(self) -> str:
        """A one-line description of the job."""
        how = "runs" if self.status is None else f"ended with exit status {self.exit_status}"
        seconds = time.monotonic() - self.began
        return (
            f"job {self.number}: {how}; {self.unread.size:,} bytes unread; {seconds:.0f} s ago: {self.title}"
        )

    def read(self) -> str:
        """Return the output since the last read."""
        text = self.unread.text()
        self.unread = Kept()
        return text


class Jobs:
    """The jobs of one agent, whose `state` shows whether it has any."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self._jobs: dict[int, Job] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._last = 0

    @property
    def full(self) -> bool:
        """Whether no more jobs can be started."""
        return len(self._jobs) >= MOST

    def add(self, process: Process, title: str) -> Job:
        """Take over a program that was just started."""
        self._last += 1
        job = Job(self._last, " ".join(title.split())[:100], process)
        self._jobs[job.number] = job
        self._tasks[job.number] = asyncio.create_task(self._follow(job))
        return job

    @property
    def processes(self) -> set[int]:
        """The process ids of the supervisors of running jobs."""
        return {job.process.pid for job in self._jobs.values() if job.status is None}

    async def end(self) -> None:
        """End and forget all jobs."""
        jobs = list(self._jobs.values())
        self._jobs = {}
        for job in jobs:
            if job.status is None and not job.ending:
                job.ending = True
                self._tasks[job.number].cancel()
        for job in jobs:
            await job.ended.wait()

    def all(self) -> list[Job]:
        """The jobs that run, and those whose end has not been read."""
        return list(self._jobs.values())

    def find(self, number: int) -> Job:
        """Return the job. Raises `NoSuchJob`, which lists the existing jobs."""
        if number not in self._jobs:
            there = ", ".join(map(str, self._jobs)) or "none"
            raise NoSuchJob(f"There is no job {number}; there is {there}.")
        return self._jobs[number]

    def forget(self, job: Job) -> bool:
        """Forget a job that ended. Return whether it was the last one."""
        self._jobs.pop(job.number, None)
        return not self._jobs

    async def stop(self, job: Job) -> None:
        """End a job with all its processes, and wait until they are gone."""
        if not job.ending:
            job.ending = True
            self._tasks[job.number].cancel()
        await job.ended.wait()

    async def _follow(self, job: Job) -> None:
        """Keep a job's output, and note its end. Cancelling this ends the job."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        was_stopped = False
        try:
            async for chunk in job.process.output():
                job.unread.feed(decoder.decode(chunk))
        except asyncio.CancelledError:
            was_stopped = True

        job.ending = True
        job.status = await job.process.end()
        job.unread.feed(decoder.decode(b"", final=True))
        del self._tasks[job.number]
        job.ended.set()

        # Who stopped it knows that.
        if not was_stopped:
            self._state.move(BUSY, note=f"job {job.number} ended with exit status {job.exit_status}")
