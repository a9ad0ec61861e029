"""The modules that people added and agents wrote, on disk: every version, and which one is in use.

    NAME/VERSION/…      the files of one version; VERSION is the SHA-256 over them
    NAME/current.json   which version the catalogue shows, and who brought it

Versions are written whole and never changed; `current.json` is replaced atomically. So a session keeps the version it
began with, whatever is added later, and a crash leaves the catalogue either as it was or as intended. Sources come from
models: names and sizes are bounded, and no path leads outside.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from pydantic import BaseModel, ValidationError

from iact.core import whole_file
from iact.core.errors import UsageError
from iact.core.ports import ModuleSource, Origin
from iact.sandbox.images import payload

CURRENT: Final = "current.json"
LARGEST: Final[Mapping[Origin, int]] = {"shipped": 32 << 20, "user": 32 << 20, "agent": 4 << 20}
"""The most bytes of one version's files together, by origin: all of them are read whenever the catalogue is."""
MOST_FILES: Final = 200
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_PATH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}){0,8}")


class _Current(BaseModel):
    """The content of a `current.json`."""

    version: str
    origin: Literal["user", "agent"]


class ModuleVersions:
    """The versions below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, source: ModuleSource, origin: Origin) -> Path:
        """Write a version and return its folder, which may already exist. Blocks.

        Raises:
            UsageError: a name, a path or a size is not allowed.
        """
        if not _NAME.fullmatch(source.name):
            raise UsageError(
                f"A module can't be named {source.name[:60]!r}; use lower-case letters, digits and underscores."
            )
        files = _checked(source, LARGEST[origin])
        target = self._folder / source.name / payload.digest_of(sorted(files.items()))
        if target.is_dir():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=".draft-"))
        try:
            for name, content in files.items():
                place = draft / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
            os.rename(draft, target)
        except OSError:
            shutil.rmtree(draft, ignore_errors=True)
            if not target.is_dir():  # otherwise another process was faster, with the same content
                raise
        return target

    def adopt(self, folder: Path, origin: Origin) -> None:
        """Make the version in `folder` the one in use."""
        text = json.dumps({"version": folder.name, "origin": origin})
        whole_file.replace(folder.parent / CURRENT, text.encode())

    def remove(self, name: str) -> None:
        """Take `name` out of use. Its versions stay on disk for the sessions that use them.

        Raises:
            UsageError: there is no such module.
        """
        if self._read(name) is None:
            raise UsageError(f"No module {name!r} was added.")
        (self._folder / name / CURRENT).unlink(missing_ok=True)

    def current(self) -> Iterator[tuple[Path, Origin]]:
        """The folder and the origin of each module in use, by name."""
        for path in sorted(self._folder.glob(f"*/{CURRENT}")):
            found = self._read(path.parent.name)
            if found is not None and (path.parent / found.version).is_dir():
                yield path.parent / found.version, found.origin

    def versions(self, name: str) -> Iterator[tuple[Path, Origin]]:
        """The folders of all versions of `name`. A version not in use counts as an agent's."""
        if not _NAME.fullmatch(name):
            return
        found = self._read(name)
        for folder in sorted((self._folder / name).glob("[0-9a-f]*")):
            yield folder, found.origin if found is not None and found.version == folder.name else "agent"

    def _read(self, name: str) -> _Current | None:
        if not _NAME.fullmatch(name):
            return None
        try:
            found = _Current.model_validate_json((self._folder / name / CURRENT).read_bytes())
        except (OSError, ValidationError):
            return None
        return found if re.fullmatch(r"[0-9a-f]{64}", found.version) else None


def _checked(source: ModuleSource, largest: int) -> dict[str, bytes]:
    """The files of a version, including its `module.toml`."""
    files = dict(source.files)
    files.setdefault("module.toml", _card(source).encode("utf-8", "replace"))
    if len(files) > MOST_FILES or sum(map(len, files.values())) > largest:
        raise UsageError(
            f"The module {source.name} has more than {MOST_FILES} files or {largest >> 20} MiB; make it smaller."
        )
    for name in files:
        parts = PurePosixPath(name).parts
        if not _PATH.fullmatch(name) or ".." in parts or "__pycache__" in parts:
            raise UsageError(f"A module's file can't be named {name[:100]!r}.")
    return files


def _card(source: ModuleSource) -> str:
    """Make a `module.toml` that describes `source`. TOML's basic strings are JSON's, except for DEL."""

    def text(value: object) -> str:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    return (
        f"name = {text(source.name)}\n"
        f"summary = {text(source.summary)}\n"
        f"requirements = {text(list(source.requirements))}\n\n"
        "[needs]\n"
        f"workspace = {text(source.workspace)}\n"
        f"egress = {text(list(source.egress))}\n"
        f"secrets = {text(list(source.secrets))}\n"
    )
