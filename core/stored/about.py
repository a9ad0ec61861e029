"""What is known about a session outside its journal: its name, whether it is pinned, and where it comes from.

It is a small file in the session's directory. Only the display of sessions in lists depends on it: it is not a record
and grants no rights. A session without a readable file is listed by its first message.
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from iact.core.errors import JournalUnwritable, UsageError
from iact.core.journal.file import open_regular, sync_directory

FILE: Final = "about.json"
LONGEST: Final = 200
"""The maximum length of a name, in characters."""
_MOST: Final = 16_384
"""How many bytes of the file are read at most."""


@dataclass(frozen=True, slots=True)
class About:
    """`title`: the name that a person gave the session, or empty. `source`, `at`: the session that it was forked from
    and the last record that both share, or empty and 0."""

    title: str = ""
    pinned: bool = False
    source: str = ""
    at: int = 0


NOTHING: Final = About()


def read_about(directory: Path) -> About:
    """Read what is known about the session in `directory`. Nothing if the file is missing or unreadable."""
    try:
        with open_regular(directory / FILE) as stream:
            found = json.loads(stream.read(_MOST))
    except (OSError, ValueError, RecursionError):
        return NOTHING
    if not isinstance(found, dict):
        return NOTHING
    title, source, at = found.get("title"), found.get("source"), found.get("at")
    return About(
        title=_line(title) if isinstance(title, str) else "",
        pinned=found.get("pinned") is True,
        source=source[:LONGEST] if isinstance(source, str) else "",
        at=at if isinstance(at, int) else 0,
    )


def write_about(directory: Path, about: About) -> None:
    """Write the file atomically. If nothing is known about the session, remove the file.

    Raises:
        JournalUnwritable: it can't be written.
    """
    file = directory / FILE
    said = {name: value for name, value in asdict(about).items() if value}
    try:
        if not said:
            file.unlink(missing_ok=True)
        else:
            draft = directory / f".{FILE}-{secrets.token_hex(4)}"
            try:
                with draft.open("x", encoding="utf-8") as stream:
                    os.fchmod(stream.fileno(), 0o600)
                    stream.write(json.dumps(said, ensure_ascii=False) + "\n")
                    stream.flush()
                    os.fsync(stream.fileno())
                draft.replace(file)
            finally:
                draft.unlink(missing_ok=True)
        sync_directory(directory)
    except OSError as error:
        raise JournalUnwritable(
            f"The name of the session can't be stored in {directory}: {error.strerror}."
        ) from error


def title_of(text: str) -> str:
    """Normalize the name that a person gives to one line; an empty text removes the name.

    Raises:
        UsageError: it is too long.
    """
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    if len(line) > LONGEST:
        raise UsageError(f"A session's name has at most {LONGEST} characters, and this one has {len(line)}.")
    return line


def _line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())[:LONGEST]
