"""The overlay of one live directory, in the order in which things happen to it.

`refresh` before a call: what counts for nothing any more is taken out of the upper layer, the kernel forgets names,
and the moment is remembered. The call writes. `changes` after it: what differs, and whether the user was faster.
`apply` or `drop`, now or days later. Entries of the upper layer are taken out while no call is under way and nowhere
else: who has a name of the overlay in the kernel's memory would go on writing into a file that nobody sees any more.
For the same reason a file that somebody has open for writing stays (a background job's log), and so does what is in
a new folder as long as a process holds anything.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from core.errors import WorkspaceError
from core.ports import AppliedAs, AppliedChange, ChangeKind, FileChange
from sandbox.live import digests, drafts, holders, mounting, names, steps
from sandbox.live.apply import Applying
from sandbox.live.base import Base, First, print_of, stamp_of
from sandbox.live.compare import OPAQUE, Comparison, Found, compare
from sandbox.live.drop import Dropping
from sandbox.live.patch import Patch


class Overlay:
    """Implements `core.ports.LiveFiles`; made by `open_live`."""

    def __init__(self, directory: Path, store: Path) -> None:
        """Mount it, with what is kept in `store` from the last time.

        Raises:
            WorkspaceError: there can be none.
        """
        self._layers = mounting.layers(directory, store)
        self._digests = digests.Digests()
        self._found: dict[str, Found] | None = None
        self._compared = Comparison()
        self._born: set[str] = set()
        with ExitStack() as stack:
            self._owner = _kept(stack, mounting.own(self._layers.store))
            mounting.unmount(self._layers.merged)  # what a killed process left
            self._upper = _kept(stack, steps.open_top(self._layers.upper))
            self._lower = _kept(stack, steps.open_top(self._layers.directory))
            drafts.clean(self._layers.store, self._lower)
            self._base = Base.load(self._layers.store / "base.json")
            self._moment = self._last_moment()
            self._alike()
            self.changes()
            self._sweep(held=lambda: False)
            self._fold()
            mounting.mount(self._layers)
            stack.pop_all()
        self._found = None
        self._open = True

    @property
    def folder(self) -> Path:
        """The overlay: what modules get as their workspace."""
        return self._layers.merged

    def refresh(self) -> None:
        """Before a call, while none is under way: let modules see the directory as it is now.

        Raises:
            WorkspaceError: the directory, or the overlay, is no longer there.
        """
        self._check()
        self._moment = time.time_ns()
        self._sweep(held=lambda: holders.held(self._layers.merged))
        self._alike()
        mounting.renew(self._layers.merged)
        os.utime(self._layers.store / "moment", ns=(self._moment, self._moment))

    def changes(self) -> Sequence[FileChange]:
        """All that differs from the directory now.

        Raises:
            WorkspaceError: it is too much, or can't be read.
        """
        found = compare(self._upper, self._lower, self._digests, self._base.settled)
        self._compared = found
        self._born |= found.born
        first = self._base.first
        self._base.first = {
            change.path: first.get(change.path) or self._seen_first(change) for change in found.changes
        }
        self._base.settled = found.same
        self._base.save()
        self._found = {names.encode(change.path): change for change in found.changes}
        return tuple(self._told(written, change) for written, change in self._found.items())

    def patch(self, path: str, *, most: int = 200_000) -> str:
        """The change of one path as a unified diff for people; "" if it is none."""
        change = self._last().get(path)
        return "" if change is None else Patch(self._upper, self._lower, most).of(change)

    def apply(self, paths: Sequence[str], *, force: Sequence[str] = ()) -> Sequence[AppliedChange]:
        """Make these changes real, as `changes` last told of them; what is no change any more is applied already.

        Raises:
            WorkspaceError: nothing could be applied.
        """
        known = self._last()
        wanted = {path: known[path] for path in paths if path in known}
        forced = {known[path].path for path in force if path in known}
        going = Applying(self._upper, self._lower, self._layers.store, self._base, forced)
        if wanted:
            try:
                going.run(wanted.values())
            finally:
                with suppress(WorkspaceError):  # it is known from what is below as well
                    self._base.save()
            for path, change in wanted.items():
                if going.outcomes[change.path][0] == "applied":
                    del known[path]
        return tuple(_outcome(path, wanted, going.outcomes) for path in dict.fromkeys(paths))

    def drop(self, paths: Sequence[str]) -> None:
        """Let these paths be again what they are in the directory; a folder that is new there goes with what is in it.

        Raises:
            WorkspaceError: something can't be taken away.
        """
        known = self._last()
        dropping = Dropping(self._upper, self._lower, self._layers.store)
        try:
            for change in sorted(
                (known[path] for path in set(paths) & known.keys()), key=lambda one: one.parts
            ):
                dropping.drop(change.parts)
        except OSError as error:
            raise WorkspaceError(
                f"A change can't be dropped ({error.strerror}: {error.filename!r}); see that {self._layers.store} "
                "can be written."
            ) from error
        finally:
            mounting.renew(self._layers.merged)
            self._found = None
        self.changes()

    def close(self) -> None:
        """Unmount, and keep what was not applied; harmless when done twice."""
        if not self._open:
            return
        self._open = False
        mounting.unmount(self._layers.merged)
        for descriptor in (self._upper, self._lower, self._owner):
            os.close(descriptor)

    # --- opening and refreshing ------------------------------------------------------------------

    def _check(self) -> None:
        directory = self._layers.directory
        try:
            same = os.path.samestat(os.stat(directory, follow_symlinks=False), os.fstat(self._lower))
        except OSError:
            same = False
        if not same:
            raise WorkspaceError(
                f"The live directory {directory} was moved, or another was put in its place; end the session and "
                "resume it, or move the directory back."
            )

    def _last_moment(self) -> int:
        """When the last call before this began, for what was not looked at since; now, if there was none."""
        moment = self._layers.store / "moment"
        try:
            return moment.stat().st_mtime_ns
        except OSError:
            moment.touch()
            return time.time_ns()

    def _alike(self) -> None:
        """Let the overlay's top have the mode and owner of the directory itself."""
        above, below = os.fstat(self._upper), os.fstat(self._lower)
        if (above.st_uid, above.st_gid) != (below.st_uid, below.st_gid):
            os.fchown(self._upper, below.st_uid, below.st_gid)
        if above.st_mode != below.st_mode:
            os.fchmod(self._upper, stat.S_IMODE(below.st_mode))

    def _sweep(self, held: Callable[[], bool]) -> None:
        """Take out of the upper layer what counts for nothing."""
        busy: bool | None = None
        for path in list(self._base.settled):
            stamp = self._base.settled[path]
            if stamp[0] == "folder":
                continue
            if self._in_new_folder(path):
                busy = held() if busy is None else busy
                if busy:
                    continue
            if self._take_out(path, stamp):
                del self._base.settled[path]
        for path in self._compared.opaque:
            with suppress(OSError), steps.folder(self._upper, path.split("/")) as at:
                os.removexattr(steps.through(at), OPAQUE)
        for path in self._compared.drifted:
            self._follow(path)
        for path in sorted(self._compared.gone, reverse=True):
            with suppress(OSError), steps.folder(self._upper, path.split("/")[:-1]) as at:
                os.rmdir(path.rpartition("/")[2], dir_fd=at)
        self._compared = Comparison()
        if busy is False:
            self._born.clear()

    def _in_new_folder(self, path: str) -> bool:
        if not self._born:
            return False
        parts = path.split("/")
        return any("/".join(parts[:end]) in self._born for end in range(1, len(parts)))

    def _take_out(self, path: str, stamp: tuple[int | str, ...]) -> bool:
        """Remove a copy that is still as it was, and that nobody writes to."""
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
                os.unlink(name, dir_fd=at)
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
        """While it is not mounted: take out copied folders that hold nothing."""
        for path in sorted(self._base.settled, key=len, reverse=True):
            if self._base.settled[path][0] == "folder":
                *around, name = path.split("/")
                with suppress(OSError), steps.folder(self._upper, around) as at:
                    os.rmdir(name, dir_fd=at)
                    del self._base.settled[path]
        self._born.clear()
        self._base.save()

    # --- telling ---------------------------------------------------------------------------------

    def _seen_first(self, change: Found) -> First:
        """What is below, and whether that changed after the call began, or after a copy of it was made."""
        below = change.below
        late = change.gone
        if below is not None and not stat.S_ISDIR(below.st_mode):
            late = below.st_ctime_ns > self._moment
        return First(print_of(below), late)

    def _told(self, written: str, change: Found) -> FileChange:
        kind: ChangeKind = "add" if change.was is None else "delete" if change.now is None else "modify"
        row = self._base.first[change.path]
        conflict = row.late or row.below != print_of(change.below)
        return FileChange(written, kind, change.was, change.now, conflict)

    def _last(self) -> dict[str, Found]:
        if self._found is None:
            self.changes()
        assert self._found is not None
        return self._found


def _outcome(
    path: str, wanted: Mapping[str, Found], outcomes: Mapping[str, tuple[AppliedAs, str]]
) -> AppliedChange:
    if (change := wanted.get(path)) is not None:
        outcome, why = outcomes[change.path]
        return AppliedChange(path, outcome, why)
    if names.decode(path) is None:
        return AppliedChange(path, "failed", "This is no path in the live directory.")
    return AppliedChange(path, "applied")


def _kept(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor
