"""`python -m iact` is the command `iact`."""

import gc
import sys

_FIRST = 50_000
"""New objects between two looks for cycles. While a command starts it makes some hundred thousand that stay; to look
at them again and again, every 700 as Python has it, took a seventh of the time until it was ready."""


def main() -> int:
    """Run the command of this process; gives the exit status."""
    gc.set_threshold(_FIRST)
    from iact.cli import main as command  # only now: its imports are what makes most of the objects

    return command()


if __name__ == "__main__":
    sys.exit(main())
