"""A session as one file, for keeping or for moving to another machine: a compressed tar archive.

    ID/journal.md  ID/about.json  ID/blobs/…  ID/workspace/…  ID/versions/…

Nothing in an archive is trusted. Only plain files, folders and links that stay inside it are unpacked. The result is
then imported like an adopted session: content that does not match its name, or exceeds the limits, is left out. As for
every session, the seals decide who it belongs to: one that this installation made can be continued; any other is
foreign, and can be read or adopted.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Self

from iact.core.errors import JournalError, JournalUnwritable, UsageError
from iact.core.journal.file import FILE, open_regular, read_journal, sync_directory
from iact.core.journal.seal import Sealer
from iact.core.ports import Versions
from iact.core.records.record import Record
from iact.core.records.session import Adopt, Fork, Open
from iact.core.stored.about import FILE as ABOUT
from iact.core.stored.about import read_about, write_about
from iact.core.stored.adopt import (
    BLOBS,
    ENTRIES,
    FILES,
    LARGEST_JOURNAL,
    take_blobs,
    take_files,
    take_versions,
)
from iact.core.stored.folder_copy import CopyBudget, copy_tree, transfer
from iact.core.stored.fork import STORE, workshop
from iact.core.stored.trash import Trash

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_PARTS: Final = ("journal.md", ABOUT, "blobs", "workspace", STORE)
_MOST: Final = LARGEST_JOURNAL + BLOBS + 2 * FILES


_LONGEST_HEADER: Final = 64 * 1024
"""The most bytes of a header that holds a name or attributes. Its reader takes it into memory as a whole."""
_HELD_WHOLE: Final = frozenset(
    {
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
    }
)


class BoundedEntry(tarfile.TarInfo):
    """An entry of an archive from elsewhere: a header that declares more than there can be to say is not read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read the first block of a header.

        Raises:
            tarfile.ReadError: it declares a name, or attributes, of an impossible size.
        """
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _HELD_WHOLE and entry.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header declares {entry.size:,} bytes of names")
        return entry


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported session. `foreign`: why this installation did not make it, in words; empty if it did.

    `left_out`: how many files, blobs and objects of versions were not imported.
    """

    session: str
    directory: Path
    foreign: str
    left_out: Mapping[str, int]


def export_session(directory: Path, out: BinaryIO, versions: Versions | None) -> int:
    """Write a session, which may be running, as an archive. Returns how many of its files were left out. Blocks.

    Raises:
        JournalError: its journal can't be read.
        JournalUnwritable: there is no space for the archive, or for the temporary copy of the files.
    """
    name = directory.name
    try:
        with workshop(directory.parent, f"export-{name}-{os.getpid()}") as place:
            place.mkdir(mode=0o700)
            left_out = _gather(directory, place, versions)

            with tarfile.open(
                fileobj=out, mode="w:gz", compresslevel=6, format=tarfile.PAX_FORMAT
            ) as archive:
                for part in _PARTS:
                    if (place / part).exists():
                        archive.add(place / part, f"{name}/{part}", filter=_plain)
    except (OSError, tarfile.TarError) as error:
        raise JournalUnwritable(f"The session {name} can't be exported: {error}.") from error
    return left_out


