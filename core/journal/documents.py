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
"""How often another host may be first with a version before a file is left to the next sync."""


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
    """What the data directory has of a shared file."""

    version: int = 0
    """The store's version that it was made from; 0 if it was never in the store."""
    sha256: str = ""
    """Of its content then; if it has another one now, it was edited here."""


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
        newest = self._newest_versions()
        here = {name for name in self._names_here() if (self._data / name).is_file()}
        changed: list[str] = []
        with self._state() as state:
            for name in sorted(newest.keys() | here):
                with _locked(self._data / name):
                    if self._sync(name, newest.get(name, 0), state):
                        changed.append(name)
        return changed

    def _newest_versions(self) -> dict[str, int]:
        """The newest version in the store of each file. Other objects in the folder are none of ours."""
        newest: dict[str, int] = {}
        for object_name in self._store.names(_FOLDER):
            file, _, number = object_name.removeprefix(_FOLDER).rpartition("/")
            if file in _NAMES or _is_plan(file):
                newest[file] = int(number)
        return newest

    def _names_here(self) -> set[str]:
        plans = {f"plans/{path.name}" for path in self._data.glob(_PLANS)}
        return {*_NAMES, *plans}

    def _sync(self, name: str, newest: int, state: dict[str, _Copy]) -> bool:
        """Bring one file up to date on both sides. Returns whether it changed here."""
        path = self._data / name
        known = state.get(name, _Copy())
        mine = path.read_bytes() if path.is_file() else None
        edited = mine is not None and _digest(mine) != known.sha256

        for _ in range(_TRIES):
            theirs = None
            if newest > known.version:
                theirs = self._get(name, newest)
            content = theirs
            if theirs is None:
                content = mine
            elif edited and mine is not None:
                content = self._put_together(name, known, mine, theirs)
            if content is None:
                return False

            version = max(newest, known.version)
            if edited and content != theirs:
                version += 1
                sealed = self._cipher.encrypt(_name(name, version), content)
                if not self._store.create(_name(name, version), sealed):
                    # Another host was first: its version is merged with ours.
                    newest = version
                    continue

            if content != mine:
                write_whole(path, content)
            state[name] = _Copy(version, _digest(content))
            return content != mine

        # The others keep changing it; the next sync tries again.
        return False

    def _put_together(self, name: str, known: _Copy, mine: bytes, theirs: bytes) -> bytes:
        """The content of a file that was changed both here and elsewhere."""
        if mine == theirs:
            return mine

        base = b""
        if known.version:
            base = self._get(name, known.version)
        merged = _merged(base, mine, theirs)
        if merged is not None:
            return merged

        # A person must merge them: the local version is kept next to the file.
        kept = self._data / f"{name}.kept-{secrets.token_hex(2)}"
        write_whole(kept, mine)
        _LOG.warning("%s was changed here and on another host; theirs counts, ours is in %s.", name, kept)
        return theirs

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
            stored = json.loads(path.read_bytes()) if path.is_file() else {}
            state = {name: _Copy(int(copy["version"]), str(copy["sha256"])) for name, copy in stored.items()}
            before = dict(state)
            try:
                yield state
            finally:
                if state != before:
                    fields = {
                        name: {"version": copy.version, "sha256": copy.sha256} for name, copy in state.items()
                    }
                    write_whole(path, json.dumps(fields, indent=2).encode())


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
        old, ours, others = (json.loads(content or b"{}") for content in (base, mine, theirs))
    except ValueError:
        return None
    if not (isinstance(old, dict) and isinstance(ours, dict) and isinstance(others, dict)):
        return None

    merged = dict(others)
    for name in old.keys() | ours.keys():
        before = old.get(name)
        value = ours.get(name)
        if value == before:
            continue

        if others.get(name) != before:
            value = _both(before, value, others.get(name))
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return json.dumps(merged, indent=2).encode()


def _both(old: JSON, ours: JSON, others: JSON) -> JSON:
    """The value of a name that both sides changed."""
    if not isinstance(ours, list) or not isinstance(others, list):
        return others

    before = old if isinstance(old, list) else []
    kept = [item for item in others if item in ours or item not in before]
    added = [item for item in ours if item not in others and item not in before]
    return [*kept, *added]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock out other programs that change a file, by the same lock that they use."""
    with contextlib.ExitStack() as stack:
        # Only a failure to lock is told so; what happens under the lock has its own errors.
        try:
            stack.enter_context(whole_file.locked(path))
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
