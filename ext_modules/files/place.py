"""The workspace, opened in such a way that no link leads out of it.

Other modules of the session write to the same folder at the same time, and may be hostile. So no path is ever resolved
as a whole: each step is opened relative to the previous one, and a link at any step is refused with a sentence that
says where it points. Only regular files are opened for reading.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LARGEST: Final = 32 << 20
"""The most bytes of a file that is read or written as a whole."""

_FOLDER: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileProblem(Exception):
    """A file can't be used as requested; the message says why, and what to do instead."""


def root() -> Path:
    """The workspace's folder."""
    return Path(os.environ.get("IACT_WORKSPACE", "/workspace"))


def parts_of(path: str) -> tuple[str, ...]:
    """The steps of `path` below the workspace; empty for the workspace itself.

    Raises:
        FileProblem: the path is not below the workspace.
    """
    if "\0" in path:
        raise FileProblem("The path holds a NUL character; write it without.")

    workspace = str(root())
    is_full_path = path == workspace or path.startswith(f"{workspace}/")
    if path.startswith("/") and not is_full_path:
        raise FileProblem(f"{path} is outside of the workspace; give a path relative to {workspace}.")
    inside = path.removeprefix(workspace) if is_full_path else path

    steps: list[str] = []
    for step in inside.split("/"):
        if step == ".." and not steps:
            raise FileProblem(f"{path} leads out of the workspace; give a path relative to {workspace}.")
        if step == "..":
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return tuple(steps)


@contextlib.contextmanager
def folder(steps: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open the folder at `steps`. Yields a descriptor (`O_PATH`). `make`: create missing folders.

    Raises:
        FileProblem: there is no such folder, or a step is a link or a file.
    """
    try:
        current = os.open(root(), _FOLDER)
    except OSError as error:
        raise FileProblem("There is no workspace here.") from error

    # Step by step, so that no link is followed, even one that is made meanwhile.
    try:
        for index, step in enumerate(steps):
            path = "/".join(steps[: index + 1])
            following = _step(current, step, path, make=make)
            os.close(current)
            current = following
        yield current
    finally:
        os.close(current)


def _step(parent: int, name: str, path: str, *, make: bool) -> int:
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=parent)
        return os.open(name, _FOLDER, dir_fd=parent)
    except OSError as error:
        raise _problem(error, parent, name, path) from error


def _problem(error: OSError, parent: int, name: str, path: str) -> FileProblem:
    """Describe in a sentence what is wrong with `name` below `parent`."""
    if error.errno == errno.ENOENT:
        return FileProblem(f"There is no {path} in the workspace; files.list shows what is there.")

    # Whatever the error is, a link is the cause.
    with contextlib.suppress(OSError):
        target = os.readlink(name, dir_fd=parent)
        return FileProblem(
            f"{path} is a link to {target}, and links are not followed; name what it points to."
        )

    if error.errno == errno.ENOTDIR:
        return FileProblem(f"{path} is a file, not a folder; files.read shows it.")
    if error.errno == errno.EISDIR:
        return FileProblem(f"{path} is a folder; files.list shows what is in it.")
    return FileProblem(f"{path} can't be opened: {error.strerror}.")


def _named(path: str) -> tuple[tuple[str, ...], str, str]:
    """The steps to the folder of the file at `path`, the file's name in it, and the path to show."""
    steps = parts_of(path)
    if not steps:
        raise FileProblem("The workspace itself is a folder; files.list shows what is in it.")
    return steps[:-1], steps[-1], "/".join(steps)


@contextlib.contextmanager
def opened(path: str) -> Iterator[int]:
    """Open the regular file at `path`. Yields a descriptor to read from.

    Raises:
        FileProblem: there is no such file, or it is something else.
    """
    steps, name, shown = _named(path)
    with folder(steps) as parent:
        try:
            file = os.open(name, _FILE, dir_fd=parent)
        except OSError as error:
            raise _problem(error, parent, name, shown) from error

        try:
            mode = os.fstat(file).st_mode
            if stat.S_ISDIR(mode):
                raise FileProblem(f"{shown} is a folder; files.list shows what is in it.")
            if not stat.S_ISREG(mode):
                raise FileProblem(f"{shown} is neither a file nor a folder.")
            yield file
        finally:
            os.close(file)


def is_file(path: str) -> bool:
    """Whether there is a regular file at `path`, which no link leads to."""
    try:
        with opened(path):
            return True
    except FileProblem:
        return False


def content(path: str) -> bytes:
    """Return the whole file at `path`.

    Raises:
        FileProblem: there is no such file, or it is larger than 32 MiB.
    """
    with opened(path) as file:
        if os.fstat(file).st_size > LARGEST:
            raise FileProblem(
                f"{path} has {os.fstat(file).st_size:,} bytes, and the most is {LARGEST:,}; "
                "read a range of its lines."
            )
        with open(file, "rb", closefd=False) as stream:
            return stream.read(LARGEST + 1)[:LARGEST]


def text(path: str) -> str:
    """Return the whole text file at `path`, with its line ends unchanged.

    Raises:
        FileProblem: there is no such file, or it is not UTF-8.
    """
    try:
        return content(path).decode()
    except UnicodeDecodeError as error:
        raise FileProblem(f"{path} is not text in UTF-8 (byte {error.start}).") from error


def replace(path: str, data: bytes) -> bool:
    """Replace the whole content of the file at `path` by `data`, atomically. Creates folders. True if the file is new.

    Raises:
        FileProblem: something other than a file is there, or it can't be written.
    """
    if len(data) > LARGEST:
        raise FileProblem(f"The content has {len(data):,} bytes, and the most is {LARGEST:,}.")

    steps, name, shown = _named(path)
    with folder(steps, make=True) as parent:
        mode_before = _mode(parent, name, shown)
        mode = 0o666 if mode_before is None else mode_before
        draft = f".{secrets.token_hex(8)}.draft"
        try:
            _write(parent, draft, data, mode)
            os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=parent)
            raise FileProblem(f"{shown} can't be written: {error.strerror}.") from error
    return mode_before is None


def _mode(parent: int, name: str, shown: str) -> int | None:
    """The permissions of the regular file `name`, or None if there is nothing."""
    try:
        status = os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _problem(error, parent, name, shown) from error
    if not stat.S_ISREG(status.st_mode):
        raise _problem(OSError(errno.EISDIR, "It is not a file"), parent, name, shown)
    return stat.S_IMODE(status.st_mode)


def _write(parent: int, name: str, data: bytes, mode: int) -> None:
    new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(name, new, mode & 0o777, dir_fd=parent)
    with open(file, "wb") as stream:
        stream.write(data)
