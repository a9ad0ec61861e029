"""Ten thousand connections to a port, as a process of its own: python -m tests.web.flood PORT

As many are held open at a time as this process may have. When all were opened it says `held N`, and lets go
when something comes on its standard input. Needs nothing but the standard library.
"""

from __future__ import annotations

import resource
import socket
import struct
import sys
from collections import deque
from contextlib import suppress
from typing import Final

CONNECTIONS: Final = 10_000
BURST: Final = 50
"""Opened without waiting: fewer than a listening socket queues, since what it drops is tried again a second later."""

MOST: Final = 3_000
SPARE: Final = 100
STRANGER: Final = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
BEGINNINGS: Final = (
    b"",
    b"GET / HTTP/1.1\r\nHost: ",
    STRANGER,
    b"\x00\xff\x16\x03",
    b"POST /ws HTTP/1.1\r\n",
)
RESET: Final = struct.pack("ii", 1, 0)


def opened(port: int, first: bytes) -> socket.socket:
    """A connection on which `first` was sent, if there was still somebody to take it."""
    one = socket.create_connection(("127.0.0.1", port), timeout=60)
    with suppress(OSError):
        one.sendall(first)
    return one


def answered(one: socket.socket) -> None:
    """Wait until the server closes a connection, and with that, until it has taken all that came before."""
    with one, suppress(ConnectionError):
        while one.recv(65536):
            pass


def flood(port: int) -> deque[socket.socket]:
    """Open them all; gives those that are still held."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard - SPARE)
    held: deque[socket.socket] = deque()
    for number in range(1, CONNECTIONS + 1):
        if number % BURST == 0:
            answered(opened(port, STRANGER))
            continue
        held.append(opened(port, BEGINNINGS[number % len(BEGINNINGS)]))
        if len(held) > most:
            oldest = held.popleft()
            if number % 2:
                oldest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            oldest.close()
    return held


if __name__ == "__main__":
    kept = flood(int(sys.argv[1]))
    print(f"held {len(kept)}", flush=True)
    sys.stdin.readline()
