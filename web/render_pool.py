"""The render processes of a server, and their queue.

Each client has at most one text being rendered (`web.render_cache`), and the queue is first come, first served: so a
client that floods takes one process, and another client's text finds the other one free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final

from iact.core.ports import JSON
from iact.web.render_process import PATIENCE, RenderProcess
from iact.web.render_tasks import DraftQuestion, RenderQuestion

PROCESSES: Final = 2


class RenderPool:
    """A pool of `processes` processes. A thread waits for each, since that is the simplest way to wait for a process.

    They are started by `warm` or by questions, and end with `close` or with this process, however it ends.
    """

    def __init__(self, *, processes: int = PROCESSES, patience: float = PATIENCE) -> None:
        self._all = [RenderProcess(patience=patience) for _ in range(processes)]
        self._free: SimpleQueue[RenderProcess] = SimpleQueue()
        for process in self._all:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="iact-render")
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The process ids of the living ones."""
        return frozenset(process.pid for process in self._all if process.pid is not None)

    def warm(self) -> None:
        """Begin to start the processes; returns at once."""
        if not self._closed and len(self.pids) < len(self._all):
            for _ in self._all:
                self._threads.submit(self._start)

    async def render(self, question: RenderQuestion | DraftQuestion) -> Mapping[str, JSON] | None:
        """The answer, or None if there was none in time."""
        if self._closed:
            return None
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._render, question)

    def close(self) -> None:
        """End all processes, leaving nothing behind."""
        self._closed = True
        for process in self._all:
            process.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._all:
            process.reap()

    def _render(self, question: RenderQuestion | DraftQuestion) -> Mapping[str, JSON] | None:
        process = self._free.get()
        try:
            return process.render(question)
        finally:
            self._free.put(process)

    def _start(self) -> None:
        # First in, first out, so each process is taken once.
        process = self._free.get()
        try:
            process.start()
        finally:
            self._free.put(process)
