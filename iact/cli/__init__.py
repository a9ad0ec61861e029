"""The command line: one function per command, errors as one line on stderr.

Exit status: 0 done, 1 failed, 2 wrong usage; of work on a goal also 3 reached in part, or not known whether, 4 not reached,
5 stopped by a person or a bound.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from iact import terminal
from iact.cli.options import Chosen
from iact.cli.program import program
from iact.core.errors import IactError, UsageError, lone
from iact.signals import ENDING

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)

__all__ = ["main", "parse", "program"]


def parse(arguments: Sequence[str] | None = None) -> Chosen | int:
    """Parse a command line. Returns an exit status if it only asked for help or completion.

    Raises:
        click.UsageError: the command line is invalid.
    """
    chosen: Chosen | int = program.main(arguments, prog_name="iact", standalone_mode=False)
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    with terminal.clean():
        try:
            chosen = parse(arguments)
        except click.UsageError as error:
            print(_wrong(error), file=sys.stderr)
            return 2
        except click.Abort:
            return 130
        except OSError as error:  # help and the like print while they are parsed
            print(f"iact: {_sentence(error, None)}", file=sys.stderr)
            return 1
    if isinstance(chosen, int):
        return chosen
    with terminal.clean(json=chosen.as_json):
        return _run(chosen)


def _wrong(error: click.UsageError) -> str:
    """The message for an invalid command line, with a pointer to the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    said = error.format_message().strip()
    said = said if said.endswith((".", "?")) else f"{said}."
    return f"iact: {said} See: {error.ctx.command_path if error.ctx else 'iact'} --help"


def _run(chosen: Chosen) -> int:
    ENDING.begin()
    from iact import logs  # imported late: help and completion need none of these
    from iact.settings import load
    from iact.shared_files import shared_files

    settings = None
    try:
        settings = load(data=chosen.data)
        logs.begin(settings.log, settings.log_format)
        try:
            with shared_files(settings):
                return chosen.run(settings)
        except BaseExceptionGroup as group:
            raise lone(group) from group
    except KeyboardInterrupt:
        return 128 + (ENDING.number or signal.SIGINT)
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
        print(f"iact: {_sentence(error, None if settings is None else settings.data)}", file=sys.stderr)
        return 1


def _sentence(error: Exception, data: Path | None) -> str:
    """What happened and what to do, of an error that no part of the program expected. `data`: the data directory."""
    if isinstance(error, OSError) and error.errno in _FULL:
        where = f" ({error.filename})" if error.filename else ""
        return f"The disk is full{where}. Free some space, and start it again."

    file = error.filename if isinstance(error, OSError) else None
    if isinstance(error, OSError) and error.errno in _FORBIDDEN and isinstance(file, str | os.PathLike):
        in_data = data is not None and Path(file).is_relative_to(data)
        remedy = (
            f" Make the data directory {data} writable, or choose another one with --data." if in_data else ""
        )
        return f"{os.fspath(file)} can't be used: {error.strerror}.{remedy}"

    return f"an internal error ({type(error).__name__}: {error}). Run it again with --debug to see where."
