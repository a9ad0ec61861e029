"""Builds the base image, and prints its name: `python -m iact.sandbox [--from registry|debian] [--rebuild]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect


def main(arguments: Sequence[str] | None = None) -> int:
    """Find or build the image. Return 0, or 1 with one line on stderr."""
    parser = argparse.ArgumentParser(prog="python -m sandbox", description="Builds the sandbox's base image.")
    parser.add_argument("--from", dest="source", choices=("registry", "debian"), default=None)
    parser.add_argument("--rebuild", action="store_true", help="make it anew, with today's packages")
    chosen = parser.parse_args(arguments)
    try:
        with closing(connect()) as client:
            made = image.ensure(client, _print, source=chosen.source, rebuild=chosen.rebuild)
    except SandboxUnavailable as error:
        print(f"iact: {error}", file=sys.stderr)
        return 1
    print(made.reference)
    return 0


def _print(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
