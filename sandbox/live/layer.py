"""A layer over a folder that is thrown away: an overlay whose upper layer is in memory.

What is written in it is bounded, is charged to the module that writes it, and never reaches a disk. The folder below
may change meanwhile; `renew` makes the kernel forget the names that it has cached.
"""

from __future__ import annotations

import itertools
import os
import stat
import tempfile
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Final

from iact.core import path_names
from iact.core.errors import WorkspaceError
from iact.sandbox import owner, reaper, socket_folder
from iact.sandbox.live import mounting
from iact.sandbox.live.base import stamp_of
from iact.sandbox.workspace.mounts import below

SIZE: Final = 256 << 20
"""The most bytes that one layer holds."""
FILES: Final = 32_768
"""The most files that one layer holds."""
_OPTIONS: Final = "index=off,metacopy=off,redirect_dir=nofollow,xino=off"
_NUMBERS: Final = itertools.count(1)
"""Numbers of the layers of this process, as several hosts can share one data directory."""


class Layer:
    """Implements `core.ports.ThrownAwayLayer`; created by `open_layer`."""

    def __init__(self, folder: Path, data: Path) -> None:
        """Mount a layer over `folder`, with what it needs in the data directory `data`.

        Raises:
            WorkspaceError: it is not possible; the message says why.
        """
        directory = folder.resolve()
        inside = below(directory)
        if inside:
            raise WorkspaceError(
                f"Another file system is mounted in {folder}, at {inside[0]}; a layer over it would show an empty "
                "folder there."
            )

        # Where the reaper looks for what a killed process left. The name is unique, because an instance is known by it.
        self._claim = owner.Claim(data)
        try:
            claim = self._claim.name
        except OSError as error:
            raise _not_made(folder, data, error) from error
        self._store = reaper.sockets(data) / f"{claim}@layer-{next(_NUMBERS)}"
        self._layers = mounting.Layers(directory, self._store, self._store.name)
        self._owner = -1
        try:
            self._mount()
        except OSError as error:
            self.close()
            raise _not_made(folder, data, error) from error
        except BaseException:
            self.close()
            raise

    def _mount(self) -> None:
        if not socket_folder.make_temporary(self._store, size=SIZE, files=FILES):
            raise WorkspaceError("A layer that is thrown away needs the right to mount, which only root has.")
        self._store.chmod(0o700)
        self._owner = mounting.own(self._store)

        # The folder's own mode and owner are those of the upper layer, whatever is below.
        status = self._layers.directory.stat()
        for folder in (self._layers.upper, self._layers.work, self._layers.merged):
            folder.mkdir(mode=0o700)
        os.chown(self._layers.upper, status.st_uid, status.st_gid)
        self._layers.upper.chmod(stat.S_IMODE(status.st_mode))

        mounting.mount(self._layers, options=_OPTIONS)

    @property
    def folder(self) -> Path:
        """The overlay: what a module gets as its workspace."""
        return self._layers.merged

    def renew(self) -> None:
        """Make the overlay show what changed below since the last call.

        Raises:
            WorkspaceError: it is gone.
        """
        mounting.renew(self._layers.merged)

    def changes(self) -> dict[str, Hashable]:
        """What in it differs from the folder below. What can't be read is passed over: it only informs."""
        stamps: dict[str, Hashable] = {}
        folders = [""]
        while folders:
            place = folders.pop()
            with suppress(OSError), os.scandir(self._layers.upper / place) as entries:
                for entry in entries:
                    path = f"{place}/{entry.name}" if place else entry.name
                    status = entry.stat(follow_symlinks=False)
                    if not stat.S_ISDIR(status.st_mode):
                        self._note(path, status, stamps)
                    elif path.count("/") < path_names.DEEPEST:
                        folders.append(path)
        return stamps

    def _note(self, path: str, status: os.stat_result, stamps: dict[str, Hashable]) -> None:
        """Note an entry of the upper layer, unless it is a mere copy of the one below: it was opened, and not written."""
        below: os.stat_result | None = None
        with suppress(OSError):
            below = (self._layers.directory / path).lstat()
        if below is None or _content(below) != _content(status):
            stamps[path_names.encode(path)] = stamp_of(status)

    def close(self) -> None:
        """Unmount it, with everything that was written. Does not raise."""
        mounting.unmount(self._layers.merged)
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1
        with suppress(OSError):
            socket_folder.remove(self._store)
        self._claim.release()


def _not_made(folder: Path, data: Path, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"A layer over {folder} can't be made ({error.strerror}); make sure that {data} is writable."
    )


def _content(status: os.stat_result) -> Hashable:
    """What stays the same when the kernel copies an entry up: all that a change of its content changes."""
    return status.st_mode, status.st_size, status.st_mtime_ns


def layers_in(data: Path) -> Callable[[Path], Layer]:
    """Return what makes layers, with what they need in the data directory `data`. Blocks.

    Raises:
        WorkspaceError: none can be made here; the message says why.
    """
    try:
        with tempfile.TemporaryDirectory(dir=data) as folder:
            Layer(Path(folder), data).close()
    except OSError as error:
        raise WorkspaceError(f"The data directory {data} can't be used ({error.strerror}).") from error
    return lambda folder: Layer(folder, data)
