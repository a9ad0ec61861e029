"""Finds the differences between the overlay and the directory, from the upper layer alone.

For each path that a module touched, the upper layer has the current state: a copy, a new file, a folder, or a
*whiteout* (a character device 0/0) for a deletion. A folder in it is merged with the one below unless it is marked
*opaque*: then it hides everything below it, and so does every folder in it. Many entries are not changes: a folder is
copied for each file that changes in it, and a file when it is opened for writing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.core.ports import FileState
from iact.sandbox.live import steps
from iact.sandbox.live.base import Print, is_whiteout, print_of, stamp_of
from iact.sandbox.live.digests import Digests

MOST: Final = 100_000
"""The most changes that are reported; with more, it can't be determined what a call did."""
_DIGESTED: Final = 256 << 20
"""The most bytes of deleted files that are digested in one run; other deleted files are not worth reading."""

OPAQUE: Final = "user.overlay.opaque"
_HEAD: Final = 21


@dataclass(frozen=True, slots=True)
class Found:
    """One difference."""

    path: str
    was: FileState | None
    now: FileState | None
    below: os.stat_result | None
    """The entry in the directory."""
    above: os.stat_result | None
    """The entry in the upper layer, or None if it is hidden from above."""
    gone: bool = False
    """It is a copied folder, or something in one, whose original no longer exists."""
    replaced: int = 0
    """When another folder took the place of one that contains it, in nanoseconds."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))


@dataclass(slots=True)
class Comparison:
    """The result of a walk over the upper layer, by path."""

    changes: list[Found] = field(default_factory=list)
    same: dict[str, Print] = field(default_factory=dict)
    """Entries that are not changes, with their stamps."""
    matched: dict[str, Print] = field(default_factory=dict)
    """Those of them that were compared in this walk, with the prints of the entries that they equal."""
    drifted: list[str] = field(default_factory=list)
    """Folders whose mode the user changed below, so that the copy's mode is out of date."""
    gone: list[str] = field(default_factory=list)
    """Copied folders that contain no change and whose originals are gone."""
    opaque: list[str] = field(default_factory=list)
    """Opaque folders that no longer hide anything."""
    born: set[str] = field(default_factory=set)
    """Folders that the overlay, while it is mounted, doesn't treat as merged with one below."""


def compare(upper: int, lower: int, digests: Digests, settled: Mapping[str, Print]) -> Comparison:
    """Compare the layers, given as descriptors. `settled`: entries of the upper layer to ignore.

    Raises:
        WorkspaceError: there are too many changes, or something can't be read.
    """
    try:
        return _Walk(upper, lower, digests, settled).run()
    except OSError as error:
        raise WorkspaceError(
            f"The changes in the live directory can't be read ({error.strerror}: {error.filename!r})."
        ) from error


