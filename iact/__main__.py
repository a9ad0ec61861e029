"""`python -m iact` is the command `iact`."""

import gc
import sys

_FIRST = 50_000
"""New objects between two garbage collections. A starting command creates some hundred thousand objects that stay;
collecting every 700 objects, Python's default, took a seventh of the start time."""


def main() -> int:
    """Run the command of this process and return the exit status."""
    gc.set_threshold(_FIRST)
    from iact.cli import main as command  # imported here because its imports create most of the objects

    return command()


if __name__ == "__main__":
    sys.exit(main())
