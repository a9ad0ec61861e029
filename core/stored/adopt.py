"""Adopts a session from another installation: makes a new session here with its records, but without its authority.

A journal decides in which directory agents work, how much they may do, and what is carried out next. So a foreign
journal is never opened as a session. Adopting makes a new session instead: the records are copied byte for byte and
followed by one sealed `adopt` record, which holds the SHA-256 of everything before it and the adopter's own terms.
`core.tree.adoption` describes what that changes in the tree. Files are copied into a scratch workspace, by descriptor
and within limits; blobs are copied and must match their names; versions are imported object by object. The directory in
which the session worked is never opened.

Nothing in the source is trusted, and it may change while it is read. So the journal is copied first, and the copy is
what is checked and folded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from iact.core.errors import JournalError, JournalUnwritable, UsageError, WorkspaceError
from iact.core.gate.grant import Grant
from iact.core.gate.level import level
from iact.core.gate.policy import Policy
from iact.core.gate.policy_file import policy_json
from iact.core.journal.file import FILE, holds_blob, open_journal, open_regular, read_blob, sync_directory
from iact.core.journal.reader import Reader
from iact.core.journal.record import encode
from iact.core.journal.seal import Sealer
from iact.core.models.roles import Models
from iact.core.ports import JSON, Versions
from iact.core.records.kinds import FORMAT
from iact.core.records.parts import Bounds, GrantTerms, RoleTerms
from iact.core.records.record import Record, blobs_of, timestamp
from iact.core.records.session import Adopt as AdoptContent
from iact.core.stored.folder_copy import CopyBudget, copy_tree, transfer
from iact.core.stored.fork import STORE, workshop
from iact.core.stored.garbage_collection import collector_paused
from iact.core.tree.apply import read_tree, take_in
from iact.core.tree.roles import Role

LARGEST_JOURNAL: Final = 1 << 30
"""The largest journal that can be adopted, in bytes."""
BLOBS: Final = 1 << 30
FILES: Final = 1 << 30
"""How many bytes of blobs, and of workspace files, are copied at most; the rest is left out."""
ENTRIES: Final = 50_000
"""How many blobs, and workspace entries, are copied at most."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """The new session. `left_out`: how many files, blobs and objects of versions were not copied."""

    session: str
    directory: Path
    source: str
    at: int
    left_out: Mapping[str, int]

    @property
    def journal(self) -> Path:
        """The file of its journal."""
        return self.directory / FILE


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which the new session goes on: the adopter's, as fields of the `adopt` record."""

    models: Mapping[str, RoleTerms]
    grant: GrantTerms
    policy: Mapping[str, JSON]
    bounds: Bounds

    @staticmethod
    def of(policy: Policy, intent: float | str, bounds: Bounds, models: Models) -> Terms:
        """The same terms that a new session would get.

        Raises:
            UsageError: there is no such level of intent.
        """
        granted = level(intent, dict(policy.levels))
        roles = {name: Role.of(models.profile(name)).terms() for name in models.roles()}
        return Terms(roles, Grant(policy.scope(), granted).terms(), policy_json(policy), bounds)


def adopt(
    sessions: Path,
    source: Path,
    at: int | None,
    *,
    session: str,
    now: datetime,
    terms: Terms,
    sealer: Sealer,
    versions: Versions | None = None,
) -> Adopted:
    """Make session `session` in the directory `sessions` from records 1…`at` (default: all) of `source`.

    `source`: a journal's file or its session's directory.

    Raises:
        UsageError: it has no record `at`.
        JournalError: its journal can't be read, is damaged or too large, or says what can't be true.
        JournalUnwritable: the new session can't be stored; nothing is left behind.
    """
    file = source / FILE if source.is_dir() else source
    try:
        with workshop(sessions, session) as place:
            for folder in (place, place / "blobs", place / "workspace"):
                folder.mkdir(mode=0o700 if folder == place else 0o777)
            records = _take_journal(file, place / FILE, at)
            left_out = {
                "files": take_files(file.parent / "workspace", place / "workspace"),
                "blobs": take_blobs(records, file.parent / "blobs", place / "blobs"),
                "versions": take_versions(versions, file.parent / STORE, place / STORE),
            }
            origin = _write(place, records, session, now, terms, sealer, left_out)
            place.rename(sessions / session)
            sync_directory(sessions)
    except OSError as error:
        raise JournalUnwritable(
            f"The session can't be stored in {sessions} ({error.strerror}). No part of it was kept."
        ) from error
    return Adopted(session, sessions / session, origin, records[-1].n, left_out)


