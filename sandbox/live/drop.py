"""Removes single changes from the upper layer, so that the directory shows through again.

A change may have no entry of its own there: the files of a deleted folder are hidden by the folder's single whiteout,
and those of a replaced folder by its opaque mark. To uncover one of them, that cover is first expanded into one
whiteout for each entry that it hides, which looks the same to modules.

An entry that a process holds is first removed through the overlay, so that the kernel doesn't take it for an existing
one. That briefly leaves a whiteout, which must not be mistaken for a deletion if we are killed at that moment, so it is
recorded.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.sandbox.live import copying, steps
from iact.sandbox.live.base import is_whiteout
from iact.sandbox.live.compare import OPAQUE
from iact.sandbox.live.holders import Held
from iact.sandbox.live.mounting import Layers

_NOTE: Final = "dropping"


@dataclass(frozen=True, slots=True)
class Dropping:
    """One run over changes that are dropped."""

    upper: int
    """A descriptor of the upper layer."""
    lower: int
    """A descriptor of the user's directory."""
    layers: Layers
    held: Held
    """The entries that processes hold."""

    def drop(self, parts: Sequence[str]) -> None:
        """Make `parts` show what is below. A folder that is new there is dropped with its content.

        Call it for folders before their content. Raises `OSError`.
        """
        # The folders around it, from the outermost: without one of them above, nothing covers what is below.
        for end in range(1, len(parts)):
            if not self._written_out(parts[:end]):
                return

        self._take_out(parts)
        (self.layers.store / _NOTE).unlink(missing_ok=True)

    def _take_out(self, parts: Sequence[str]) -> None:
        """Remove an entry of the upper layer, or make it show what is below where it must stay."""
        *around, name = parts
        below = steps.find(self.lower, parts)
        above = steps.find(self.upper, parts)
        if above is None:
            return

        if self._is_held(parts, above, below):
            if below is not None and stat.S_ISREG(below.st_mode) and stat.S_ISREG(above.st_mode):
                self._refill(parts)
                return

            self._release(parts, below)
            above = steps.find(self.upper, parts)
            if above is None:
                return

        with steps.folder(self.upper, around) as at:
            if below is not None and stat.S_ISDIR(below.st_mode):
                if stat.S_ISDIR(above.st_mode):
                    with steps.folder(at, (name,)) as opened:
                        os.chmod(steps.through(opened), stat.S_IMODE(below.st_mode))
                else:
                    self._covered(at, name, parts)
            elif stat.S_ISDIR(above.st_mode):
                shutil.rmtree(name, dir_fd=at)
            else:
                steps.take_out(at, name, above)

    def _is_held(self, parts: Sequence[str], above: os.stat_result, below: os.stat_result | None) -> bool:
        if "/".join(parts) in self.held.paths or above.st_ino in self.held.watched:
            return True
        return below is not None and below.st_ino in self.held.watched

    def _refill(self, parts: Sequence[str]) -> None:
        """Give the copy the content of the file below: while it is held, the kernel knows no other by this name."""
        *around, name = parts
        with steps.folder(self.lower, around) as low, steps.folder(self.upper, around) as up:
            source = steps.read(low, name)
            target = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=up)
            try:
                status = os.fstat(source)
                os.ftruncate(target, 0)
                copying.copy(source, target, status.st_size)
                os.fchmod(target, stat.S_IMODE(status.st_mode))
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
            finally:
                os.close(source)
                os.close(target)

    def _release(self, parts: Sequence[str], below: os.stat_result | None) -> None:
        """Remove it the way modules do, unless it is a folder that stays."""
        above = steps.find(self.upper, parts)
        if above is None or is_whiteout(above):
            return
        if stat.S_ISDIR(above.st_mode) and below is not None and stat.S_ISDIR(below.st_mode):
            return

        # The kernel leaves a whiteout, which `finish` removes if this process ends before we do.
        (self.layers.store / _NOTE).write_text(path_names.encode("/".join(parts)), encoding="utf-8")
        *around, name = parts
        merged = steps.open_top(self.layers.merged)
        try:
            with steps.folder(merged, around) as at:
                if stat.S_ISDIR(above.st_mode):
                    shutil.rmtree(name, dir_fd=at)
                else:
                    os.unlink(name, dir_fd=at)
        finally:
            os.close(merged)

    def _written_out(self, parts: Sequence[str]) -> bool:
        """Expand any cover over the content of this folder. False if the upper layer has nothing in it."""
        above = steps.find(self.upper, parts)
        if above is None:
            return False

        *around, name = parts
        if is_whiteout(above):
            with steps.folder(self.upper, around) as at:
                self._covered(at, name, parts)
            return True
        if not stat.S_ISDIR(above.st_mode):
            return False

        with steps.folder(self.upper, parts) as at:
            if OPAQUE in os.listxattr(steps.through(at)):
                self._uncover(at, parts)
        return True

    def _covered(self, at: int, name: str, parts: Sequence[str]) -> None:
        """Replace `name` by a folder with a whiteout for each entry of the folder below."""
        draft = f"drop-{secrets.token_hex(8)}"
        store = steps.open_top(self.layers.store)
        try:
            os.mkdir(draft, 0o700, dir_fd=store)
            with steps.folder(store, (draft,)) as new, steps.folder(self.lower, parts) as below:
                for hidden in steps.names(below):
                    _whiteout(new, hidden)

                status = os.fstat(below)
                if os.geteuid() == 0:
                    os.chown(steps.through(new), status.st_uid, status.st_gid)
                os.chmod(steps.through(new), stat.S_IMODE(status.st_mode))

            steps.exchange(store, draft, at, name)
        finally:
            _remove(store, draft)
            os.close(store)

    def _uncover(self, at: int, parts: Sequence[str]) -> None:
        """Replace the mark of an opaque folder by a whiteout for each entry that it hides."""
        with suppress(FileNotFoundError, NotADirectoryError), steps.folder(self.lower, parts) as below:
            for hidden in steps.names(below):
                above = steps.look(at, hidden)
                if above is None:
                    _whiteout(at, hidden)
                elif stat.S_ISDIR(above.st_mode):
                    with steps.folder(at, (hidden,)) as inside:
                        os.setxattr(steps.through(inside), OPAQUE, b"y")
        os.removexattr(steps.through(at), OPAQUE)


def finish(store: Path, upper: int) -> None:
    """Remove the whiteout that a killed process may have left while dropping a change."""
    note = store / _NOTE
    try:
        parts = path_names.decode(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    above = None if parts is None else steps.find(upper, parts)
    if parts is not None and above is not None and is_whiteout(above):
        with steps.folder(upper, parts[:-1]) as at:
            os.unlink(parts[-1], dir_fd=at)
    note.unlink()


def _whiteout(at: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mknod(name, stat.S_IFCHR | 0o600, 0, dir_fd=at)


def _remove(store: int, draft: str) -> None:
    """Remove what was there before, or what a failure left of the new folder."""
    status = steps.look(store, draft)
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(draft, dir_fd=store)
    else:
        os.unlink(draft, dir_fd=store)