class _Walk:
    def __init__(self, upper: int, lower: int, digests: Digests, settled: Mapping[str, Print]) -> None:
        self._upper = upper
        self._lower = lower
        self._digests = digests
        self._settled = settled
        self._budget = _DIGESTED
        """How many bytes of deleted files may still be digested."""
        self._opaque: list[str] = []
        """Opaque folders, whether or not they hide something."""
        self._gone: list[str] = []
        """Copied folders whose originals are gone, whether or not they contain a change."""
        self._left: list[_Folder] = []
        """Folders that are still to be compared."""
        self._out = Comparison()

    def run(self) -> Comparison:
        self._left.append(_Folder((), merged=True))
        while self._left:
            self._folder(self._left.pop())
        self._tidy()
        return self._out

    def _tidy(self) -> None:
        """Determine what is known only after everything was seen."""
        out = self._out
        with_changes = {above for found in out.changes if not found.gone for above in ancestors(found.path)}
        with_deletions = {
            above for found in out.changes if found.now is None for above in ancestors(found.path)
        }
        out.opaque = [path for path in self._opaque if path not in with_deletions]
        out.gone = [path for path in self._gone if path not in with_changes]

        # That such a folder is there is no change of the session's: it only copied it.
        without_changes = set(out.gone)
        out.changes = [found for found in out.changes if not (found.gone and found.path in without_changes)]
        out.changes.sort(key=lambda found: found.parts)

    def _folder(self, here: _Folder) -> None:
        if len(here.parts) > path_names.DEEPEST:
            raise WorkspaceError(
                f"Folders in the live directory are nested more than {path_names.DEEPEST} levels "
                "deep; remove the deepest."
            )
        with steps.folder(self._upper, here.parts) as up, self._below(here) as low:
            listed = steps.names(up)
            for name in listed:
                self._entry(here, up, low, name)
            if here.hidden and low is not None:
                for name in sorted(set(steps.names(low)) - set(listed)):
                    self._deleted("/".join((*here.parts, name)), low, name, None, here.replaced)

    @contextmanager
    def _below(self, here: _Folder) -> Iterator[int | None]:
        if not here.merged:
            yield None
            return
        with steps.folder(self._lower, here.parts) as low:
            yield low

    def _entry(self, here: _Folder, up: int, low: int | None, name: str) -> None:
        above = steps.look(up, name)
        if above is None:
            return

        below = None if low is None else steps.look(low, name)
        parts = (*here.parts, name)
        path = "/".join(parts)
        if stat.S_ISDIR(above.st_mode):
            self._entry_folder(here, up, low, parts, above, below)
            return

        stamp = stamp_of(above)
        if self._settled.get(path) == stamp:
            self._out.same[path] = stamp
            return

        if is_whiteout(above):
            if below is None or low is None:
                self._same(path, stamp, below)
            else:
                self._deleted(path, low, name, above, here.replaced)
            return

        now = self._digests.state(up, name, above)
        was = None if below is None or low is None else self._digests.state(low, name, below)
        if now == was and _alike(now, above, below):
            self._same(path, stamp, below)
            return

        self._add(Found(path, was, now, below, above, replaced=here.replaced))
        if below is not None and low is not None and stat.S_ISDIR(below.st_mode):
            self._deleted_inside(path, low, name, here.replaced)

    def _entry_folder(
        self,
        here: _Folder,
        up: int,
        low: int | None,
        parts: tuple[str, ...],
        above: os.stat_result,
        below: os.stat_result | None,
    ) -> None:
        path = "/".join(parts)
        name = parts[-1]
        stamp = stamp_of(above)
        merged = below is not None and stat.S_ISDIR(below.st_mode)

        with steps.folder(up, (name,)) as opened:
            marks = os.listxattr(steps.through(opened))
            opaque = OPAQUE in marks and os.getxattr(steps.through(opened), OPAQUE) == b"y"
            origin = os.getxattr(steps.through(opened), steps.ORIGIN) if steps.ORIGIN in marks else b""

        replaced = here.replaced
        if origin and merged and low is not None and below is not None and _replaced(origin, low, name):
            replaced = max(replaced, below.st_ctime_ns)

        hidden = merged and (here.hidden or opaque)
        if not merged or hidden:
            self._out.born.add(path)
        if opaque and merged:
            self._opaque.append(path)

        now = self._digests.state(up, name, above)
        was = None if below is None or low is None else self._digests.state(low, name, below)
        gone = False
        if now == was:
            self._out.same[path] = stamp
        elif merged and self._settled.get(path) == stamp:
            self._out.same[path] = stamp
            self._out.drifted.append(path)
        else:
            # The kernel marks its copies; where it can't, we know of them from before.
            gone = not merged and (steps.ORIGIN in marks or path in self._settled or here.gone)
            if gone:
                self._gone.append(path)
            self._add(Found(path, was, now, below, above, gone, replaced))

        self._left.append(_Folder(parts, merged=merged, hidden=hidden, gone=gone, replaced=replaced))

    def _deleted(self, path: str, low: int, name: str, above: os.stat_result | None, replaced: int) -> None:
        """Note that `name` in the folder `low` is deleted for modules, together with its content."""
        below = steps.look(low, name)
        if below is None:
            return

        digest = below.st_size <= self._budget
        if digest and stat.S_ISREG(below.st_mode):
            self._budget -= below.st_size

        was = self._digests.state(low, name, below, digest=digest)
        self._add(Found(path, was, None, below, above, replaced=replaced))
        if stat.S_ISDIR(below.st_mode):
            self._deleted_inside(path, low, name, replaced)

    def _deleted_inside(self, path: str, low: int, name: str, replaced: int) -> None:
        """Note deletions in the folder `name` of the folder `low`; recurses once per level."""
        if path.count("/") > path_names.DEEPEST:
            raise WorkspaceError(
                f"Folders in the live directory are nested more than {path_names.DEEPEST} levels "
                "deep; remove the deepest."
            )
        with steps.folder(low, (name,)) as inside:
            for each in steps.names(inside):
                self._deleted(f"{path}/{each}", inside, each, None, replaced)

    def _same(self, path: str, stamp: Print, below: os.stat_result | None) -> None:
        self._out.same[path] = stamp
        self._out.matched[path] = print_of(below)

    def _add(self, found: Found) -> None:
        self._out.changes.append(found)
        if len(self._out.changes) > MOST:
            raise WorkspaceError(
                f"More than {MOST:,} paths changed in the live directory, too many to review; let the "
                "agent undo them, or end the session and remove its folder live."
            )


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder of the upper layer that is still to be compared."""

    parts: tuple[str, ...]
    merged: bool
    """There is one below."""
    hidden: bool = False
    """The one below is hidden."""
    gone: bool = False
    """There was one below."""
    replaced: int = 0
    """As in `Found`."""


def _replaced(origin: bytes, low: int, name: str) -> bool:
    """Whether the folder below is not the one that was copied.

    The kernel stores the original's handle on the copy, after a head of 21 bytes (`struct ovl_fb`).
    """
    with steps.folder(low, (name,)) as opened:
        handle = steps.handle(opened)
    return handle is not None and len(origin) > _HEAD and not origin[_HEAD:].startswith(handle)


def _alike(state: FileState, above: os.stat_result, below: os.stat_result | None) -> bool:
    """Whether two equal states are really equal. If a file is too large to read, its time shows if it was written."""
    read = state.type != "file" or bool(state.sha256)
    return read or (below is not None and above.st_mtime_ns == below.st_mtime_ns)


def copied(upper: int, parts: Sequence[str]) -> bool:
    """Whether a folder of the upper layer is the kernel's copy of one below."""
    with steps.folder(upper, parts) as opened:
        return steps.ORIGIN in os.listxattr(steps.through(opened))


def ancestors(path: str) -> Iterator[str]:
    """The folders that contain a path, innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