def _take_journal(file: Path, target: Path, at: int | None) -> list[Record]:
    """Copy the journal up to record `at`. Returns the records of the copy."""
    with open_journal(file) as reading, target.open("xb") as writing:
        size = os.fstat(reading.fileno()).st_size
        if size > LARGEST_JOURNAL:
            most = f"{LARGEST_JOURNAL >> 20} MiB"
            raise JournalError(
                f"The journal {file} has {size:,} bytes; a journal of more than {most} can't be adopted."
            )
        os.fchmod(writing.fileno(), 0o600)
        transfer(reading.fileno(), writing.fileno(), size)

    # The copy is read, and not the original, which may be written to meanwhile.
    reader = Reader(target)
    records: list[Record] = []
    with collector_paused():
        for record in reader.read():
            records.append(record)
            if record.n == at:
                break

    if not records or (at is not None and records[-1].n != at):
        have = f"it has 1 to {len(records)}" if records else "it holds none"
        raise UsageError(f"There is no record {at or 1} to adopt {file} at; {have}.")
    os.truncate(target, reader.offset)
    return records


def _write(
    place: Path,
    records: list[Record],
    session: str,
    now: datetime,
    terms: Terms,
    sealer: Sealer,
    left_out: Mapping[str, int],
) -> str:
    """Append the `adopt` record, if the tree accepts it. Returns the id of the session that it was copied from."""
    file = place / FILE
    last = records[-1]
    with collector_paused():
        tree = read_tree(
            records, partial(read_blob, place), strict=False, is_there=partial(holds_blob, place)
        )
    source = tree.session  # the `adopt` record gives the tree another id
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()

    content = AdoptContent(
        from_=source,
        after=last.n,
        session=session,
        sha256=sha256,
        by="user",
        workspace="current" if (place / "workspace").is_dir() else "none",
        format=FORMAT,
        models=terms.models,
        grant=terms.grant,
        policy=terms.policy,
        bounds=terms.bounds,
        left_out={name: count for name, count in left_out.items() if count} or None,
        lost=tuple(sorted(tree.blobs.recorded)),
    )
    record = Record(last.n + 1, timestamp(now), "/", tree.root.step + 1, content, prev=last.digest)
    data, _ = encode(record, sealer)
    take_in(tree, record)  # raises if the tree doesn't accept it

    with file.open("ab") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    sync_directory(place)
    return source


# --- copying files, blobs and versions ------------------------------------------------------------------------


def take_files(source: Path, target: Path) -> int:
    """Copy a workspace within the limits. Returns how many entries were left out."""
    try:
        return copy_tree(source, target, CopyBudget(FILES, ENTRIES, owned=False))
    except FileNotFoundError:
        return 0
    except (NotADirectoryError, PermissionError):
        return 1  # a link, not a folder, or not readable for us


def take_blobs(records: Iterable[Record], source: Path, target: Path) -> int:
    """Copy the blobs that the records name, except those that don't match their names. Returns how many were left
    out."""
    wanted = frozenset[str]().union(*(blobs_of(record) for record in records))
    room, left_out = CopyBudget(BLOBS, ENTRIES), 0
    if source.is_symlink():
        return len(wanted)
    for digest in sorted(wanted):
        left_out += not _take_blob(source / digest, target / digest, room)
    sync_directory(target)
    return left_out


def _take_blob(source: Path, target: Path, room: CopyBudget) -> bool:
    """Copy a blob, whose name is its digest. Returns False if it is missing, too large, or not what its name says."""
    try:
        reading = open_regular(source)
    except OSError:
        return False

    with reading:
        size = os.fstat(reading.fileno()).st_size
        if not room.take(size):
            return False
        with target.open("xb") as writing:
            transfer(reading.fileno(), writing.fileno(), size)
            writing.flush()
            os.fsync(writing.fileno())

    # The copy is checked: what was there a moment ago may be another file by now.
    with target.open("rb") as stream:
        is_right = hashlib.file_digest(stream, "sha256").hexdigest() == target.name
    if not is_right:
        target.unlink()
    return is_right


def take_versions(versions: Versions | None, source: Path, target: Path) -> int:
    """Import the readable versions of the workspace. Without them the session still works."""
    if versions is None or not os.path.lexists(source):
        return 0
    try:
        return versions.bring(source, target)
    except WorkspaceError:
        return 1