def _gather(directory: Path, place: Path, versions: Versions | None) -> int:
    """Copy everything that goes into the archive, so that nothing changes while it is packed. Returns how many files were
    left out."""
    with open_regular(directory / FILE) as reading, (place / FILE).open("xb") as writing:
        transfer(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()).st_size)
    write_about(place, read_about(directory))

    left_out = 0
    for part in ("blobs", "workspace"):
        (place / part).mkdir()
        with suppress(FileNotFoundError):
            left_out += copy_tree(directory / part, place / part, CopyBudget())

    if versions is not None and (directory / STORE).is_dir():
        versions.share(directory / STORE, place / STORE)
    return left_out


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Remove the owner of a file: it means nothing on another machine."""
    if not (entry.isreg() or entry.isdir() or entry.issym()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def import_session(
    sessions: Path, source: Path, sealer: Sealer, versions: Versions | None, *, called: str
) -> Imported:
    """Make a session in the directory `sessions` from an archive, or from a session's directory elsewhere. Blocks.

    `called`: how messages refer to the source.

    Raises:
        UsageError: it holds no session, or one that exists here already.
        JournalError: its journal can't be read, is damaged or too large.
        JournalUnwritable: it can't be stored; nothing is left behind.
    """
    left_out = {"files": 0, "blobs": 0, "versions": 0}
    try:
        with workshop(sessions, f"import-{os.getpid()}-{source.stem[:40]}") as place:
            folder = source
            if not source.is_dir():
                folder = place.with_name("arrived")
                folder.mkdir(mode=0o700)
                left_out["files"] = _unpack(source, folder, called)

            for part in (place, place / "blobs", place / "workspace"):
                part.mkdir(mode=0o700 if part == place else 0o777)
            _take_journal(folder / FILE, place / FILE, called)
            contents = read_journal(place, sealer)
            session = _id_of(contents.records, called)
            _free(sessions, session)

            left_out["files"] += take_files(folder / "workspace", place / "workspace")
            left_out["blobs"] = take_blobs(contents.records, folder / "blobs", place / "blobs")
            left_out["versions"] = take_versions(versions, folder / STORE, place / STORE)
            write_about(place, read_about(folder))

            sync_directory(place)
            place.rename(sessions / session)
            sync_directory(sessions)
    except OSError as error:
        raise JournalUnwritable(
            f"The session can't be stored in {sessions} ({error.strerror}). No part of it was kept."
        ) from error
    return Imported(session, sessions / session, contents.foreign, left_out)


def _take_journal(journal: Path, target: Path, called: str) -> None:
    """Copy the journal of a session.

    Raises:
        UsageError: there is none.
        JournalError: it is too large.
    """
    if not journal.is_file():
        raise UsageError(f"{called} contains no session: it has no {FILE}.")
    if journal.lstat().st_size > LARGEST_JOURNAL:
        most = f"{LARGEST_JOURNAL >> 20} MiB"
        raise JournalError(f"The journal in {called} is too large; the limit is {most}.")

    with open_regular(journal) as reading, target.open("xb") as writing:
        transfer(reading.fileno(), writing.fileno(), os.fstat(reading.fileno()).st_size)
        os.fchmod(writing.fileno(), 0o600)
        os.fsync(writing.fileno())


def _free(sessions: Path, session: str) -> None:
    if (sessions / session).exists():
        raise UsageError(f"There is already a session {session} here, so nothing was imported.")
    if Trash(sessions).find(session) is not None:
        raise UsageError(
            f"The session {session} is in the trash here. Restore it with: iact session restore {session}."
        )


def _id_of(records: list[Record], called: str) -> str:
    """The id of the session that these records are of: the last that one of them gives it.

    Raises:
        UsageError: a session can't have it here.
    """
    session = ""
    for record in records:
        match record.content:
            case Open(session=name) | Fork(session=name) | Adopt(session=name):
                session = name

    if not _ID.fullmatch(session):
        raise UsageError(
            f"The journal in {called} has an id that a session can't have here: {session[:100]!r}."
        )
    return session


def _unpack(source: Path, target: Path, called: str) -> int:
    """Unpack the parts of a session. Returns how many entries were left out.

    Raises:
        UsageError: it is not an archive, or it holds more than a session may have.
    """
    left_out = 0
    size = 0
    try:
        with tarfile.open(source, "r:*", tarinfo=BoundedEntry) as archive:
            for count, entry in enumerate(archive):
                size += entry.size
                if count > 4 * ENTRIES or size > _MOST:
                    raise UsageError(
                        f"{called} contains more than a session may have, so it was not imported."
                    )

                # The first folder is the session's, whatever it is called.
                _, _, entry.name = entry.name.removeprefix("./").partition("/")
                is_a_part = entry.name.split("/")[0] in _PARTS
                is_plain = entry.isreg() or entry.isdir() or entry.issym()
                if not is_a_part or not is_plain:
                    left_out += bool(entry.name)
                    continue

                try:
                    archive.extract(entry, target, set_attrs=True, filter="data")
                except (tarfile.FilterError, FileExistsError, NotADirectoryError, IsADirectoryError):
                    left_out += 1
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise UsageError(f"{called} is not a readable session archive: {error}.") from error
    except FileNotFoundError as error:
        raise UsageError(f"There is no file {called}.") from error
    _own(target)
    return left_out


def _own(folder: Path) -> None:
    """Make everything that was unpacked readable and removable for us, no matter which modes it came with."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, os.lstat(path).st_mode & 0o777 | 0o700)


def archive_name(session: str) -> str:
    """The file name under which an archive is offered."""
    return f"{session}.tar.gz"
