"""`iact backup` and `iact restore`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

from iact.backup import Tell, read_backup, write_backup
from iact.settings import Settings

_EACH: Final = 1.0
"""Seconds between two progress lines."""


def back_up(settings: Settings, target: Path) -> int:
    """Write the whole data directory to a file."""
    left_out = write_backup(settings.data, target, _progress())
    print(
        f"{target} contains all of {settings.data}, including its keys and secrets. Keep it where no one else can read it."
    )
    if left_out:
        print(f"Not in the backup: {left_out} links that point outside the data directory.", file=sys.stderr)
    if settings.accounts_url is not None:
        print(
            "The accounts are in PostgreSQL, not in the backup. Back them up with pg_dump.", file=sys.stderr
        )
    if settings.store is not None:
        print(f"Sessions are in {settings.store}, not in the backup.", file=sys.stderr)
    return 0


def restore(settings: Settings, source: Path) -> int:
    """Restore the data directory from a backup."""
    read_backup(source, settings.data, _progress())
    print(
        f"{settings.data} is restored. Start iact serve on it, and rebuild the memory with: iact memory rebuild"
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
