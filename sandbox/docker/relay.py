"""Connects standard input and output to a unix socket: the inner end of `stdio`. Its text is run by `python3 -c`.

It runs inside a module's container, so it is as untrusted as the module. It imports nothing that is slow to load.
"""

import os
import select
import socket
import sys


def main(path: str) -> None:
    """Forward bytes until the socket has no more."""
    with socket.socket(socket.AF_UNIX) as far:
        far.connect(path)
        open_ends = {0, far.fileno()}
        while far.fileno() in open_ends:
            for ready in select.select(list(open_ends), [], [])[0]:
                data = os.read(ready, 65536)
                if not data:
                    open_ends.discard(ready)
                if ready != 0:
                    write(data)
                elif data:
                    far.sendall(data)
                else:
                    far.shutdown(socket.SHUT_WR)


def write(data: bytes) -> None:
    """Write everything to standard output."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main(sys.argv[1])
