"""The kernel's overlay of a directory: its preconditions, and how it is mounted, refreshed and unmounted.

The lower layer is the user's directory itself. While an overlay is mounted, the kernel allows others to change its
lower layer but promises little about what is seen then. Without an index, metadata-only copies, redirects and its own
inode numbers (all disabled here), only the overlay's cache of names can be stale. Remounting it in place drops that
cache, which costs a fifth of a millisecond and disturbs no process that works in it: `docs/design/live-directories.md`
describes what was tried.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iact.core.errors import WorkspaceError
from iact.sandbox.live import steps

_MS_NOSUID, _MS_NODEV, _MS_REMOUNT = 0x2, 0x4, 0x20
_MNT_DETACH, _UMOUNT_NOFOLLOW = 0x2, 0x8
_OPTIONS: Final = "userxattr,index=off,metacopy=off,redirect_dir=nofollow,xino=off"
_REMOTE: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "fuseblk", "vfat", "exfat", "msdos"}
)
"""File systems on which changes by other machines, or missing support for modes and links, would go unnoticed."""
_NO_RIGHT: Final = "only root may mount, and not in most containers; run the product as root on the host"
_ADMIN: Final = 1 << 21
"""CAP_SYS_ADMIN (capabilities(7))."""
_NAME: Final = "iact-live"
"""The source name of our overlays in the mount table."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The folders of one overlay. `directory`: the user's; the others are in our `store`. `name`: of the overlay there."""

    directory: Path
    store: Path
    name: str = "merged"

    @property
    def upper(self) -> Path:
        return self.store / "upper"

    @property
    def work(self) -> Path:
        return self.store / "work"

    @property
    def merged(self) -> Path:
        return self.store / self.name


def layers(directory: Path, store: Path) -> Layers:
    """Create the folders in `store`, itself included, and check that an overlay of `directory` is possible.

    Raises:
        WorkspaceError: it is not; the message says why, and what to do.
    """
    if not _may_mount():
        raise WorkspaceError(f"The live directory {directory} can't be overlaid: {_NO_RIGHT}.")

    try:
        resolved = directory.resolve(strict=True)
        store.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = Layers(resolved, store.resolve(strict=True))
        for folder in (made.upper, made.work, made.merged):
            folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(
            f"The live directory {directory} can't be overlaid ({error.strerror}); check both it and {store}."
        ) from error

    if not resolved.is_dir():
        raise WorkspaceError(f"{directory} is not a folder; choose a folder as the live directory.")
    _check_places(made)
    _check_systems(made)
    return made


def _check_places(made: Layers) -> None:
    if made.store.is_relative_to(made.directory):
        raise WorkspaceError(
            f"The live directory {made.directory} contains iact's own data ({made.store}); choose a "
            "folder that does not contain it, or move the data with IACT_DATA."
        )
    if made.directory.is_relative_to(made.store):
        raise WorkspaceError(
            f"The live directory {made.directory} is inside the data that iact keeps for this "
            "session; choose another directory."
        )


def _check_systems(made: Layers) -> None:
    """Refuse file systems on which an overlay would show something wrong."""
    table = mounts()
    inside = [
        row.place for row in table if row.place != made.directory and row.place.is_relative_to(made.directory)
    ]
    if inside:
        raise WorkspaceError(
            f"Another file system is mounted in the live directory, at {inside[0]}; an overlay would show an empty "
            "folder there. Unmount it, or name a folder without one."
        )

    for folder, what in ((made.directory, "live directory"), (made.store, "data directory")):
        system = _system(folder, table)
        if system in _REMOTE or system.startswith("fuse."):
            raise WorkspaceError(
                f"The {what} {folder} is on a file system ({system}) that overlays don't work with; use one on a "
                "local disk."
            )

    # Overlays keep in such attributes what a folder hides.
    try:
        os.setxattr(made.upper, "user.iact.probe", b"1")
        os.removexattr(made.upper, "user.iact.probe")
    except OSError as error:
        raise WorkspaceError(
            f"The data directory's file system has no extended attributes ({error.strerror}), which overlays need; "
            "put it on ext4, xfs or btrfs with IACT_DATA."
        ) from error


