"""Backup of a whole data directory to one file, also while sessions run, and restoring it completely or not at all.

Journals are append-only, so what was read of one is a state that it really had; at worst its last record is torn, as
after a crash. Each session's journal is read before the blobs that it names, because blobs are on disk before a journal
names them. Databases are copied with their own backup function. Indexes and the vectors of memory are left out, because
they can be rebuilt.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sqlite3
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Final, cast

from iact.core.errors import IactError, UsageError
from iact.core.stored.archive import BoundedEntry
from iact.core.stored.replay import replay
from iact.sandbox.owner import CLAIMS
from iact.user_folders import USERS

FORMAT: Final = 1
_ABOUT: Final = "iact-backup.json"
_MOST_ABOUT: Final = 64 * 1024
_FIRST: Final = "journal.md"
_ACCOUNTS: Final = "accounts.db"
_DERIVED: Final = ("index.sqlite", "accounts.db-", "server.json", "run.")
"""Prefixes of names in a data directory that can be rebuilt, or belong to a database that is copied as a whole."""

_LARGEST_OPENING: Final = 16 * 1024
"""Bytes that a first record may have, most often one thousand. Longer journals are not read to see whether they have one."""

Tell = Callable[[int, int], None]
"""Called with the number of files and bytes so far."""


def write_backup(data: Path, target: Path, tell: Tell) -> int:
    """Write a whole data directory to the file `target`, which only its owner can read. Returns the number of links left out.

    Links that point outside the directory are left out; agents can make them in their workspaces.

    Raises:
        UsageError: there is no such directory, or the file exists already or can't be written.
    """
    if not data.is_dir():
        raise UsageError(f"There is no data directory {data}.")
    if target.exists():
        raise UsageError(f"{target} exists already. Choose another name.")
    if target.resolve().is_relative_to(data.resolve()):
        raise UsageError("The backup would be inside the data directory. Choose a place outside of it.")

    try:
        # Readable only by its owner, from the first byte on.
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=f".{target.name}.") as stream:
            left_out = _write(data, stream, tell)
            stream.flush()
            os.fsync(stream.fileno())
            os.link(stream.name, target)
    except OSError as error:
        raise UsageError(f"The backup {target} can't be written: {error.strerror or error}.") from error

    return left_out


def read_backup(source: Path, data: Path, tell: Tell) -> None:
    """Restore a backup to the data directory `data`, completely or not at all. `data` must not exist, or be empty.

    Raises:
        UsageError: the file is not a backup, or was made by a newer version; or the directory is not empty.
    """
    if not _is_free(data):
        raise UsageError(f"{data} is not empty. Restore into a directory that is empty or new.")

    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        with _beside(data) as folder:
            with tarfile.open(source, "r:gz", tarinfo=BoundedEntry) as archive:
                _check(source, archive)
                _extract(archive, folder, tell)
            os.sync()

            # Everything is on disk, so one renaming makes it the data directory.
            if data.exists():
                data.rmdir()
            folder.rename(data)
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UsageError(f"{source} is not a complete backup: {error}.") from error
    except OSError as error:
        raise UsageError(f"{source} can't be restored into {data}: {error.strerror or error}.") from error


def _is_free(data: Path) -> bool:
    """Whether a data directory can be made here: nothing is here, or an empty directory."""
    if data.is_symlink():
        return False
    return not data.exists() or (data.is_dir() and not any(data.iterdir()))


def _write(data: Path, stream: IO[bytes], tell: Tell) -> int:
    """Write the archive. Returns the number of links left out."""
    about = {
        "format": FORMAT,
        "version": version("iact"),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }

    files = 0
    size = 0
    left_out = 0
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=4) as archive:
        _add_bytes(archive, _ABOUT, json.dumps(about).encode())
        for path in _everything(data, data):
            try:
                entry = _add(archive, path, data)
            except FileNotFoundError:
                continue  # deleted in the meantime
            except tarfile.FilterError:
                left_out += 1
                continue

            if entry is not None:
                files += 1
                size += entry.size
                tell(files, size)

    return left_out


def _add(archive: tarfile.TarFile, path: Path, data: Path) -> tarfile.TarInfo | None:
    """Add a path of a data directory. Returns its entry; None: it is a socket, or a device.

    Raises:
        FileNotFoundError: it was deleted in the meantime.
        tarfile.FilterError: it is a link that points outside the directory.
    """
    entry = archive.gettarinfo(path, arcname=str(path.relative_to(data)))
    if entry is None or not _can_be_kept(entry):
        return None
    tarfile.data_filter(entry, str(data))

    if path == data / _ACCOUNTS:
        _add_bytes(archive, entry.name, _database(path))
    elif entry.isfile():
        with path.open("rb") as content:
            archive.addfile(entry, cast("IO[bytes]", _Exactly(content)))
    else:
        archive.addfile(entry)

    return entry


def _can_be_kept(entry: tarfile.TarInfo) -> bool:
    return entry.isdir() or entry.isfile() or entry.islnk() or entry.issym()


def _everything(folder: Path, data: Path) -> Iterator[Path]:
    """Yield everything below a folder that belongs in a backup, without following links. Journals come first."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: (entry.name != _FIRST, entry.name))
    except FileNotFoundError:
        return

    for entry in entries:
        path = Path(entry.path)
        parts = path.relative_to(data).parts
        if _is_derived(parts) or (_is_session(parts) and _is_empty(path)):
            continue
        yield path
        if entry.is_dir(follow_symlinks=False):
            yield from _everything(path, data)


