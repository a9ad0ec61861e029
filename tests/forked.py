"""`python -I -S forked.py ADDRESS ARGUMENT…`: represents a fork of the program that `tests.command` has at ADDRESS.

The fork gets its standard streams, environment, working directory and arguments. Signals are forwarded to the fork, and
this process ends as the fork does. If it is killed, the fork is killed a moment later. Its process name contains the
fork's id. It imports little, so that it starts fast.
"""

import json
import os
import signal
import socket
import sys


def main() -> None:
    address, *arguments = sys.argv[1:]
    reads, told = os.pipe()
    request = {"arguments": arguments, "environment": dict(os.environ), "cwd": os.getcwd()}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as line:
        line.connect(f"\0{address}")
        socket.send_fds(line, [json.dumps(request).encode()], [0, 1, 2, told])
    os.close(told)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)  # a stream that is closed here is closed in the fork
    with os.fdopen(reads, "rb", 0) as tells:
        child = int(tells.readline())
        with open("/proc/self/comm", "w") as name:
            name.write(f"for {child}")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: os.kill(child, number))
        code = os.waitstatus_to_exitcode(int(tells.readline()))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


main()