def mount(made: Layers, *, options: str = _OPTIONS) -> None:
    """Mount the overlay, with these options of the file system.

    Raises:
        WorkspaceError: the kernel refuses; the message says why, and what to do.
    """
    unmount(made.merged)  # left by a killed process
    folders = {"lowerdir": made.directory, "upperdir": made.upper, "workdir": made.work}
    all_options = ",".join([*(f"{name}={_escaped(path)}" for name, path in folders.items()), options])

    # The kernel takes one page of options.
    if len(os.fsencode(all_options)) >= os.sysconf("SC_PAGE_SIZE"):
        raise WorkspaceError(
            f"The path of the live directory {made.directory} is too long for an overlay; use a shorter one."
        )

    number = _mount(made.merged, b"overlay", _MS_NOSUID | _MS_NODEV, all_options)
    if number == 0:
        return

    if number in (errno.EPERM, errno.EACCES):
        why = _NO_RIGHT
    elif number == errno.ENODEV:
        why = "this kernel has no overlayfs; load its module (modprobe overlay)"
    else:
        why = "keep both on a local ext4, xfs or btrfs that tells upper from lower case"
    raise WorkspaceError(
        f"The live directory {made.directory} can't be overlaid ({os.strerror(number)}): {why}."
    )


def renew(merged: Path) -> None:
    """Make the overlay at `merged` drop its cache of names.

    Raises:
        WorkspaceError: it is gone.
    """
    number = _mount(merged, None, _MS_NOSUID | _MS_NODEV | _MS_REMOUNT, "")
    if number:
        raise WorkspaceError(
            f"The overlay at {merged} is gone ({os.strerror(number)}); start the session again."
        )


def unmount(merged: Path) -> None:
    """Unmount everything at `merged`, if anything; in use, it goes away as soon as no process uses it."""
    while _is_overlay(merged):
        if _libc().umount2(os.fsencode(merged), _MNT_DETACH | _UMOUNT_NOFOLLOW):
            return


def own(store: Path) -> int:
    """Return a descriptor that marks this process as the only user of `store`; close it to release.

    Raises:
        WorkspaceError: another process uses it.
    """
    descriptor = steps.open_top(store)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise WorkspaceError(
            f"The overlay kept in {store} is in use by another process; end that session there first."
        ) from error
    return descriptor


def collect(data: Path) -> list[Path]:
    """Unmount overlays below data directory `data` whose process is gone. Return where they were. Blocks."""
    collected = []
    for merged in _overlays(data):
        try:
            owner = own(merged.parent)
        except (WorkspaceError, OSError):
            continue
        unmount(merged)
        os.close(owner)
        collected.append(merged)
    return collected


def unclaimed(data: Path) -> list[Path]:
    """Where `collect` would unmount something. Blocks."""
    without_owner = []
    for merged in _overlays(data):
        try:
            os.close(own(merged.parent))
        except (WorkspaceError, OSError):
            continue
        without_owner.append(merged)
    return without_owner


def _overlays(data: Path) -> list[Path]:
    """Our overlays below the data directory `data`."""
    root = data.resolve()
    ours = [row.place for row in mounts() if row.system == "overlay" and row.source == _NAME]
    return [merged for merged in ours if merged.is_relative_to(root)]


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of the mount table."""

    place: Path
    system: str
    source: str


def mounts() -> list[Mount]:
    """All mounts, as this process sees them, oldest first."""
    table = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        # A variable number of fields precedes the dash: proc_pid_mountinfo(5).
        before, _, after = line.partition(b" - ")
        place = before.split(b" ")[4]
        system, source = after.split(b" ")[:2]
        table.append(Mount(Path(_unescaped(place)), os.fsdecode(system), _unescaped(source)))
    return table


def _system(folder: Path, table: list[Mount]) -> str:
    """The type of the file system that `folder` is on."""
    around = [row for row in table if folder.is_relative_to(row.place)]
    if not around:
        return ""

    # Of several mounts at one place, the newest covers the others.
    return max(reversed(around), key=lambda row: len(row.place.parts)).system


def _may_mount() -> bool:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    rights = next((line.split()[1] for line in lines if line.startswith("CapEff:")), "0")
    return bool(int(rights, 16) & _ADMIN)


def _is_overlay(place: Path) -> bool:
    return any(row.place == place and row.system == "overlay" for row in mounts())


def _unescaped(field: bytes) -> str:
    for written, meant in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        field = field.replace(written, meant)
    return os.fsdecode(field)


def _escaped(path: Path) -> str:
    """Escape a path for overlayfs options: commas end an option, colons separate layers."""
    return "".join(f"\\{letter}" if letter in "\\,:" else letter for letter in str(path))


def _mount(place: Path, system: bytes | None, flags: int, options: str) -> int:
    """Mount, and return 0 or the `errno`."""
    status: int = _libc().mount(
        _NAME.encode(), os.fsencode(place), system, ctypes.c_ulong(flags), os.fsencode(options)
    )
    return ctypes.get_errno() if status else 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
