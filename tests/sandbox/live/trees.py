"""Trees of files, random ones among them, things that are done to them, and what they came to."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hypothesis import strategies as st

from iact.sandbox.live.overlay import Overlay

Tree = dict[str, tuple[str, int, bytes]]
"""Path: type, permission bits, and content or target."""

Op = tuple[str, str, str, int]
"""What is done, to what, with what else, and a number."""

NAMES = ("a", "b", "C", "c", "dé", "e f", ".h", "x\nz", "y%41", os.fsdecode(b"\xff"))


def refreshed(overlay: Overlay) -> Sequence[str]:
    """What a call that can write begins with, and a moment after the user's last change.

    Else that would be taken for a later one: within a tick of the file system's clock they look alike.
    """
    since = time.time_ns()
    while time.clock_gettime_ns(5) <= since:  # CLOCK_REALTIME_COARSE
        pass
    return overlay.refresh()


def snapshot(folder: Path) -> Tree:
    """All that is below `folder`."""
    found: Tree = {}
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(here) / name
            status = path.lstat()
            mode = stat.S_IMODE(status.st_mode)
            key = str(path.relative_to(folder))
            if stat.S_ISLNK(status.st_mode):
                found[key] = ("link", 0, os.fsencode(os.readlink(path)))
            elif stat.S_ISDIR(status.st_mode):
                found[key] = ("folder", mode, b"")
            elif stat.S_ISREG(status.st_mode):
                found[key] = ("file", mode, path.read_bytes())
            else:
                found[key] = ("other", mode, b"")
    return found


def plant(folder: Path, files: Mapping[str, str]) -> Path:
    """Make `folder` with these files; a name that ends with "/" is a folder's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        place = folder / name
        if name.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content)
    return folder


paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
ops: st.SearchStrategy[Op] = st.tuples(
    st.sampled_from(
        [
            "write",
            "write",
            "append",
            "remove",
            "remove",
            "mkdir",
            "link",
            "chmod",
            "move",
            "move",
            "hard",
            "touch",
        ]
    ),
    paths,
    paths,
    st.integers(0, 7),
)


def do(root: Path, op: Op) -> None:
    """Do it below `root`; what can't be done is left."""
    what, path, other, number = op
    place, there = root / path, root / other
    try:
        if what == "write":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(os.fsencode(other) * number)
        elif what == "append":
            with place.open("ab") as stream:
                stream.write(b"+" * number)
        elif what == "remove":
            shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()
        elif what == "mkdir":
            place.mkdir(parents=True)
        elif what == "link":
            place.symlink_to(other)
        elif what == "chmod" and not place.is_symlink():
            place.chmod((0o644, 0o755, 0o600, 0o700, 0o1755, 0o400, 0o777, 0o500)[number])
        elif what == "move":
            move(place, there)
        elif what == "hard":
            there.hardlink_to(place)
        elif what == "touch" and not place.is_symlink():
            os.utime(place, (number, number))
    except OSError:
        pass


def move(place: Path, there: Path) -> None:
    """As mv does: where a folder can't be renamed it is copied."""
    try:
        os.rename(place, there)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        if there.is_dir() and not there.is_symlink():
            there.rmdir()
        shutil.copytree(place, there, symlinks=True)
        shutil.rmtree(place)
