"""Which functions of which manifests a person has approved. One file per data directory.

A declaration in a manifest is trusted if its module ships with the product or a person approved it, function by
function. An approval is bound to the module's digest, so changed source must be approved again. Readers watch the file,
because another process may approve while a session runs; an unreadable file approves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from iact.core.errors import UsageError
from iact.core.json_file import Version, locked, replace_json, version_of
from iact.core.ports import JSON

FILE: Final = "approvals.json"
"""The name of the file in the data directory."""

_WHAT: Final = "approvals"


class _Approved(BaseModel):
    """What is approved of one module. `digest`: SHA-256 hex over its source."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    digest: str = Field(min_length=1)
    functions: frozenset[str] = frozenset()


_FILE: Final = TypeAdapter(dict[str, _Approved])


class Approvals:
    """The approvals of one data directory. Functions are named without their module (`search`, not `web.search`).

    `shared`: the administrator's approvals for all users, which count in addition to a user's own.
    """

    def __init__(self, path: Path, shared: Approvals | None = None) -> None:
        self._path = path
        self._shared = shared
        self._version: Version | None = None
        self._known: Mapping[str, _Approved] = {}

    @classmethod
    def load(cls, path: Path) -> Approvals:
        """Load the approvals in `path`, which need not exist yet.

        Raises:
            UsageError: the file can't be understood.
        """
        approvals = cls(path)
        approvals._version = version_of(path)  # first, so that changes made meanwhile are read again
        approvals._known = _read(path)
        return approvals

    def approved(self, name: str, digest: str, function: str) -> bool:
        """Whether a person approved this function of exactly this module."""
        if self._shared is not None and self._shared.approved(name, digest, function):
            return True
        self._follow()
        known = self._known.get(name)
        return known is not None and known.digest == digest and function in known.functions

    def approve(self, name: str, digest: str, functions: Iterable[str]) -> None:
        """Approve these functions on behalf of a person, in addition to earlier approvals for the same digest. On disk
        on return.

        Raises:
            UsageError: the file can't be read or written.
        """
        with locked(self._path, _WHAT):
            known = dict(_read(self._path))
            approved = frozenset(functions)
            earlier = known.get(name)
            if earlier is not None and earlier.digest == digest:
                approved |= earlier.functions

            known[name] = _Approved(digest=digest, functions=approved)
            self._save(known)

    def withdraw(self, name: str) -> None:
        """Withdraw all approvals of a module. On disk on return.

        Raises:
            UsageError: the file can't be read or written.
        """
        with locked(self._path, _WHAT):
            known = dict(_read(self._path))
            known.pop(name, None)
            self._save(known)

    def _save(self, known: Mapping[str, _Approved]) -> None:
        """Write the file, whose lock is held."""
        _write(self._path, known)
        self._known = known
        self._version = version_of(self._path)

    def _follow(self) -> None:
        version = version_of(self._path)
        if version != self._version:
            try:
                self._known = _read(self._path)
            except UsageError:
                self._known = {}
            self._version = version


def _read(path: Path) -> Mapping[str, _Approved]:
    """The approvals in a file by module; none if there is no file. Raises UsageError."""
    try:
        return _FILE.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"The approvals in {path} can't be read: {error.strerror}.") from error
    except ValidationError as error:
        raise UsageError(
            f"The file {path} does not hold approvals; remove it, and approve modules again."
        ) from error


def _write(path: Path, known: Mapping[str, _Approved]) -> None:
    data: dict[str, JSON] = {
        name: {"digest": approved.digest, "functions": list[JSON](sorted(approved.functions))}
        for name, approved in sorted(known.items())
    }
    replace_json(path, data, _WHAT)
