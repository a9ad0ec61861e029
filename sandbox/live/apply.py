"""Applies changes of the overlay to the user's directory, each path atomically, and exactly as it was reviewed.

A file is written next to its target under a temporary name, flushed to disk, and renamed: whenever the power fails, a
path has either its old content or the intended one. Before the rename both sides are checked again: the directory must
be as it was when the change was first seen (otherwise a *conflict*), and the overlay as it was last reported (otherwise
*failed*). Temporary names are recorded first, so that a killed process leaves none behind.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from iact.core.ports import AppliedAs
from iact.sandbox.live import copying, steps
from iact.sandbox.live.base import NOTHING, Base, Print, print_of, stamp_of
from iact.sandbox.live.compare import Found
from iact.sandbox.live.digests import plain
from iact.sandbox.live.drafts import clean, forget, name_of, write_down

_GROUP: Final = 128
"""Files that are written before the first of them is renamed: flushed to disk together instead of one by one."""
_HEAVY: Final = 64 << 20
"""Bytes after which they are flushed as well."""

_GONE: Final = (
    "The folder it was in is no longer in the live directory; apply that folder by force, too, or drop it."
)
_NEW: Final = "It is in a new folder that was not applied. Apply that folder, too."
_CHANGED: Final = (
    "Somebody changed it in the live directory after the agent's copy was made. Compare both, then "
    "apply it by force or drop it."
)
_AGAIN: Final = "A process of the session changed it after it was read for review. Review it again."
_FULL: Final = (
    "The folder in the live directory contains something that is not deleted with it. Apply the deletion "
    "of that, too, or drop this one."
)


class _Refused(Exception):
    """Why one path is not applied; the others are."""

    def __init__(self, outcome: AppliedAs, why: str) -> None:
        super().__init__(why)
        self.outcome: AppliedAs = outcome


@dataclass(frozen=True, slots=True)
class _Draft:
    """A file or link that is ready to be renamed."""

    found: Found
    name: str
    stamp: Print
    below: Print
    """What was in its place when it was written."""
    opened: int = -1
    """A descriptor of the file; -1 for a link."""


@dataclass(slots=True)
class Applying:
    """One run over a list of changes."""

    upper: int
    """A descriptor of the upper layer."""
    lower: int
    """A descriptor of the user's directory."""
    store: Path
    """Our own folder."""
    base: Base
    forced: Set[str]
    """Paths that are applied even if somebody else changed them."""
    outcomes: dict[str, tuple[AppliedAs, str]] = field(default_factory=dict)
    """What became of each change, and a remark or the reason."""
    _token: str = field(default_factory=lambda: secrets.token_hex(8))
    """In the names of all drafts of this run."""
    _numbers: Iterator[int] = field(default_factory=count)
    _touched: set[tuple[str, ...]] = field(default_factory=set)
    """Folders in which something was changed."""
    _left: bool = False
    """Whether a draft could not be removed."""

    def run(self, wanted: Iterable[Found]) -> None:
        """Apply all changes that can be applied; `outcomes` then has the result of each.

        Raises:
            WorkspaceError: not even the names of drafts can be recorded; nothing was applied.
        """
        changes = sorted(wanted, key=lambda found: found.parts)
        write_down(self.store, self._token, {found.parts[:-1] for found in changes})

        # Folders come before their content, and what replaces a folder comes when that is empty.
        folders, plain_ones, deleted, instead = _sorted(changes)
        for found in folders:
            with self._outcome(found):
                self._folder(found)
        for group in _groups(plain_ones):
            self._group(group)
        for found in reversed(deleted):
            with self._outcome(found):
                self._delete(found)
        for found in instead:
            self._group([found])

        self._flush()
        if self._left:
            clean(self.store, self.lower)
        else:
            forget(self.store)

    # --- files and links -------------------------------------------------------------------------

    def _group(self, group: Sequence[Found]) -> None:
        """Write all drafts of a group, then rename them: the disk gets a group at once."""
        drafts: list[_Draft] = []
        try:
            for found in group:
                with self._outcome(found):
                    draft = self._draft(found)
                    if draft is not None:
                        drafts.append(draft)

            for draft in drafts:
                with self._outcome(draft.found):
                    self._put(draft)
        finally:
            for draft in drafts:
                if draft.opened >= 0:
                    os.close(draft.opened)

    def _draft(self, found: Found) -> _Draft | None:
        """Write the draft next to its target; None if that was not necessary."""
        now = found.now
        if now is None or now.type not in ("file", "link"):
            kind = "special file" if now is None else now.target
            raise _Refused("failed", f"It is a {kind}; only files, folders and links can be applied.")

        was = found.was
        same_content = was is not None and was.type == "file" and was.sha256 == now.sha256 != ""
        with self._at(found) as at:
            below = self._unchanged(found, at)
            name = name_of(self._token, next(self._numbers))
            try:
                if now.type == "link":
                    os.symlink(now.target, name, dir_fd=at)
                    self._own(at, name, below)
                    return _Draft(found, name, self._looked_at(found), print_of(below))

                if same_content:
                    self._mode(found, at, below)
                    return None
                return self._file(found, at, name, below)
            except BaseException:
                self._discard(at, name)
                raise

    def _file(self, found: Found, at: int, name: str, below: os.stat_result | None) -> _Draft:
        """Write the draft of a file, and leave it open: it is flushed to disk when it is renamed."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(name, flags, 0o600, dir_fd=at)
        try:
            stamp = self._fill(found, at, opened, below)
            return _Draft(found, name, stamp, print_of(below), opened)
        except BaseException:
            os.close(opened)
            raise

    def _fill(self, found: Found, at: int, opened: int, below: os.stat_result | None) -> Print:
        """Copy content, owner, mode and times. Return the stamp of the copied file."""
        now = found.now
        assert now is not None
        *around, name = found.parts
        with steps.folder(self.upper, around) as up:
            source = steps.read(up, name)

        # Exactly what was reviewed: checked before it is copied, and again after.
        try:
            status = os.fstat(source)
            stamp = stamp_of(status)
            if found.above is None or stamp != stamp_of(found.above):
                raise _Refused("failed", _AGAIN)
            digest = copying.copy(source, opened, status.st_size)
            if digest != now.sha256 or stamp_of(os.fstat(source)) != stamp:
                raise _Refused("failed", _AGAIN)
        finally:
            os.close(source)

        self._own(at, None, below, opened)
        if below is not None and stat.S_ISREG(below.st_mode):
            with suppress(OSError):
                replaced = steps.read(at, name)
                try:
                    copying.attributes(replaced, opened)
                finally:
                    os.close(replaced)

        # After the owner: a change of owner takes bits away.
        os.fchmod(opened, plain(now.mode, folder=False))
        os.utime(opened, ns=(status.st_atime_ns, status.st_mtime_ns))
        return stamp

    def _put(self, draft: _Draft) -> None:
        """Rename the draft to its target."""
        found = draft.found
        name = found.parts[-1]
        with self._at(found) as at:
            try:
                if draft.opened >= 0:
                    os.fsync(draft.opened)

                # Without ctime, which a change to its other names may alter.
                below = self._unchanged(found, at)
                if print_of(below)[:5] != draft.below[:5]:
                    raise _Refused("conflict", _CHANGED)

                if below is None:
                    self._rename_new(at, draft.name, name)
                elif stat.S_ISDIR(below.st_mode):
                    self._instead_of_folder(at, draft.name, name)
                else:
                    with self._other_names(at, name, below):
                        os.rename(draft.name, name, src_dir_fd=at, dst_dir_fd=at)
            except BaseException:
                self._discard(at, draft.name)
                raise
        self._done(found, draft.stamp, _note(found, below))

    def _instead_of_folder(self, at: int, draft: str, name: str) -> None:
        """Put the draft in the place of a folder, which must be empty."""
        with steps.folder(at, (name,)) as inside:
            if steps.names(inside):
                raise _Refused("failed", _FULL)

        # Somebody may be faster: then their entry is in the folder that we moved away.
        steps.exchange(at, draft, at, name)
        try:
            os.rmdir(draft, dir_fd=at)
        except OSError as error:
            steps.exchange(at, draft, at, name)
            raise _Refused("conflict", _CHANGED) from error

    def _mode(self, found: Found, at: int, below: os.stat_result | None) -> None:
        """Apply a change of mode only: the file itself stays."""
        assert found.now is not None
        stamp = self._looked_at(found)
        opened = os.open(found.parts[-1], os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            if print_of(os.fstat(opened)) != print_of(below):
                raise _Refused("conflict", _CHANGED)
            before = print_of(below)
            os.chmod(steps.through(opened), plain(found.now.mode, folder=False))
            self._renumber(before, os.fstat(opened))
        finally:
            os.close(opened)
        self._done(found, stamp, _note(found, None))

    # --- folders and deletions -------------------------------------------------------------------

    def _folder(self, found: Found) -> None:
        """Make a folder, or give one that is there its new mode."""
        assert found.now is not None
        name = found.parts[-1]
        with self._at(found) as at:
            below = self._unchanged(found, at)
            stamp = self._looked_at(found)

            if below is not None and stat.S_ISDIR(below.st_mode):
                mode = plain(found.now.mode, folder=True, was=stat.S_IMODE(below.st_mode))
                with steps.folder(at, (name,)) as opened:
                    os.chmod(steps.through(opened), mode)
            else:
                passes_on_group = bool(os.fstat(at).st_mode & stat.S_ISGID)
                mode = plain(found.now.mode, folder=True, group=passes_on_group)
                self._new_folder(found, at, below, mode)
        self._done(found, stamp, _note(found, None))

    def _new_folder(self, found: Found, at: int, below: os.stat_result | None, mode: int) -> None:
        """Make a folder under a temporary name, and put it in its place."""
        name = found.parts[-1]
        draft = name_of(self._token, next(self._numbers))
        os.mkdir(draft, 0o700, dir_fd=at)
        try:
            self._own(at, draft, None)
            with steps.folder(at, (draft,)) as opened:
                os.chmod(steps.through(opened), mode)

            if below is not None:
                steps.exchange(at, draft, at, name)
            else:
                self._rename_new(at, draft, name)
        except BaseException:
            self._discard(at, draft, folder=True)
            raise

        # What it replaces, a file or a link, has the temporary name now.
        if below is not None:
            with self._other_names(at, draft, below):
                os.unlink(draft, dir_fd=at)

    def _delete(self, found: Found) -> None:
        """Delete what was deleted above; a folder must be empty by now."""
        name = found.parts[-1]
        note = ""
        with self._at(found) as at:
            below = self._unchanged(found, at)
            if below is not None and stat.S_ISDIR(below.st_mode):
                try:
                    os.rmdir(name, dir_fd=at)
                except OSError as error:
                    raise _Refused("failed", _FULL) from error
            elif below is not None:
                note = _note(found, below)
                with self._other_names(at, name, below):
                    os.unlink(name, dir_fd=at)

        above = steps.find(self.upper, found.parts)
        self._done(found, NOTHING if above is None else stamp_of(above), note)

    # --- shared ----------------------------------------------------------------------------------

    @contextmanager
    def _outcome(self, found: Found) -> Iterator[None]:
        try:
            yield
        except _Refused as refused:
            self.outcomes[found.path] = (refused.outcome, str(refused))
        except OSError as error:
            self.outcomes[found.path] = ("failed", f"It can't be written ({error.strerror}).")

    @contextmanager
    def _at(self, found: Found) -> Iterator[int]:
        """Open the folder below that contains it."""
        parts = found.parts[:-1]
        with ExitStack() as stack:
            try:
                at = stack.enter_context(steps.folder(self.lower, parts))
            except (FileNotFoundError, NotADirectoryError) as error:
                raise self._no_folder(parts) from error
            self._touched.add(parts)
            yield at

    def _no_folder(self, parts: Sequence[str]) -> _Refused:
        """Why the folder of a change can't be opened: it is new itself, or somebody took it away."""
        above = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        rows = [self.base.first[path] for path in above if path in self.base.first]

        is_new = any(not row.late and row.below[:1] != ("folder",) for row in rows)
        return _Refused("failed", _NEW) if is_new else _Refused("conflict", _GONE)

    def _discard(self, at: int, draft: str, *, folder: bool = False) -> None:
        try:
            (os.rmdir if folder else os.unlink)(draft, dir_fd=at)
        except FileNotFoundError:
            pass
        except OSError:
            self._left = True

    def _unchanged(self, found: Found, at: int) -> os.stat_result | None:
        """What is below, if it is unchanged since the change was first seen, or if that doesn't matter."""
        below = steps.look(at, found.parts[-1])
        if found.path in self.forced:
            return below

        row = self.base.first.get(found.path)
        if row is None or row.late or row.below != print_of(below):
            raise _Refused("conflict", _CHANGED)
        return below

    def _looked_at(self, found: Found) -> Print:
        """The stamp of what is above, if it is unchanged since it was last reported."""
        above = steps.find(self.upper, found.parts)
        if above is None or found.above is None or stamp_of(above) != stamp_of(found.above):
            raise _Refused("failed", _AGAIN)
        return stamp_of(above)

    def _own(self, at: int, name: str | None, below: os.stat_result | None, opened: int = -1) -> None:
        """As root: give a draft the owner of the file that it replaces, or of the folder around it."""
        if os.geteuid() != 0:
            return
        owner = below or os.fstat(at)
        if name is None:
            os.fchown(opened, owner.st_uid, owner.st_gid)
        else:
            os.chown(name, owner.st_uid, owner.st_gid, dir_fd=at, follow_symlinks=False)

    def _rename_new(self, at: int, draft: str, name: str) -> None:
        """Rename where nothing exists. If something exists after all, or matches ignoring case, it stays."""
        try:
            steps.rename_new(at, draft, name)
        except FileExistsError as error:
            raise _Refused("conflict", _CHANGED) from error

    @contextmanager
    def _other_names(self, at: int, name: str, below: os.stat_result) -> Iterator[None]:
        """Keep the base correct while one of several names of a file is removed: that changes the others' times."""
        if not stat.S_ISREG(below.st_mode) or below.st_nlink < 2:
            yield
            return

        opened = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            before = print_of(os.fstat(opened))
            yield
            self._renumber(before, os.fstat(opened))
        finally:
            os.close(opened)

    def _renumber(self, before: Print, now: os.stat_result) -> None:
        """Note that what had one print has another, because of what we did."""
        if now.st_nlink == 0:
            return
        for row in self.base.first.values():
            if row.below == before:
                row.below = print_of(now)

    def _done(self, found: Found, stamp: Print, note: str) -> None:
        self.outcomes[found.path] = ("applied", note)
        self.base.first.pop(found.path, None)
        if stamp:
            self.base.settled[found.path] = stamp

    def _flush(self) -> None:
        """Flush the folders to disk; their files already are."""
        for parts in self._touched:
            with suppress(OSError), steps.folder(self.lower, parts) as at:
                opened = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
                try:
                    os.fsync(opened)
                finally:
                    os.close(opened)


