"""A person's decisions about statements: which are forgotten, and which have a new text.

Journals don't contain them, so a rebuild consults this list. Of a forgotten statement its place is kept (its session,
record and number there), and nothing of its text. If an edited statement is forgotten later, the edit is removed as well.
An edit keeps nothing of the old text.

Lists of older versions name whole records, which stay forgotten as such. Their edits were of messages, and
what was edited counts as forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from iact.core import whole_file
from iact.core.errors import MemoryUnavailable
from iact.core.ports import Clock
from iact.hippocampus.statement import Statement, parse_time

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
        """The places of statements, or their records, each with the time when it was forgotten."""
        self._edited: dict[str, str] = {}
        """The new texts, by place."""
        self._all_until: dict[str, str] = {}
        """Whose statements were all forgotten, each with the time until which that holds."""

        # One of the copies may be lost.
        exist = [self._read(place) for place in self._places]
        if self._decided and not all(exist):
            self._write()

    @property
    def _decided(self) -> bool:
        return bool(self._forgotten or self._edited or self._all_until)

    def forgotten(self, statement: Statement) -> bool:
        """Whether the statement was forgotten: alone, with its whole record, or with all of its person's."""
        until = self._all_until.get(statement.scope.user)
        if until is not None and statement.when <= parse_time(until):
            return True
        return place_of(statement.id) in self._forgotten or record_of(statement.id) in self._forgotten

    def text(self, statement: Statement) -> str:
        """The statement's current text."""
        return self._edited.get(place_of(statement.id), statement.text)

    def forget(self, ids: Iterable[str]) -> None:
        """Forget these statements, for good."""
        now = self._clock.now().isoformat(timespec="seconds")
        self._forgotten = {**dict.fromkeys(map(place_of, ids), now), **self._forgotten}
        self._edited = {place: text for place, text in self._edited.items() if place not in self._forgotten}
        self._write()

    def forget_all(self, user: str, ids: Iterable[str]) -> None:
        """Forget all statements of a person that there are by now, for good. `ids`: those that are stored; what was
        decided about each of them is superfluous then."""
        gone = set(map(place_of, ids))
        self._all_until[user] = self._clock.now().isoformat()
        self._forgotten = {place: at for place, at in self._forgotten.items() if place not in gone}
        self._edited = {place: text for place, text in self._edited.items() if place not in gone}
        self._write()

    def edit(self, identity: str, text: str) -> None:
        """Change the text of the statement with this id."""
        self._edited[place_of(identity)] = text
        self._write()

    def drop(self, sessions: Iterable[str]) -> None:
        """Remove all decisions about statements of these sessions."""
        gone = set(sessions)
        forgotten = {place: at for place, at in self._forgotten.items() if session_of(place) not in gone}
        edited = {place: text for place, text in self._edited.items() if session_of(place) not in gone}
        if forgotten == self._forgotten and edited == self._edited:
            return

        self._forgotten = forgotten
        self._edited = edited
        self._write()

    def _read(self, path: Path) -> bool:
        """Read the decisions in a file. Return whether it exists."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            forgotten = content["forgotten"]
            if isinstance(forgotten, list):  # an older format, without the times
                forgotten = dict.fromkeys(forgotten, "")
            self._forgotten |= {str(place): str(at) for place, at in forgotten.items()}
            self._edited |= {str(place): str(text) for place, text in content.get("texts", {}).items()}
            self._all_until |= {str(user): str(until) for user, until in content.get("all", {}).items()}

            # Of an older format: edits of whole messages.
            self._forgotten |= dict.fromkeys(map(record_of, content.get("edited", {})), "")
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
        content = {
            "forgotten": dict(sorted(self._forgotten.items())),
            "texts": self._edited,
            "all": self._all_until,
        }
        text = json.dumps(content, ensure_ascii=False, indent=1)
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


def place_of(identity: str) -> str:
    """The place of a statement, always with its number: "SESSION/RECORD.NUMBER"."""
    session, slash, number = identity.rpartition("/")
    if "." not in number:
        number = f"{number}.0"
    return f"{session}{slash}{number}"


def record_of(identity: str) -> str:
    """The record of a statement: "SESSION/RECORD"."""
    session, slash, number = identity.rpartition("/")
    return f"{session}{slash}{number.partition('.')[0]}"


def session_of(identity: str) -> str:
    """The session of a statement, or of its record."""
    return identity.partition("/")[0]
