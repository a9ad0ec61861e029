"""What is known of a session beside its journal: the name that a person gave it, whether it is pinned, its source.

It is one small file in the session's directory. Nothing depends on it but how lists show the session: it is no record,
gives nobody any right, and a session without it, or with one that can't be read, is shown by its first message.
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
"""Characters of a name."""
_MOST: Final = 16_384
"""Bytes of such a file that are read."""


@dataclass(frozen=True, slots=True)
class About:
    """`title`: the name that a person gave it, empty for none. `source`, `at`: the session and its last record that a
    fork shares; empty and 0 for others."""

    title: str = ""
    pinned: bool = False
    source: str = ""
    at: int = 0


NOTHING: Final = About()


def read_about(directory: Path) -> About:
    """Of the session in `directory`; nothing if there is no such file, or none that can be read."""
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
    """Keep it, whole or not at all; a session of which nothing is known has no such file.

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
            f"The name of the session can't be kept in {directory}: {error.strerror}."
        ) from error


def title_of(text: str) -> str:
    """A name that a person gives, in one line; empty to take it away.

    Raises:
        UsageError: it is too long.
    """
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    if len(line) > LONGEST:
        raise UsageError(f"A session's name has at most {LONGEST} characters, and this one has {len(line)}.")
    return line


def _line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())[:LONGEST]