def _sorted(changes: Sequence[Found]) -> tuple[list[Found], list[Found], list[Found], list[Found]]:
    """Split into folders; files and links; deletions; files and links that replace a folder."""
    folders: list[Found] = []
    plain_ones: list[Found] = []
    deleted: list[Found] = []
    instead: list[Found] = []
    for found in changes:
        if found.now is None:
            deleted.append(found)
        elif found.now.type == "folder":
            folders.append(found)
        elif found.was is not None and found.was.type == "folder":
            instead.append(found)
        else:
            plain_ones.append(found)
    return folders, plain_ones, deleted, instead


def _groups(changes: Iterable[Found]) -> Iterator[list[Found]]:
    """The changes in groups that are written to disk together."""
    group: list[Found] = []
    size = 0
    for found in changes:
        group.append(found)
        if found.now is not None:
            size += found.now.size

        if len(group) >= _GROUP or size >= _HEAVY:
            yield group
            group = []
            size = 0
    if group:
        yield group


def _note(found: Found, replaced: os.stat_result | None) -> str:
    """Remarks about a change that was made."""
    notes = []
    if replaced is not None and stat.S_ISREG(replaced.st_mode) and replaced.st_nlink > 1:
        notes.append(
            f"It was one of {replaced.st_nlink} hard links to a file; the other links keep the old content."
        )
    if found.now is not None and found.now.type == "file" and found.now.mode & 0o6000:
        notes.append("Its set-user-ID and set-group-ID bits were not applied.")
    return " ".join(notes)
