"""What is at the other end of standard input and output, for commands that another program starts and talks to."""

from __future__ import annotations

import os
import stat


def connected(descriptor: int) -> bool:
    """Whether another program is at the other end of `descriptor`: it is a pipe or a socket."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
