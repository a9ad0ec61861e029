"""`python -I -S forked.py ADDRESS ARGUMENT…`: stands for a fork of the program that `tests.command` has at ADDRESS.

Its standard streams, environment, working directory and arguments are the fork's; signals that it gets go to the fork,
and it ends as the fork does. If it is killed, so is the fork, a moment later; which one it is stands in its name. It imports little: that is what it is for.
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
        os.dup2(nothing, stream)  # what is closed there is closed
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
