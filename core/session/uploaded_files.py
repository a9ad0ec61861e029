"""Uploads as files of a session's own workspace.

The agents work in the same folder and may put anything there, so a file is made without following a link and without
replacing what is there. It is made after its record, which says what its content is labelled with: anyone who can read the
file has its label.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from iact.core.characters import DECEPTIVE_IN_CONTEXTS
from iact.core.errors import WorkspaceError
from iact.core.records.dialogue import Upload
from iact.core.records.record import Record
from iact.core.stored.workspace import is_unkept, version_of

_LONGEST: Final = 200
"""The most bytes of a name. File systems take 255."""

_MOST: Final = 1_000
"""The most files whose names differ in a number only."""


def choose_path(folder: Path, name: str, content: bytes) -> str:
    """The path for an uploaded file in a workspace; empty if there is no workspace that it can be put into.

    A file that is there with this content stays. Another content gets a name with a number.
    """
    stem, suffix = _plain(name)
    try:
        with _opened(folder) as workspace:
            for number in range(1, _MOST):
                path = f"{stem}-{number}{suffix}" if number > 1 else f"{stem}{suffix}"
                if _is_free(workspace, path, content):
                    return path
    except OSError:
        pass
    return ""


def put(folder: Path, path: str, content: bytes) -> None:
    """Make the file, unless there is something of its name.

    Raises:
        WorkspaceError: it can't be made.
    """
    try:
        with _opened(folder) as workspace:
            _make(workspace, path, content)
    except OSError as error:
        raise WorkspaceError(f"{path!r} can't be put into the workspace ({error.strerror}).") from error


def put_again(folder: Path, records: Sequence[Record], blobs: Callable[[str], bytes]) -> None:
    """Make the files of uploads that came after the newest version of the workspace, where they are missing.

    A crash, or a move to another host, can come between an upload's record and its file. What agents removed is named by a
    version, and stays away.

    Raises:
        WorkspaceError: a file can't be made.
    """
    for upload in _since_the_newest_version(records):
        if upload.path and not (folder / upload.path).is_symlink() and not (folder / upload.path).exists():
            put(folder, upload.path, blobs(upload.blob.sha256))


def _since_the_newest_version(records: Sequence[Record]) -> Iterable[Upload]:
    found: list[Upload] = []
    for record in reversed(records):
        if version_of(record) or is_unkept(record):
            break
        if isinstance(record.content, Upload):
            found.append(record.content)
    return reversed(found)


def _plain(name: str) -> tuple[str, str]:
    """The stem and the suffix of a name that is safe as an argument and on a line."""
    clean = re.sub(r"[\x00-\x1f\x7f/\\]", "_", DECEPTIVE_IN_CONTEXTS.sub("_", name)).strip()
    if clean.startswith("-"):
        clean = f"_{clean[1:]}"
    if clean.strip(".") == "":
        clean = "file"
    suffix = os.path.splitext(clean)[1]
    if len(suffix.encode()) > _LONGEST // 4:
        suffix = ""
    stem = clean.removesuffix(suffix)
    return stem.encode()[: _LONGEST - len(suffix.encode())].decode("utf-8", "ignore"), suffix


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_free(workspace: int, path: str, content: bytes) -> bool:
    """Whether nothing has this name, or a file with this content."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, dir_fd=workspace)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # a link, or something else that can't be read
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
            return False
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(len(content) + 1) == content
    finally:
        os.close(descriptor)


def _make(workspace: int, path: str, content: bytes) -> None:
    """Make the file whole under another name, and then give it its own. It belongs to whom the workspace belongs."""
    draft = f".{secrets.token_hex(8)}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600, dir_fd=workspace)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            owner = os.fstat(workspace)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fchmod(file.fileno(), 0o644)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path, src_dir_fd=workspace, dst_dir_fd=workspace, follow_symlinks=False)
    finally:
        os.unlink(draft, dir_fd=workspace)
