"""`python -m iact` is the command `iact`."""

import atexit
import errno
import gc
import os
import stat
import sys
from contextlib import suppress
from typing import NoReturn

_FIRST = 50_000
"""New objects between two garbage collections. A starting command creates some hundred thousand objects that stay;
collecting every 700 objects, Python's default, took a seventh of the start time."""


def main() -> NoReturn:
    """Run the command of this process, and end the process with its exit status."""
    gc.set_threshold(_FIRST)
    fill_streams()
    from iact.cli import main as command  # imported here because its imports create most of the objects

    leave(command())


def fill_streams() -> None:
    """Open what this process was started without: standard input as one that is empty, outputs as ones that nobody reads.

    Python has None for each, which printing fails at, and the next file that is opened would be that stream for whatever
    this process starts.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until the process ends


def leave(status: int) -> NoReturn:
    """End this process: run the exit handlers, write what was printed, and leave all memory to the system.

    Python would free every object first, which takes a busy machine seconds after everything is done, and would wait for
    threads. Those that still run by now wait for an engine that does not answer, and what they wait for was given up.
    """
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        status = status or 1
    except (OSError, ValueError) as error:
        if not _is_closed_terminal(error):
            status = status or 1
            with suppress(OSError, ValueError):
                print(f"iact: The output can't be written: {error}.", file=sys.stderr)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(status)


def _is_closed_terminal(error: Exception) -> bool:
    """Whether standard output was a terminal that is gone, in which case nobody misses what was not written."""
    if not isinstance(error, OSError) or error.errno != errno.EIO:
        return False
    return stat.S_ISCHR(os.fstat(1).st_mode)


if __name__ == "__main__":
    main()
