"""A person's decisions about memories: which are forgotten, and which have a new text.

Journals don't contain them, so a rebuild consults this list. For a forgotten fragment its record's id is kept, and
nothing of its text. If an edited fragment is forgotten later, the edit is removed as well. An edit keeps nothing of the
old text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from iact.core import whole_file
from iact.core.errors import MemoryUnavailable
from iact.core.ports import Clock
from iact.hippocampus.fragment import Fragment

FILE: Final = "decisions.json"


class Decisions:
    """Read once, and written as a whole, atomically, at every change.

    They are stored in memory's own directory, with a copy in the directory `beside`: memory is an index that can be
    lost and rebuilt, and a forgotten memory must not come back in a rebuild.
    """

    def __init__(self, directory: Path, beside: Path | None = None, *, clock: Clock) -> None:
        """Raises MemoryUnavailable if the decisions can't be read."""
        self._places = [place / FILE for place in (directory, beside) if place is not None]
        self._clock = clock
        self._forgotten: dict[str, str] = {}
        self._edited: dict[str, str] = {}
        found = [self._read(place) for place in self._places]
        if self._decided and not all(found):
            self._write()

    @property
    def _decided(self) -> bool:
        return bool(self._forgotten or self._edited)

    def forgotten(self, fragment: Fragment) -> bool:
        """Whether the fragment, or one that it was made from, was forgotten."""
        return not self._forgotten.keys().isdisjoint(map(origin, (fragment.id, *fragment.sources)))

    def text(self, fragment: Fragment) -> str:
        """The fragment's current text; empty if an edit of its record left nothing of it."""
        return self._edited.get(fragment.id, fragment.text)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget everything that came from the records of these fragments, for good."""
        now = self._clock.now().isoformat(timespec="seconds")
        self._forgotten = {**dict.fromkeys(map(origin, ids), now), **self._forgotten}
        self._edited = {key: text for key, text in self._edited.items() if origin(key) not in self._forgotten}
        self._write()

    def edit(self, texts: Mapping[str, str]) -> None:
        """Change the texts of the fragments with these ids."""
        self._edited.update(texts)
        self._write()

    def drop(self, sessions: Iterable[str]) -> None:
        """Remove all decisions about memories of these sessions."""
        gone = set(sessions)
        kept = {key: at for key, at in self._forgotten.items() if _session(key) not in gone}
        edited = {key: text for key, text in self._edited.items() if _session(key) not in gone}
        if (len(kept), len(edited)) != (len(self._forgotten), len(self._edited)):
            self._forgotten, self._edited = kept, edited
            self._write()

    def _read(self, path: Path) -> bool:
        """Read the decisions in a file. Return whether it exists."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            forgotten = found["forgotten"]
            if isinstance(forgotten, list):  # an older format, without the times
                forgotten = dict.fromkeys(forgotten, "")
            self._forgotten |= {str(one): str(at) for one, at in forgotten.items()}
            self._edited |= {str(key): str(text) for key, text in found["edited"].items()}
        except FileNotFoundError:
            return False
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise MemoryUnavailable(
                f"The list of forgotten memories can't be read from {path}: {error}. Memory stays "
                "off, so that no forgotten memory comes back. Restore the file, or remove it to "
                "start with an empty list."
            ) from error
        return True

    def _write(self) -> None:
        text = json.dumps(
            {"forgotten": dict(sorted(self._forgotten.items())), "edited": self._edited},
            ensure_ascii=False,
            indent=1,
        )
        for path in self._places:
            _replace(path, text)


def _replace(path: Path, text: str) -> None:
    try:
        whole_file.replace(path, text.encode())
    except OSError as error:
        raise MemoryUnavailable(
            f"The list of forgotten memories can't be written to {path}: {error.strerror}. Free some "
            "disk space, or make the directory writable."
        ) from error


def origin(identity: str) -> str:
    """The origin of a fragment: its record's id, or, for a consolidated fragment, its own id."""
    session, slash, number = identity.rpartition("/")
    return f"{session}{slash}{number.split('.')[0]}"


def _session(identity: str) -> str:
    """The session of a fragment, or of its record."""
    return identity.partition("/")[0]
