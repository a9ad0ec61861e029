"""Takes single changes out of the upper layer, so that the directory shows through again.

A change may have no entry of its own there: the files of a removed folder are hidden by the folder's one whiteout,
those of a replaced one by its being opaque. To let one of them be seen again the cover is first written out, as one
whiteout for each thing that it hides, which is the same to see.
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

from sandbox.live import steps
from sandbox.live.base import is_whiteout
from sandbox.live.compare import OPAQUE


@dataclass(frozen=True, slots=True)
class Dropping:
    """`upper`, `lower`: descriptors of the layers; `store`: a folder of ours on the upper's file system."""

    upper: int
    lower: int
    store: Path

    def drop(self, parts: Sequence[str]) -> None:
        """Let `parts` lead to what is below; a folder that is new there goes with what is in it.

        Folders before what is in them. Raises `OSError`.
        """
        for end in range(1, len(parts)):
            if not self._written_out(parts[:end]):
                return
        above, below = steps.find(self.upper, parts), steps.find(self.lower, parts)
        if above is None:
            return
        *around, name = parts
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
                os.unlink(name, dir_fd=at)

    def _written_out(self, parts: Sequence[str]) -> bool:
        """Let no cover lie on what is in this folder; False if nothing in it is in the upper layer."""
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
        """Put in the place of `name` a folder with a whiteout for each thing that is in the one below."""
        draft = f"drop-{secrets.token_hex(8)}"
        store = steps.open_top(self.store)
        try:
            os.mkdir(draft, 0o700, dir_fd=store)
            with steps.folder(store, (draft,)) as made, steps.folder(self.lower, parts) as below:
                for hidden in steps.names(below):
                    _whiteout(made, hidden)
                status = os.fstat(below)
                if os.geteuid() == 0:
                    os.chown(steps.through(made), status.st_uid, status.st_gid)
                os.chmod(steps.through(made), stat.S_IMODE(status.st_mode))
            steps.exchange(store, draft, at, name)
        finally:
            _remove(store, draft)
            os.close(store)

    def _uncover(self, at: int, parts: Sequence[str]) -> None:
        with suppress(FileNotFoundError, NotADirectoryError), steps.folder(self.lower, parts) as below:
            for hidden in steps.names(below):
                above = steps.look(at, hidden)
                if above is None:
                    _whiteout(at, hidden)
                elif stat.S_ISDIR(above.st_mode):
                    with steps.folder(at, (hidden,)) as inside:
                        os.setxattr(steps.through(inside), OPAQUE, b"y")
        os.removexattr(steps.through(at), OPAQUE)


def _whiteout(at: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mknod(name, stat.S_IFCHR | 0o600, 0, dir_fd=at)


def _remove(store: int, draft: str) -> None:
    """What was there before, or what a failure left of the new."""
    status = steps.look(store, draft)
    if status is None:
        return
    if stat.S_ISDIR(status.st_mode):
        shutil.rmtree(draft, dir_fd=store)
    else:
        os.unlink(draft, dir_fd=store)
