"""The cost of hosts and a gateway, and the gain of more hosts: `python -m benchmarks.hosts [--messages N]`.

Real processes: hosts with a directory as their store, a gateway, and users at websockets. The model is scripted.

- A message through the gateway: the processor time of the gateway's process, less what it uses in the same time without
  messages, divided by the messages that it passed on. This is all that a gateway adds, because the host does the same
  work for it as for a browser.
- A session of a host: the growth of the host's resident memory from one open session to many, per session.
- One, two and three hosts with a slow model: answers per second, with the same number of users for each host.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks import kept
from benchmarks.kept import Target
from tests.acceptance.crowd import crowd
from tests.acceptance.test_cluster import Cluster, cluster, greeted, said
from tests.endpoint import Endpoint, Reply

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SECONDS: Final = 20.0
"""The seconds for which answers are counted."""
_PEOPLE: Final = 8
"""Users for each host."""
_BETWEEN: Final = 0.04
"""Seconds between two messages. A host refuses a client that sends faster."""
_DELAY: Final = 1.0
"""Seconds until the model begins to answer."""


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident_kilobytes(pid: int) -> int:
    """The resident memory of a process, including shared pages."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return int(next(one for one in lines if one.startswith("VmRSS:")).split()[1])


def _quick() -> Endpoint:
    return Endpoint({"/": [Reply("Yes.", repeat=True)]}, crashes=True)


def _messages(folder: Path, count: int) -> float:
    """Milliseconds of processor time for a message that the gateway passes on."""
    with _quick() as endpoint, cluster(folder, endpoint, "a") as hosts, hosts.gateway() as server:
        socket = greeted(hosts, server, None)
        said(socket, "First")

        def ask(times: int) -> int:
            """Send `times` questions to the host. Returns how many frames were passed on."""
            passed = 0
            for number in range(times):
                time.sleep(_BETWEEN)
                socket.send(json.dumps({"type": "source", "n": 1, "id": number}))
                while True:
                    passed += 1
                    if json.loads(socket.recv(timeout=60)).get("id") == number:
                        break
            return passed + times

        ask(50)
        pid = server.process.pid
        began, before = time.monotonic(), processor_seconds(pid)
        passed = ask(count)
        spent, used = time.monotonic() - began, processor_seconds(pid) - before
        before = processor_seconds(pid)
        time.sleep(spent)  # the gateway's work without messages: it checks which hosts exist
        return (used - (processor_seconds(pid) - before)) * 1000 / passed


def _sessions(folder: Path, count: int) -> float:
    """Kilobytes of a host for each open session, after one message and its answer."""
    with _quick() as endpoint, cluster(folder, endpoint, "a") as hosts, hosts.gateway() as server:
        host = hosts.hosts["a"].pid

        def open_more(times: int) -> None:
            for _ in range(times):
                with server.connect() as socket:
                    socket.send(json.dumps({"type": "hello", "session": None, "since": 0}))
                    said(socket, "First")

        open_more(5)
        before = resident_kilobytes(host)
        open_more(count)
        return (resident_kilobytes(host) - before) / count


async def _answers(hosts: Cluster, number: int) -> tuple[float, float]:
    """Answers per second, and the processors that hosts and gateway used meanwhile."""
    with hosts.gateway() as server:
        async with crowd([server], _PEOPLE * number) as people:
            pids = [server.process.pid, *(one.pid for one in hosts.hosts.values())]
            began, used = time.monotonic(), sum(map(processor_seconds, pids))
            await asyncio.sleep(_SECONDS)
            spent, used = time.monotonic() - began, sum(map(processor_seconds, pids)) - used
            counted = sum(one >= began for person in people for one in person.answered)
    return counted / spent, used / spent


def _throughput(folder: Path, number: int) -> tuple[float, float]:
    slow = Endpoint({"/": [Reply("Yes.", first_delay=_DELAY, repeat=True)]}, crashes=True)
    with slow as endpoint, cluster(folder, endpoint, *"abc"[:number]) as hosts:
        return asyncio.run(_answers(hosts, number))


def main(arguments: Sequence[str]) -> None:
    """Measure and print a report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500)
    parser.add_argument("--sessions", type=int, default=200)
    chosen = parser.parse_args(arguments)
    with ExitStack() as folders:

        def folder() -> Path:
            return Path(folders.enter_context(tempfile.TemporaryDirectory()))

        message = _messages(folder(), chosen.messages)
        session = _sessions(folder(), chosen.sessions)
        rates = {number: _throughput(folder(), number) for number in (1, 2, 3)}
    one, _ = rates[1]
    kept.table(
        ("hosts", "people", "answers a second", "of linear", "processors in use"),
        [
            [str(number), str(number * _PEOPLE), f"{rate:.2f}", f"{rate / (one * number):.2f}", f"{used:.2f}"]
            for number, (rate, used) in rates.items()
        ],
    )
    kept.targets([
        Target("processor time of a message through a gateway", message, 0.3, "ms"),
        Target("memory of a host for each open session", session, None, "kB"),
        *(
            Target(f"answers a second of {number} hosts, of linear", rates[number][0] / (one * number), 0.95, most=False)
            for number in (2, 3)
        ),
    ])  # fmt: skip
    kept.numbers({
        "message_ms": message,
        "session_kilobytes": session,
        "hosts": {str(number): {"answers": rate, "processors": used} for number, (rate, used) in rates.items()},
    })  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
