"""The command line: one parser, one function per command, errors as one line on stderr.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 a plan that came back partial.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Sequence

from iact import terminal
from iact.cli.options import Command
from iact.cli.parser import build_parser
from iact.core.errors import IactError, UsageError, lone

__all__ = ["build_parser", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; gives the exit status."""
    with terminal.clean():
        parser = build_parser()
        chosen = parser.parse_args(arguments)
    with terminal.clean(json=getattr(chosen, "json", False)):
        return _run(chosen)


def _run(chosen: argparse.Namespace) -> int:
    # A shell that starts us in the background has us ignore SIGINT; whoever sends one all the same means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from iact.settings import load  # only now: neither help nor completion needs it

    try:
        settings = load(data=chosen.data)
        logging.basicConfig(
            level=settings.log.upper(), format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
        )
        command: Command = chosen.command
        try:
            return command(chosen, settings)
        except BaseExceptionGroup as group:
            raise lone(group) from group
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except IactError as error:
        if chosen.debug:
            raise
        print(f"iact: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except Exception as error:
        if chosen.debug:
            raise
        print(
            f"iact: an internal error ({type(error).__name__}: {error}); --debug shows where.",
            file=sys.stderr,
        )
        return 1
