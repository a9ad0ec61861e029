"""A module's source from a person: a folder with a `module.toml`, a Python file, the text of one, or an image."""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError
from iact.core.ports import ModuleSource

_LARGEST: Final = 32 << 20
_MOST: Final = 200
_BY_PERSON: Final = "Added by a person."
_IMAGE: Final = re.compile(r"[a-z0-9][a-z0-9._:/-]{0,200}?(:[A-Za-z0-9_.-]{1,128})?(@sha256:[0-9a-f]{64})?")
"""Matches the name of an image; a path that begins with a slash or a dot does not match."""
_SKIPPED: Final = frozenset({"__pycache__", ".git", ".venv", "node_modules"})


def source_of(place: str) -> ModuleSource:
    """The module at `place`: a path, or an image of the engine's if nothing exists there and it does not look like a
    path.

    Raises:
        UsageError: there is no module, or it is too large.
    """
    if not names_image(place):
        return read_source(Path(place))
    last = place.partition("@")[0].rpartition("/")[2].partition(":")[0]
    name = re.sub(r"[^a-z0-9]+", "_", last).strip("_")
    return ModuleSource(name, {}, summary=_BY_PERSON, image=place)


def names_image(place: str) -> bool:
    """Whether `place` means an image: it looks like one, and does not exist on this disk. Blocks, but only briefly."""
    return bool(_IMAGE.fullmatch(place)) and not place.endswith(".py") and not Path(place).exists()


def read_source(path: Path) -> ModuleSource:
    """Read the module at `path`, named after its `module.toml` or its file. Links are left out; none of its code runs.
    Blocks.

    Raises:
        UsageError: there is no module, or it is too large.
    """
    try:
        if path.is_dir():
            files = dict(files_below(path.resolve()))
        elif path.suffix == ".py":
            files = {"module.py": path.read_bytes()}
        else:
            raise UsageError(
                f"There is no module at {path}; give a folder with a module.toml, a .py file, or an image."
            )
    except OSError as error:
        raise UsageError(f"The module at {path} can't be read: {error.strerror}.") from error
    if "module.py" not in files and "module.toml" not in files:
        raise UsageError(f"{path} contains no module.toml and no module.py; add the module's source.")
    return ModuleSource(_name(path, files), files, summary=_BY_PERSON)


def written_source(name: str, text: str) -> ModuleSource:
    """A module that consists of one Python file with this text."""
    return ModuleSource(name, {"module.py": text.encode()}, summary=_BY_PERSON)


def _name(path: Path, files: Mapping[str, bytes]) -> str:
    try:
        card = tomllib.loads(files.get("module.toml", b"").decode())
    except ValueError as error:
        raise UsageError(f"{path}/module.toml can't be read as TOML: {error}.") from error
    return str(card.get("name", path.resolve().stem))


def files_below(folder: Path, *, at: int | None = None) -> Iterator[tuple[str, bytes]]:
    """Regular files below `folder`, by relative path. Untrusted code may change the folder meanwhile, so no link is
    followed. `at`: the open directory that contains it.

    Raises:
        UsageError: there are too many, or they are too large.
        OSError: it can't be read, or is a link.
    """
    size = count = 0
    os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at))
    for here, folders, names, opened in os.fwalk(folder, dir_fd=at):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            if name.endswith(".pyc"):
                continue
            content = _regular_file(name, opened, _LARGEST - size)
            if content is None:
                continue
            size, count = size + len(content), count + 1
            if size > _LARGEST or count > _MOST:
                raise UsageError(
                    f"{folder} has more than {_MOST} files or {_LARGEST >> 20} MiB; "
                    "give the folder of the module or the skill alone."
                )
            yield Path(here, name).relative_to(folder).as_posix(), content


def _regular_file(name: str, at: int, most: int) -> bytes | None:
    """Read up to `most` bytes and one more of a file in an open directory; None if it is a link or not a file."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENOENT):
            return None
        raise
    with os.fdopen(opened, "rb") as stream:
        return stream.read(most + 1) if stat.S_ISREG(os.fstat(opened).st_mode) else None
