"""Starts one command and makes sure that no process of it remains: `supervisor.py CONTROL REPORT COMMAND...`.

A process can leave its group and its session, and clear its environment, but it cannot leave its ancestry: as a child
subreaper, this process inherits every orphan among its descendants. When the command ends, or when CONTROL is closed,
it stops them all first, so that a fork bomb can't outrun it, then kills them, and writes {"status", "left"} to REPORT.
`status`: exit status, or the negative signal number; `left`: how many processes could not be killed.

When memory runs out, the kernel kills the children first, not this process or the server.

Runs under `python3 -I -S`, on its own: it imports nothing that is slow to load.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
KILL_WITHIN = 5.0
"""Seconds after which it gives up on processes that can't be killed (in a hung system call)."""


def descendants(root: int) -> set[int]:
    """Process ids of all descendants of `root`, from /proc, without zombies."""
    children = _children()
    below: set[int] = set()
    waiting = [root]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in below]
        below.update(new)
        waiting.extend(new)
    return below


def _children() -> dict[int, list[int]]:
    """The children of each process, without zombies, which no longer have any."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # Behind the program's name, which may contain anything.
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue

        if state not in (b"Z", b"X"):
            children.setdefault(int(parent), []).append(int(entry))
    return children


def send(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to all of them, ignoring those that are gone."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def end_all() -> int:
    """Kill every descendant and reap it. Return how many are left."""
    deadline = time.monotonic() + KILL_WITHIN
    while not _reaped():
        # All are stopped before any is killed, so that none can start others meanwhile.
        stopped: set[int] = set()
        while (running := descendants(os.getpid()) - stopped) and time.monotonic() < deadline:
            send(running, signal.SIGSTOP)
            stopped |= running
        send(stopped, signal.SIGKILL)

        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    return len(descendants(os.getpid()))


def _reaped() -> bool:
    """Reap ended children. Return whether no child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False


def start(command: list[str]) -> int:
    """Run `command` in its own session. Return its process id."""
    pid = os.fork()
    if pid:
        return pid

    # In the child. What it can't set up is no reason not to run.
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass

    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def wait(main: int, control: int, wake: int) -> int | None:
    """Wait for the command or for CONTROL. Return the status, or None if the command was cut short."""
    while True:
        ready, _, _ = select.select([control, wake], [], [])
        if wake in ready:
            # Some children have ended; orphans that were inherited are reaped as well.
            os.read(wake, 512)
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == main:
                    return os.waitstatus_to_exitcode(status)
                if pid == 0:
                    break

        if control in ready:
            return None


def main() -> None:
    control = int(sys.argv[1])
    report = int(sys.argv[2])
    command = sys.argv[3:]
    for descriptor in (control, report):
        fcntl.fcntl(descriptor, fcntl.F_SETFD, fcntl.FD_CLOEXEC)

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)

    # Before there is a child: each end of one makes `wake` readable.
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    pid = start(command)

    # The reader of the command's output waits until no process holds the output open.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)

    status = wait(pid, control, wake)
    left = end_all()
    os.write(report, json.dumps({"status": status, "left": left}).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
