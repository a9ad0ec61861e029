"""Which functions of which manifests a person has approved. One file for a data directory.

What a manifest declares is believed if its module ships with the product or a person approved it, function by
function. An approval is bound to the module's digest, so changed source is a stranger again. A reader follows
the file, since another process may approve while a session runs; a file that can't be read approves nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from core.errors import UsageError

FILE: Final = "approvals.json"
"""Its name in the data directory."""


class _Approved(BaseModel):
    """What is approved of one module. `digest`: SHA-256 hex over its source."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    digest: str = Field(min_length=1)
    functions: frozenset[str] = frozenset()


_FILE: Final = TypeAdapter(dict[str, _Approved])


@dataclass(frozen=True, slots=True)
class _Version:
    """Tells one state of the file from another."""

    inode: int
    size: int
    changed: int


class Approvals:
    """The approvals of one data directory. Functions are named without their module (`search`, not `web.search`)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: _Version | None = None
        self._known: Mapping[str, _Approved] = {}

    @classmethod
    def load(cls, path: Path) -> Approvals:
        """The approvals in `path`, which need not exist yet.

        Raises:
            UsageError: the file holds something else.
        """
        made = cls(path)
        made._version = _version(path)  # first: what changes meanwhile is read again
        made._known = _read(path)
        return made

    def approved(self, name: str, digest: str, function: str) -> bool:
        """Whether a person approved this function of exactly this module."""
        self._follow()
        known = self._known.get(name)
        return known is not None and known.digest == digest and function in known.functions

    def approve(self, name: str, digest: str, functions: Iterable[str]) -> None:
        """A person approves these functions, beside those approved before of the same digest. On disk on return.

        Raises:
            UsageError: the file can't be read or written.
        """
        with _locked(self._path):
            known = dict(_read(self._path))
            before = known.get(name)
            kept = before.functions if before is not None and before.digest == digest else frozenset()
            known[name] = _Approved(digest=digest, functions=kept | frozenset(functions))
            _write(self._path, known)
            self._known, self._version = known, _version(self._path)

    def _follow(self) -> None:
        version = _version(self._path)
        if version != self._version:
            try:
                self._known = _read(self._path)
            except UsageError:
                self._known = {}
            self._version = version


def _version(path: Path) -> _Version | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return _Version(status.st_ino, status.st_size, status.st_mtime_ns)


def _read(path: Path) -> Mapping[str, _Approved]:
    try:
        return _FILE.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"The approvals in {path} can't be read: {error.strerror}.") from error
    except ValidationError as error:
        raise UsageError(
            f"The file {path} does not hold approvals; remove it, and approve modules anew."
        ) from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone among all processes that approve. The lock's file stays: removing it would let two in."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"The approvals in {path} can't be written: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(path: Path, known: Mapping[str, _Approved]) -> None:
    """Replace the file whole: a reader, or a crash, finds the old one or the new one."""
    data = {
        name: {"digest": one.digest, "functions": sorted(one.functions)}
        for name, one in sorted(known.items())
    }
    draft = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as stream:
            draft = stream.name
            json.dump(data, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(draft, path)
    except OSError as error:
        if draft:
            Path(draft).unlink(missing_ok=True)
        raise UsageError(f"The approvals in {path} can't be written: {error.strerror}.") from error
