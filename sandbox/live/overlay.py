"""The overlay of one live directory, in the order of its use.

`refresh` before a call: settled entries are removed from the upper layer, the kernel drops its cached names, and the
moment is recorded. The call writes. `changes` after it: what differs, and whether the user changed it first. `apply` or
`drop`, now or days later. Entries of the upper layer are removed only while no call is running: a process with a cached
name of the overlay would go on writing to a file that is no longer visible. For the same reason, a file that a process
has open for writing stays (a background job's log), and so does the content of a new folder while a process holds
anything in it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.core.ports import AppliedAs, AppliedChange, ChangeKind, FileChange
from iact.sandbox.live import digests, drafts, mounting, steps
from iact.sandbox.live.apply import Applying
from iact.sandbox.live.base import Base, First, Print, print_of, stamp_of
from iact.sandbox.live.compare import OPAQUE, Comparison, Found, ancestors, compare, copied
from iact.sandbox.live.drop import Dropping, finish
from iact.sandbox.live.holders import Held, Holders
from iact.sandbox.live.patch import LARGEST, Patch

_COARSE: Final = 5
"""Linux's `CLOCK_REALTIME_COARSE`, which Python doesn't name."""


class Overlay:
    """Implements `core.ports.LiveFiles`; created by `open_live`."""

    def __init__(self, directory: Path, store: Path) -> None:
        """Mount it, with the changes kept in `store` from last time.

        Raises:
            WorkspaceError: an overlay is not possible.
        """
        self._layers = mounting.layers(directory, store)
        self._digests = digests.Digests()
        self._found: dict[str, Found] | None = None
        self._compared = Comparison()
        self._born: set[str] = set()
        self._stale: set[str] = set()
        self._matched: dict[str, Print | None] = {}
        self._holders: Holders | None = None
        self._applied = 0
        """When we last changed something in the directory ourselves, which is not a conflict at the next call."""
        with _explained(self._layers), ExitStack() as stack:
            self._owner = _kept(stack, mounting.own(self._layers.store))
            mounting.unmount(self._layers.merged)  # left by a killed process
            self._upper = _kept(stack, steps.open_top(self._layers.upper))
            self._lower = _kept(stack, steps.open_top(self._layers.directory))
            drafts.clean(self._layers.store, self._lower)
            finish(self._layers.store, self._upper)
            self._base = Base.load(self._layers.store / "base.json")
            self._moment = self._last_moment()
            self._alike()
            with suppress(WorkspaceError):  # too many changes: the next caller of `changes` gets the error
                self.changes()
                self._sweep(Held())
                self._fold()
            mounting.mount(self._layers)
            self._holders = Holders(self._layers.merged)
            stack.pop_all()
        self._found = None
        self._open = True

    @property
    def folder(self) -> Path:
        """The overlay: what modules get as their workspace."""
        return self._layers.merged

    @property
    def written(self) -> Path:
        """The upper layer."""
        return self._layers.upper

    def refresh(self, *, works: bool = True) -> Sequence[str]:
        """Before a call, while none is running: make modules see the directory as it is now.

        Returns the paths for which that is not possible, because a process holds the previous entry. A read-only
        call records no moment. An older moment only means that more changes count as conflicts, about which a person
        is asked.

        Raises:
            WorkspaceError: the directory, or the overlay, no longer exists.
        """
        self._check()
        with _explained(self._layers):
            return self._renewed(works=works)

    def _renewed(self, *, works: bool) -> list[str]:
        holds_files = any(stamp[0] != "folder" for stamp in self._base.settled.values())
        held = self._held(mapped=holds_files)
        self._sweep(held)
        self._alike()

        if works:
            self._moment = _tick(past=self._applied)
            os.utime(self._layers.store / "moment", ns=(self._moment, self._moment))
        mounting.renew(self._layers.merged)

        self._born &= held.paths
        self._stale = {path for path in held.paths if self._differs(path)}
        return sorted(path_names.encode(path) for path in self._stale)

    def changes(self) -> Sequence[FileChange]:
        """Everything that differs from the directory now.

        Raises:
            WorkspaceError: there are too many changes, or they can't be read.
        """
        compared = compare(self._upper, self._lower, self._digests, self._base.settled)
        self._compared = compared

        # What was seen before keeps what was below it when it was first seen.
        first = self._base.first
        self._base.first = {
            change.path: first.get(change.path) or self._seen_first(change) for change in compared.changes
        }
        self._base.settled = compared.same
        self._matched = {path: compared.matched.get(path, self._matched.get(path)) for path in compared.same}
        self._base.save()

        self._born |= compared.born
        self._found = {path_names.encode(change.path): change for change in compared.changes}
        return tuple(self._told(written, change) for written, change in self._found.items())

    def patch(self, path: str, *, most: int = 200_000) -> str:
        """The change of one path as a unified diff for people; "" if there is none."""
        change = self._last().get(path)
        return "" if change is None else Patch(self._upper, self._lower, most).of(change)

    def texts(self, path: str) -> tuple[str, str] | None:
        """The text of one path before and after its change; None where texts don't show it."""
        change = self._last().get(path)
        return None if change is None else Patch(self._upper, self._lower, LARGEST).texts(change)

    def apply(self, paths: Sequence[str], *, force: Sequence[str] = ()) -> Sequence[AppliedChange]:
        """Apply these changes as `changes` last reported them. A path that is no longer changed counts as applied.

        Raises:
            WorkspaceError: nothing could be applied.
        """
        known = self._last()
        wanted = {path: known[path] for path in paths if path in known}
        forced = {known[path].path for path in force if path in known}
        applying = Applying(self._upper, self._lower, self._layers.store, self._base, forced)
        if wanted:
            try:
                applying.run(wanted.values())
            finally:
                self._applied = time.time_ns()
                with suppress(WorkspaceError):  # the state below shows it as well
                    self._base.save()

            for path, change in wanted.items():
                outcome, _ = applying.outcomes[change.path]
                if outcome == "applied":
                    self._matched[change.path] = print_of(steps.find(self._lower, change.parts))
                    del known[path]
        return tuple(_outcome(path, wanted, applying.outcomes) for path in dict.fromkeys(paths))

    def drop(self, paths: Sequence[str]) -> None:
        """Reset these paths to their state in the directory. A folder that is new there is dropped with its content.

        Raises:
            WorkspaceError: something can't be removed.
        """
        self.changes()
        known = self._last()
        dropping = Dropping(self._upper, self._lower, self._layers, self._held(mapped=True))
        wanted = [known[path] for path in set(paths) & known.keys()]
        try:
            for change in sorted(wanted, key=lambda change: change.parts):
                dropping.drop(change.parts)
        except OSError as error:
            raise WorkspaceError(
                f"A change can't be dropped ({error.strerror}: {error.filename!r}); make sure that "
                f"{self._layers.store} is writable."
            ) from error
        finally:
            mounting.renew(self._layers.merged)
            self._found = None
        self.changes()

    def close(self) -> None:
        """Unmount, and keep what was not applied. May be called twice."""
        if not self._open:
            return

        self._open = False
        mounting.unmount(self._layers.merged)
        for descriptor in (self._upper, self._lower, self._owner):
            os.close(descriptor)

    # --- opening and refreshing ------------------------------------------------------------------

    def _check(self) -> None:
        """Make sure that the directory is still where it was."""
        directory = self._layers.directory
        try:
            same = os.path.samestat(os.stat(directory, follow_symlinks=False), os.fstat(self._lower))
        except OSError:
            same = False

        if not same:
            raise WorkspaceError(
                f"The live directory {directory} was moved or replaced; end the session and resume "
                "it, or move the directory back."
            )

    def _last_moment(self) -> int:
        """When the last call before this process began, for changes not seen since; now, if there was none."""
        moment = self._layers.store / "moment"
        try:
            return moment.stat().st_mtime_ns
        except OSError:
            moment.touch()
            return _tick(past=time.time_ns())

    def _alike(self) -> None:
        """Give the overlay's top folder the mode and owner of the directory itself."""
        above = os.fstat(self._upper)
        below = os.fstat(self._lower)
        if (above.st_uid, above.st_gid) != (below.st_uid, below.st_gid):
            os.fchown(self._upper, below.st_uid, below.st_gid)
        if above.st_mode != below.st_mode:
            os.fchmod(self._upper, stat.S_IMODE(below.st_mode))

    def _held(self, *, mapped: bool) -> Held:
        return Held() if self._holders is None else self._holders.held(mapped=mapped)

    def _differs(self, path: str) -> bool:
        """Whether the overlay shows, at a held path, something other than the directory's current entry."""
        parts = path.split("/")
        above = steps.find(self._upper, parts)
        below = steps.find(self._lower, parts)

        # A copy of a folder still shows the one below; all else that is above is the session's own change.
        could_be_copy = above is not None and below is not None and stat.S_ISDIR(above.st_mode)
        if above is not None and not could_be_copy:
            return False

        try:
            seen = os.stat(self._layers.merged / path, follow_symlinks=False)
        except OSError:
            return below is not None
        if below is None or stat.S_IFMT(seen.st_mode) != stat.S_IFMT(below.st_mode):
            return True
        if above is not None and not copied(self._upper, parts):
            return False

        # If the layers are on two file systems, folders have the overlay's own inode numbers.
        one_system = os.fstat(self._upper).st_dev == os.fstat(self._lower).st_dev
        if one_system or not stat.S_ISDIR(below.st_mode):
            return seen.st_ino != below.st_ino
        return above is None and seen.st_mtime_ns != below.st_mtime_ns

    def _sweep(self, held: Held) -> None:
        """Remove settled entries from the upper layer, except those held, or in a new folder that is held."""
        new_and_held = self._born & held.paths
        for path, stamp in list(self._base.settled.items()):
            in_held_folder = not new_and_held.isdisjoint(ancestors(path))
            if stamp[0] == "folder" or path in held.paths or in_held_folder:
                continue
            if held.watched and self._watched(path, held.watched):
                continue
            if self._take_out(path, stamp):
                del self._base.settled[path]
                self._matched.pop(path, None)

        for path in self._compared.opaque:
            with suppress(OSError), steps.folder(self._upper, path.split("/")) as at:
                os.removexattr(steps.through(at), OPAQUE)

        for path in self._compared.drifted:
            self._follow(path)

        # The innermost first: a folder is removed only if it is empty.
        for path in sorted(self._compared.gone, reverse=True):
            *around, name = path.split("/")
            with suppress(OSError), steps.folder(self._upper, around) as at:
                os.rmdir(name, dir_fd=at)
        self._compared = Comparison()

    def _watched(self, path: str, watched: Set[int]) -> bool:
        """Whether the path is watched, by its inode number in either layer."""
        statuses = (steps.find(top, path.split("/")) for top in (self._upper, self._lower))
        return any(status is not None and status.st_ino in watched for status in statuses)

    def _take_out(self, path: str, stamp: tuple[int | str, ...]) -> bool:
        """Remove a copy that is unchanged and that no process writes to."""
        *around, name = path.split("/")
        try:
            with steps.folder(self._upper, around) as at:
                above = steps.look(at, name)
                if above is None:
                    return True
                if stamp_of(above) != stamp:
                    return False
                if stat.S_ISREG(above.st_mode) and digests.written(at, name):
                    return False
                steps.take_out(at, name, above)
        except OSError:
            return False
        return True

    def _follow(self, path: str) -> None:
        """Give a copied folder the mode that the user gave the one below."""
        below = steps.find(self._lower, path.split("/"))
        if below is None or not stat.S_ISDIR(below.st_mode):
            return
        with suppress(OSError), steps.folder(self._upper, path.split("/")) as at:
            os.chmod(steps.through(at), stat.S_IMODE(below.st_mode))
            self._base.settled[path] = print_of(os.fstat(at))

    def _fold(self) -> None:
        """While it is not mounted: remove copied folders that are empty."""
        for path in sorted(self._base.settled, key=len, reverse=True):
            if self._base.settled[path][0] == "folder":
                *around, name = path.split("/")
                with suppress(OSError), steps.folder(self._upper, around) as at:
                    os.rmdir(name, dir_fd=at)
                    del self._base.settled[path]
        self._born.clear()
        self._base.save()

    # --- reporting -------------------------------------------------------------------------------

    def _seen_first(self, change: Found) -> First:
        """What is below, and whether modules may have seen something else there when they changed it."""
        below = change.below
        path = change.path
        late = change.gone or change.replaced >= self._moment
        if self._stale:
            late = late or not self._stale.isdisjoint((path, *ancestors(path)))

        if below is not None and not stat.S_ISDIR(below.st_mode):
            late = late or below.st_ctime_ns >= self._moment

            # A copy that could not be removed was there before. In a new folder, modules see only their own files.
            matched = self._matched.get(path)
            if matched is not None:
                late = late or matched != print_of(below)
            elif not self._born.isdisjoint(ancestors(path)):
                late = True
        return First(print_of(below), late)

    def _told(self, written: str, change: Found) -> FileChange:
        kind: ChangeKind = "modify"
        if change.was is None:
            kind = "add"
        elif change.now is None:
            kind = "delete"

        row = self._base.first[change.path]
        conflict = row.late or row.below != print_of(change.below)
        return FileChange(written, kind, change.was, change.now, conflict)

    def _last(self) -> dict[str, Found]:
        if self._found is None:
            self.changes()
        assert self._found is not None
        return self._found


@contextmanager
def _explained(layers: mounting.Layers) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WorkspaceError(
            f"The overlay of {layers.directory} can't be kept in {layers.store} ({error.strerror}); "
            "make sure that both are writable and that the disk is not full."
        ) from error


def _outcome(
    path: str, wanted: Mapping[str, Found], outcomes: Mapping[str, tuple[AppliedAs, str]]
) -> AppliedChange:
    change = wanted.get(path)
    if change is not None:
        outcome, why = outcomes[change.path]
        return AppliedChange(path, outcome, why)

    # What is no longer changed counts as applied.
    if path_names.decode(path) is None:
        return AppliedChange(path, "failed", "This path is not in the live directory.")
    return AppliedChange(path, "applied")


def _kept(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _tick(*, past: int) -> int:
    """Return a time that no future change precedes, and that is later than `past`.

    File systems take times from a clock that advances only every few milliseconds, and some of them also from the exact
    one. So a change made since the coarse clock last advanced may be mistaken for a future one.
    """
    while (now := time.clock_gettime_ns(_COARSE)) <= min(past, time.time_ns()):  # clocks can be set back
        time.sleep(0.0003)
    return now
