"""What a person decided about memories: which are forgotten, which read differently.

Journals don't know of it, so a rebuild asks here. A forgotten fragment leaves its record's id and nothing
of its text; an edit of something forgotten later goes with it, and an edit keeps nothing of the old text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from core.errors import MemoryUnavailable
from hippocampus.fragment import Fragment

FILE: Final = "decisions.json"


class Decisions:
    """Read once, written whole and atomically at every change."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._forgotten: set[str] = set()
        self._edited: dict[str, str] = {}
        self._read()

    def forgotten(self, fragment: Fragment) -> bool:
        """Whether the fragment, or one that it was made of, was forgotten."""
        return not self._forgotten.isdisjoint(map(origin, (fragment.id, *fragment.sources)))

    def text(self, fragment: Fragment) -> str:
        """How the fragment reads now; empty if an edit of its record left nothing of it."""
        return self._edited.get(fragment.id, fragment.text)

    def forget(self, ids: Iterable[str]) -> None:
        """Never again: everything that came from the records of these fragments."""
        self._forgotten.update(map(origin, ids))
        self._edited = {key: text for key, text in self._edited.items() if origin(key) not in self._forgotten}
        self._write()

    def edit(self, texts: Mapping[str, str]) -> None:
        """From now on the fragments with these ids read so."""
        self._edited.update(texts)
        self._write()

    def _read(self) -> None:
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            self._forgotten = set(map(str, found["forgotten"]))
            self._edited = {str(key): str(text) for key, text in found["edited"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MemoryUnavailable(
                f"The list of what was forgotten can't be read from {self._path}: {error}. Memory stays off, so that "
                "nothing forgotten comes back; restore the file, or remove it to start with an empty list."
            ) from error

    def _write(self) -> None:
        text = json.dumps(
            {"forgotten": sorted(self._forgotten), "edited": self._edited}, ensure_ascii=False, indent=1
        )
        fresh = self._path.with_suffix(".new")
        try:
            with fresh.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(self._path)
        except OSError as error:
            raise MemoryUnavailable(
                f"What is to be forgotten can't be written to {self._path}: {error.strerror}. "
                "Make room on the disk, or make the directory writable."
            ) from error


def origin(identity: str) -> str:
    """What a fragment came from: its record, for the parts of one; itself, for a consolidated one."""
    session, slash, number = identity.rpartition("/")
    return f"{session}{slash}{number.split('.')[0]}"
