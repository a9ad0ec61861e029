"""The blobs next to a journal: large contents, each in a file that is named by its SHA-256.

A journal may come from anywhere, so a reader limits what it reads. If a blob is missing or damaged, only that blob is
lost. Importing this module loads nothing else (see `core.views.text`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from iact.core.errors import JournalError
from iact.core.journal.file import read_blob


def blob_reader(folder: Path) -> Callable[[str], bytes]:
    """A function that reads the blobs of the session in `folder` by their SHA-256. It raises JournalError for one that
    can't be read."""
    return partial(read_blob, folder)


def blob(folder: Path, digest: str, *, most: int) -> bytes | None:
    """Read one blob; None if it is missing, damaged or larger than `most` bytes."""
    try:
        if (folder / "blobs" / digest).stat().st_size > most:
            return None
        return read_blob(folder, digest)
    except (JournalError, OSError):
        return None
