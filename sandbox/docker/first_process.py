"""The first process of a module's container: it ends the container when its owner is gone. Run by `python3 -c`.

The owner connects to a socket that this process listens on, and keeps the connection for as long as the container may
run: its lease. However the owner ends, its kernel closes the connection. Where the engine shares no sockets, the lease
is this process's standard input, which the engine closes with its connection to the owner. The module is started only
once there is a lease, so that it can't take one in place of the owner. It can't stop or kill this process either,
because the first process of a PID namespace gets no such signal from inside. When this process ends, the kernel kills
everything in the container.

Apart from that it does what every first process has to: it passes signals on, reaps orphans, and ends with the status
of its child. It imports nothing that is slow to load.
"""

import contextlib
import os
import select
import signal
import socket
import sys

WAITS = 10.0
"""Seconds for the owner to take the lease."""
TAKEN = b"+"
"""Tells the owner that it has the lease; or tells this process so, where the lease is its standard input."""
INPUT = "-"
"""In place of the socket: the lease is the standard input."""
_ENDED = 128 + signal.SIGTERM
"""The status of a container that was ended, because nobody holds a lease on it."""
_NOT_STARTED = 127
_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_DUMPABLE = 4


def main(place: str, command: list[str]) -> int:
    """Run `command` while somebody holds the lease at `place`; return the status of the container.

    `place`: the path of a socket, or `INPUT`.
    """
    hide()
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for handled in (*_PASSED_ON, signal.SIGCHLD):
        signal.signal(handled, lambda number, frame: None)  # which number it was, is read from the pipe

    lease = lent_as_input(woken) if place == INPUT else lent(place, woken)
    if lease is None:
        return _ENDED
    child = started(command)
    while True:
        ready, _, _ = select.select([lease, woken], [], [])
        if lease in ready and not still_held(lease):
            # Without a word: the module may have filled the pipe of its output, and nobody is there to read it.
            return _ENDED
        if woken in ready:
            for number in os.read(woken, 4096):
                if number != signal.SIGCHLD:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, number)
            status = reaped(child)
            if status is not None:
                return status


def hide() -> None:
    """Keep processes of the same user from this process's memory and descriptors."""
    with contextlib.suppress(ImportError, OSError):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def lent(place: str, woken: int) -> int | None:
    """Wait for the lease. None: nobody took it in time, or the container is to end."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen(1)
        if not taken(listening.fileno(), woken):
            return None
        lease, _ = listening.accept()
    with contextlib.suppress(OSError):
        os.unlink(place)  # after the end of the listening: gVisor connects nobody to a socket without a name
    with contextlib.suppress(OSError):
        lease.sendall(TAKEN)
    lease.setblocking(False)
    return lease.detach()


def lent_as_input(woken: int) -> int | None:
    """Likewise, where the lease is the standard input, which nothing else gets from here on."""
    lease = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    if not taken(lease, woken) or os.read(lease, len(TAKEN)) != TAKEN:
        return None
    os.set_blocking(lease, False)
    return lease


def taken(place: int, woken: int) -> bool:
    """Wait until somebody is heard at the descriptor `place`. False: nobody in time, or the container is to end."""
    ready, _, _ = select.select([place, woken], [], [], WAITS)
    if not ready:
        print(f"No program took the lease of this container within {WAITS:.0f} seconds.", file=sys.stderr)
    return ready == [place]


def still_held(lease: int) -> bool:
    """Whether the owner still has its end. What it sends means nothing."""
    try:
        return os.read(lease, 4096) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def started(command: list[str]) -> int:
    """Start the module, with the signals as a program expects them. Return its number."""
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program inherits that
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]} can't be started: {error.strerror}", file=sys.stderr)
    finally:
        os._exit(_NOT_STARTED)


def reaped(child: int) -> int | None:
    """Reap what has ended. Return the status of `child` if that is among it."""
    found = None
    while True:
        try:
            process, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if process == 0:
            return found
        if process == child:
            code = os.waitstatus_to_exitcode(how)
            found = code if code >= 0 else 128 - code


if __name__ == "__main__":
    ended = main(sys.argv[1], sys.argv[2:])
    sys.stderr.flush()
    os._exit(ended)
