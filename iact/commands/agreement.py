"""Asks a person at the terminal to agree to what a command has just shown, or says how to agree without one."""

from __future__ import annotations

import sys

from iact.core.errors import UsageError

_YES = frozenset({"y", "yes"})


def agreed(question: str, digest: str) -> bool:
    """Ask about what was just printed. Returns whether the person agrees; anything but a clear yes is a no.

    The digest is printed before the question, so that a program can show now and agree later.

    Raises:
        UsageError: there is no terminal to ask at.
    """
    print(f"digest {digest}", file=sys.stderr, flush=True)
    if not sys.stdin.isatty():
        raise UsageError(
            "There is no terminal to ask at. If you agree to what is printed above, give the command again with "
            f"--digest {digest}"
        )

    print(f"{question} [y]es, [N]o: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in _YES
