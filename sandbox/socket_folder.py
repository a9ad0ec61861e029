"""The folder in which a module creates its socket: the only place that both the module and the core use.

The module writes there, so nothing in it can be trusted: in place of its own socket it may put a link to another
module's socket, or to the engine's. So the core opens the name without following links, checks that it is a socket, and
from then on dials that descriptor and never the name.

Where we may mount (as root), the folder is a file system of its own, too small to store much in, and it does
not follow links. Elsewhere it is a plain directory, and the check on opening is the protection.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import ModuleLost

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_NOSYMFOLLOW = 0x2, 0x4, 0x8, 0x100
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8
_QUIET = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC

SOCKET = "module.sock"

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_LIMIT = 64 * 1024
"""The most bytes that are buffered before they are forwarded."""


@dataclass(slots=True)
class CheckedSocket:
    """A module's socket, held open by a descriptor that refers to the file itself and not to its name."""

    descriptor: int

    @property
    def target(self) -> str:
        """The gRPC target that dials exactly this socket, from this process."""
        return f"unix:///proc/self/fd/{self.descriptor}"

    def close(self) -> None:
        """Close the descriptor. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def open_socket(folder: Path, name: str = SOCKET) -> CheckedSocket | None:
    """Open the module's socket in `folder`, or another of its sockets, `name`; None if there is nothing there.

    Raises:
        ModuleLost: it is not a socket (a link, a pipe, a file), so the module must not be contacted.
    """
    try:
        descriptor = os.open(folder / name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ModuleLost(
            f"The module's socket can't be opened ({error.strerror}); it was stopped."
        ) from error
    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
        return CheckedSocket(descriptor)
    os.close(descriptor)
    raise ModuleLost("The module put something else where its socket should be; it was stopped.")


async def listen(folder: Path, name: str, serve: Serve, *, limit: int = _LIMIT) -> asyncio.Server:
    """Listen in `folder` ourselves, as a module would, however long the path is.

    Raises:
        OSError: the socket can't be created.
    """
    with _short(folder) as place:
        return await asyncio.start_unix_server(serve, f"{place}/{name}", limit=limit)


async def dial(folder: Path, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a socket of our own in `folder`.

    Raises:
        OSError: no process listens there.
    """
    with _short(folder) as place:
        return await asyncio.open_unix_connection(f"{place}/{name}", limit=_LIMIT)


@contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A short path to `folder`: a unix socket's path is limited to 107 bytes, and a data directory may be deep."""
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}"
    finally:
        os.close(directory)


def make(folder: Path, *, uid: int, gid: int) -> None:
    """Create `folder`, which must not exist, for a module that runs as `uid`:`gid`."""
    folder.mkdir(mode=0o700, parents=True)
    if os.geteuid() != 0:
        return
    os.chown(folder, uid, gid)
    bounds = f"size=64k,nr_inodes=8,mode=0700,uid={uid},gid={gid}"
    # Kernels before 5.10 don't know "nosymfollow"; in a container we may not be allowed to mount at all.
    if not _mount(folder, _QUIET | _MS_NOSYMFOLLOW, bounds):
        _mount(folder, _QUIET, bounds)


def make_temporary(folder: Path, *, size: int, files: int) -> bool:
    """Create `folder`, which must not exist, as a file system for temporary files, of `size` bytes and `files` files.

    Returns False, and creates nothing, where we may not mount.
    """
    if os.geteuid() != 0:
        return False
    folder.mkdir(mode=0o700, parents=True)
    if _mount(folder, _MS_NOSUID | _MS_NODEV, f"size={size},nr_inodes={files},mode=1777"):
        return True
    folder.rmdir()
    return False


def make_shared(folder: Path, *, size: int, files: int) -> None:
    """Create `folder`, which must not exist, for temporary files: bounded where we may mount, otherwise a plain one."""
    if not make_temporary(folder, size=size, files=files):
        folder.mkdir(mode=0o700, parents=True)
        if os.geteuid() == 0:  # root runs modules as the owner of their workspace
            folder.chmod(0o1777)


def remove(folder: Path) -> None:
    """Unmount and delete `folder`, if it still exists; another process may be removing it at the same time."""
    if os.geteuid() == 0:
        while (
            os.path.ismount(folder)
            and _libc().umount2(os.fsencode(folder), _MNT_DETACH | _UMOUNT_NOFOLLOW) == 0
        ):
            pass
    if os.path.ismount(folder):
        return
    # A module may have removed permissions from its folders, so that their owner can't delete them.
    for here, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                if not (path := Path(here, name)).is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _mount(folder: Path, flags: int, bounds: str) -> bool:
    status: int = _libc().mount(
        b"iact", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(flags), bounds.encode()
    )
    return status == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
