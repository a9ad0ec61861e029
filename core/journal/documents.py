"""Small files of a data directory that all hosts of a store share: approvals, the policy, secrets, names.

Each is a series of versions in the store. Each version is created only if it does not exist, like the segments of a
journal. So two hosts that change a file at the same time can't lose each other's changes: the second host finds the
first one's version, merges both changes, and creates the next version. The files in the data directory are copies.
Every program reads those, and this module periodically compares them with the store.

Stored versions are encrypted with a key that only hosts have, and bound to their name: anyone else who can write in the
store can neither read a secret nor forge an approval.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from iact.core import whole_file
from iact.core.errors import JournalError, JournalUnwritable
from iact.core.ports import JSON, ObjectStore

_LOG: Final = logging.getLogger(__name__)
STATE: Final = "shared.json"
"""A file in the data directory: which version of each shared file it has."""
_FOLDER: Final = "installation/files/"
_NAMES: Final = ("approvals.json", "hosts.json", "policy.toml", "secrets.json")
_PLANS: Final = "plans/*.yaml"
_TRIES: Final = 16


class Cipher(Protocol):
    """Encrypts what only hosts may read. `name`: encrypted data is valid only under this name."""

    def encrypt(self, name: str, data: bytes) -> bytes: ...

    def decrypt(self, name: str, data: bytes) -> bytes:
        """Return the decrypted data.

        Raises:
            JournalError: it was not encrypted with this key and under this name.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Copy:
    """A file in the data directory. `version`: the store's version it was made from; `sha256`: of its content then."""

    version: int = 0
    sha256: str = ""


class SharedDocuments:
    """The shared files of one data directory. Every method blocks."""

    def __init__(self, store: ObjectStore, data: Path, cipher: Cipher) -> None:
        self._store = store
        self._data = data
        self._cipher = cipher

    def sync(self) -> list[str]:
        """Fetch what other hosts changed, and store what was changed here. Returns the files that changed here.

        Raises:
            StoreUnavailable: the store does not answer; changes made here are stored the next time.
            JournalError: something in the store is not from our hosts.
            JournalUnwritable: a file can't be written.
        """
        newest: dict[str, int] = {}
        for name in self._store.names(_FOLDER):
            file, _, number = name.removeprefix(_FOLDER).rpartition("/")
            if file in _NAMES or _is_plan(file):
                newest[file] = int(number)
        changed = []
        with self._state() as state:
            here = {*_NAMES, *(f"plans/{one.name}" for one in self._data.glob(_PLANS))}
            for name in sorted({*newest, *(one for one in here if (self._data / one).is_file())}):
                with _locked(self._data / name):
                    if self._sync(name, newest.get(name, 0), state):
                        changed.append(name)
        return changed

    def _sync(self, name: str, newest: int, state: dict[str, _Copy]) -> bool:
        known, path = state.get(name, _Copy()), self._data / name
        mine = path.read_bytes() if path.is_file() else None
        edited = mine is not None and _digest(mine) != known.sha256
        for _ in range(_TRIES):
            theirs = self._get(name, newest) if newest > known.version else None
            content = self._put_together(name, known, mine if edited or theirs is None else None, theirs)
            if content is None:
                return False
            version = max(newest, known.version)
            if edited and content != theirs:
                version += 1
                sealed = self._cipher.encrypt(_name(name, version), content)
                if not self._store.create(_name(name, version), sealed):
                    newest = version  # another host was first: its version is merged with ours
                    continue
            if content != mine:
                write_whole(path, content)
            state[name] = _Copy(version, _digest(content))
            return content != mine
        return False  # the others keep changing it; the next sync tries again

    def _put_together(
        self, name: str, known: _Copy, mine: bytes | None, theirs: bytes | None
    ) -> bytes | None:
        """The file's content if `mine` was changed here and `theirs` elsewhere; None: there is nothing to do."""
        if mine is None or theirs is None or mine == theirs:
            return theirs if mine is None else mine
        made = _merged(self._get(name, known.version) if known.version else b"", mine, theirs)
        if made is None:  # a person must merge them: the local version is kept next to the file
            kept = self._data / f"{name}.kept-{secrets.token_hex(2)}"
            write_whole(kept, mine)
            _LOG.warning("%s was changed here and on another host; theirs counts, ours is in %s.", name, kept)
            return theirs
        return made

    def _get(self, name: str, version: int) -> bytes:
        data = self._store.get(_name(name, version))
        if data is None:
            raise JournalError(f"Version {version} of {name} is missing in the store.")
        return self._cipher.decrypt(_name(name, version), data)

    @contextmanager
    def _state(self) -> Iterator[dict[str, _Copy]]:
        """The state of the data directory, under a lock against other programs; saved at the end."""
        path = self._data / STATE
        with _locked(path):
            found = json.loads(path.read_bytes()) if path.is_file() else {}
            state = {name: _Copy(int(one["version"]), str(one["sha256"])) for name, one in found.items()}
            before = dict(state)
            try:
                yield state
            finally:
                if state != before:
                    told = {
                        name: {"version": one.version, "sha256": one.sha256} for name, one in state.items()
                    }
                    write_whole(path, json.dumps(told, indent=2).encode())


def _is_plan(file: str) -> bool:
    folder, _, name = file.rpartition("/")
    return folder == "plans" and name.endswith(".yaml") and not name.startswith(".")


def _name(name: str, version: int) -> str:
    return f"{_FOLDER}{name}/{version:010}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _merged(base: bytes, mine: bytes, theirs: bytes) -> bytes | None:
    """Merge both changes of a JSON object, by name; None if it is not an object.

    Where both changed one name, lists gain what either added and lose what either removed. For any other value theirs
    counts: an approval is taken whole or not at all.
    """
    try:
        old, ours, others = (json.loads(one or b"{}") for one in (base, mine, theirs))
    except ValueError:
        return None
    if not (isinstance(old, dict) and isinstance(ours, dict) and isinstance(others, dict)):
        return None
    made = dict(others)
    for name in old.keys() | ours.keys():
        if ours.get(name) == old.get(name):
            continue
        if others.get(name) == old.get(name):
            _put(made, name, ours.get(name))
        else:
            _put(made, name, _both(old.get(name), ours.get(name), others.get(name)))
    return json.dumps(made, indent=2).encode()


def _put(made: dict[str, JSON], name: str, value: JSON) -> None:
    if value is None:
        made.pop(name, None)
    else:
        made[name] = value


def _both(old: JSON, ours: JSON, others: JSON) -> JSON:
    if not isinstance(ours, list) or not isinstance(others, list):
        return others
    before = old if isinstance(old, list) else []
    kept = [one for one in others if one in ours or one not in before]
    return [*kept, *(one for one in ours if one not in others and one not in before)]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock out other programs that change a file, by the same lock that they use."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(whole_file.locked(path))
        except OSError as error:
            raise JournalUnwritable(f"{path} can't be written: {error.strerror}.") from error
        yield


def write_whole(path: Path, data: bytes) -> None:
    """Replace a small file, so that a reader or a crash finds the old one or the new one.

    Raises:
        JournalUnwritable: it can't be written.
    """
    try:
        whole_file.replace(path, data)
    except OSError as error:
        raise JournalUnwritable(f"{path} can't be written: {error.strerror}.") from error
