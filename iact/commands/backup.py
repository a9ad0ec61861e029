"""`iact backup` and `iact restore`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from iact.backup import Tell, read_backup, write_backup
from iact.settings import Settings

_EACH: Final = 1.0
"""Seconds between two lines about how far it is."""


def back_up(settings: Settings, target: Path) -> int:
    """Write all of the data directory into a file."""
    left_out = write_backup(settings.data, target, _progress())
    print(
        f"{target} holds all of {settings.data}, also its keys and secrets. Keep it where nobody else can read it."
    )
    if left_out:
        print(f"Links that lead out of the data directory are not in it: {left_out}.", file=sys.stderr)
    if settings.accounts_url is not None:
        print("The accounts are in PostgreSQL and not in it; back them up with pg_dump.", file=sys.stderr)
    if settings.store is not None:
        print(f"Sessions are in {settings.store} and not in it.", file=sys.stderr)
    return 0


def restore(settings: Settings, source: Path) -> int:
    """Make the data directory of a backup."""
    read_backup(source, settings.data, _progress())
    print(
        f"{settings.data} is restored. Start iact serve on it; iact memory rebuild makes what is remembered anew."
    )
    return 0


def _progress() -> Tell:
    last = time.monotonic()

    def tell(files: int, size: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _EACH:
            last = now
            print(f"{files:,} files, {size / 1e6:,.0f} MB", file=sys.stderr, flush=True)

    return tell