def _is_session(parts: tuple[str, ...]) -> bool:
    """Whether a path is that of a session: sessions/ID, or users/ID/sessions/ID."""
    if parts[-2:-1] != ("sessions",):
        return False
    return len(parts) == 2 or (len(parts) == 4 and parts[0] == USERS)


def _is_empty(session: Path) -> bool:
    """Whether a session was created a moment ago, and has no complete record yet."""
    try:
        if (session / _FIRST).stat().st_size < _LARGEST_OPENING:
            replay(session)
    except UsageError:
        return True
    except (OSError, IactError):
        return False  # what can't be read is kept as it is
    return False


def _is_derived(parts: tuple[str, ...]) -> bool:
    """Whether a path can be rebuilt. This only applies directly in a data directory, or a user's directory in it."""
    if parts[0] == USERS and len(parts) > 2:  # users/ID/…
        parts = parts[2:]

    if parts[0] == CLAIMS or parts[:2] == ("memory", "chroma"):
        return True
    return len(parts) == 1 and (parts[0].startswith(_DERIVED) or parts[0].endswith(".lock"))


class _Exactly:
    """A file that returns as many bytes as it had at first, even if it is truncated in the meantime."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Read `size` bytes; missing bytes are zeros."""
        return self._stream.read(size).ljust(size, b"\0")


def _database(path: Path) -> bytes:
    """A consistent copy of an SQLite database, as it is between two transactions."""
    with (
        closing(sqlite3.connect(path.as_uri() + "?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(":memory:")) as copy,
    ):
        source.backup(copy)
        return bytes(copy.serialize())


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    entry.mode = 0o600
    entry.mtime = int(datetime.now(UTC).timestamp())
    archive.addfile(entry, io.BytesIO(content))


def _check(source: Path, archive: tarfile.TarFile) -> None:
    """Check by an archive's first entry whether it is a backup that can be read.

    Raises:
        UsageError: it is none, or was made by a newer version.
    """
    first = archive.next()
    content = None
    if first is not None and first.name == _ABOUT and first.isfile() and first.size <= _MOST_ABOUT:
        content = archive.extractfile(first)
    if content is None:
        raise UsageError(f"{source} is not a backup of iact.")

    about = json.loads(content.read())
    number = about.get("format") if isinstance(about, dict) else None
    if not isinstance(number, int):
        raise UsageError(f"{source} is not a backup of iact.")
    if number > FORMAT:
        raise UsageError(
            f"{source} was made by a newer version of iact ({about.get('version')}). Use that version."
        )


def _extract(archive: tarfile.TarFile, folder: Path, tell: Tell) -> None:
    size = 0
    for files, entry in enumerate(archive, start=1):
        if not _can_be_kept(entry):
            raise ValueError(f"it contains {entry.name!r}, which is not a file")

        archive.extract(entry, folder, filter="data")
        size += entry.size
        tell(files, size)


@contextmanager
def _beside(data: Path) -> Iterator[Path]:
    """A new directory next to `data`, on the same disk. It is removed if the restore fails."""
    folder = Path(tempfile.mkdtemp(dir=data.parent, prefix=f".{data.name}.restoring-"))
    try:
        yield folder
    finally:
        if folder.exists():
            _unlock(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _unlock(folder: Path) -> None:
    """Make folders writable: workspaces may contain folders that even their owner can't write to."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, stat.S_IRWXU)
