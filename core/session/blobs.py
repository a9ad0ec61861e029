"""What lies beside a journal: large contents, each in a file that is named by its SHA-256.

A journal may come from anywhere, so a reader bounds what it takes, and a blob that is missing or damaged costs the
reader that blob alone. Nothing else is loaded with this file (see `core.session.text`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from iact.core.errors import JournalError
from iact.core.journal.file import read_blob


def blob_reader(folder: Path) -> Callable[[str], bytes]:
    """Reads the blobs of the session in `folder` by their SHA-256; raises JournalError for one that can't be had."""
    return partial(read_blob, folder)


def blob(folder: Path, digest: str, *, most: int) -> bytes | None:
    """One blob; None if it is missing, damaged or larger than `most` bytes."""
    try:
        if (folder / "blobs" / digest).stat().st_size > most:
            return None
        return read_blob(folder, digest)
    except (JournalError, OSError):
        return None
