"""A module's own Python packages: wheels, downloaded by the host, unpacked in a sandbox, and mounted read-only.

No code of a package runs here: only wheels are accepted, never sources that would have to be built, each requirement is
one exact version, and dependencies are read from the wheels' metadata (`sandbox.images.closure`). With digests
(`--hash=sha256:…`, which the shipped modules always have), a package that was replaced on the index is refused. A list
is unpacked once, into a folder named by its digest.

Of modules that ship with the product, the digests are ours, and the wheels are unpacked here. Those of all other modules
are opened only inside a sandbox, and what comes out is copied file by file (`take_over`).
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from iact.core.errors import PackagesUnavailable, SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox import unpack_inside
from iact.sandbox.images import payload
from iact.sandbox.images.closure import Read

_FORM: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9,_-]{1,60}\])?==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,60}"
    r"( --hash=sha256:[0-9a-f]{64})*"
)


def checked(line: str) -> str:
    """Return `line` if it is `name==version`, with or without digests; anything else could be an option of pip.

    Raises:
        ValueError: it is not.
    """
    if not _FORM.fullmatch(line):
        raise ValueError(f"{line[:100]!r} is not of the form name==version, with --hash=sha256:… behind it")
    return line


def hashed(lines: Sequence[str]) -> bool:
    """Whether every requirement has a digest, so that every package must be listed and none can be replaced."""
    return all(" --hash=" in line for line in lines)


def place_of(folder: Path, lines: Sequence[str], python: str) -> Path:
    """The folder below `folder` that has or will have the packages `lines`, for Python `python` ("3.11")."""
    parts = [(line, b"") for line in sorted(lines)]
    made_for = [("python", python.encode()), ("machine", os.uname().machine.encode())]
    return folder / payload.digest_of([*parts, *made_for])


def announcement(lines: Sequence[str]) -> str:
    """What people read while the packages are fetched."""
    return f"fetching the module's Python packages: {', '.join(line.split('==')[0] for line in lines)}"


def site(folder: Path, lines: Sequence[str], python: str, report: Report) -> Path:
    """The folder with the packages `lines` of a module that ships; made once. Blocks.

    Raises:
        PackagesUnavailable: they are not available.
        SandboxUnavailable: they can't be written.
    """
    target = place_of(folder, lines, python)
    if target.is_dir():
        return target
    report(announcement(lines))

    def fill(draft: Path) -> None:
        payload.unpack_wheels(lines, draft, python)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)

    _make(target, fill)
    return target


def fetch(lines: Sequence[str], python: str, wheels: Path, read: Read) -> list[Path]:
    """Download the wheels of a module's packages into the empty folder `wheels`; return those to unpack. Blocks.

    `read`: reads the metadata of a wheel, somewhere else.

    Raises:
        PackagesUnavailable: they are not available, or one is refused.
    """
    if hashed(lines):
        return payload.fetch_exactly(lines, python, wheels)
    return [wheel.file for wheel in payload.fetch_wheels(lines, python, wheels, read)]


def take_over(unpacked: Path, target: Path) -> None:
    """Copy what a sandbox unpacked to `target`: plain files and folders, and no more of them than it may be. Blocks.

    Nothing runs in the sandbox any more.

    Raises:
        PackagesUnavailable: there is something else, or too much.
        SandboxUnavailable: it can't be written.
    """

    def fill(draft: Path) -> None:
        draft.chmod(0o755)
        room = unpack_inside.Room()
        try:
            _copy(unpacked, draft, room)
        except unpack_inside.UnfitPackage as error:
            raise PackagesUnavailable(f"A package is refused: {error}.") from error

    _make(target, fill)


def _copy(source: Path, target: Path, room: unpack_inside.Room) -> None:
    for folder, folders, files, here in os.fwalk(source, follow_symlinks=False):
        copies = target / Path(folder).relative_to(source)
        for name in folders:
            room.take_file()
            if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                raise unpack_inside.UnfitPackage("it has a link in it")
            (copies / name).mkdir()
            (copies / name).chmod(0o755)

        for name in files:
            room.take_file()
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
            except OSError as error:
                raise unpack_inside.UnfitPackage("it has something in it that is no file") from error
            with open(descriptor, "rb") as content:
                kind = os.fstat(descriptor)
                if not stat.S_ISREG(kind.st_mode) or kind.st_nlink != 1:
                    raise unpack_inside.UnfitPackage("it has something in it that is no file")
                room.take(kind.st_size)
                with (copies / name).open("xb") as copy:
                    shutil.copyfileobj(content, copy)
                (copies / name).chmod(0o755 if kind.st_mode & 0o100 else 0o644)


def _make(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the folder `target` whole, or not at all: `fill` fills a draft of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=".site-"))
    try:
        fill(draft)
        os.rename(draft, target)
    except (OSError, SandboxUnavailable) as error:
        shutil.rmtree(draft, ignore_errors=True)
        if not target.is_dir():  # otherwise another process was faster
            if isinstance(error, OSError):
                raise SandboxUnavailable(
                    f"The module's Python packages can't be written ({error.strerror}); free some disk space."
                ) from error
            raise
