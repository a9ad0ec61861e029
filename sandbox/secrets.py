"""Secrets that a user stored: one file that only this user can read. Modules get them by name, at their start.

A value goes from this file into the environment of a module's process, and nowhere else: no command prints it, and a
module's output is searched for it before the output is used (`core.modules.scrub`).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from iact.core.errors import UsageError
from iact.core.json_file import locked, replace_json

FILE: Final = "secrets.json"
"""Its name in the data directory."""
LENT: Final = "lent_secrets.json"
"""The file with the secrets that a user gives to shared modules, in place of the shared secrets."""
_WHAT: Final = "secrets"
SHORTEST: Final = 8
LONGEST: Final = 32_768
"""Characters of a value: a shorter value can't be distinguished from other text when it must be removed."""
_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_TAKEN: Final = ("PATH", "HOME", "PYTHON", "LD_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "IACT_", "GRPC_")
"""Beginnings of names that would change how a module runs."""


class Secrets:
    """The secrets of one data directory. Every method reads the file again. `file`: its name."""

    def __init__(self, data: Path, file: str = FILE) -> None:
        self._path = data / file

    def names(self) -> list[str]:
        """The names, in order.

        Raises:
            UsageError: the file can't be read.
        """
        return sorted(self._read())

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """The values of the given names, if stored.

        Raises:
            UsageError: the file can't be read.
        """
        known = self._read()
        return {name: known[name] for name in names if name in known}

    def store(self, name: str, value: str) -> None:
        """Store a value, replacing one of the same name.

        Raises:
            UsageError: the name or the value is not allowed, or the file can't be written.
        """
        if not _NAME.fullmatch(name) or name.startswith(_TAKEN):
            raise UsageError(
                f"A secret can't be named {name[:64]!r}; use capitals, digits and underscores, as in API_KEY."
            )
        if not SHORTEST <= len(value) <= LONGEST or "\0" in value:
            raise UsageError(f"A secret has {SHORTEST} to {LONGEST:,} characters.")
        with locked(self._path, _WHAT):
            self._write({**self._read(), name: value})

    def remove(self, name: str) -> None:
        """Remove a value.

        Raises:
            UsageError: there is no secret of this name, or the file can't be written.
        """
        with locked(self._path, _WHAT):
            known = self._read()
            if name not in known:
                raise UsageError(
                    f"There is no secret {name[:64]!r}; there are {', '.join(sorted(known)) or 'none'}."
                )
            self._write({one: value for one, value in known.items() if one != name})

    def _write(self, known: Mapping[str, str]) -> None:
        replace_json(self._path, dict(sorted(known.items())), _WHAT)

    def _read(self) -> Mapping[str, str]:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise UsageError(f"The secrets in {self._path} can't be read: {error.strerror}.") from error
        with os.fdopen(descriptor, encoding="utf-8") as stream:
            if stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077:
                raise UsageError(f"Others can read the secrets in {self._path}; run: chmod 600 {self._path}")
            try:
                known = json.load(stream)
            except ValueError as error:
                raise UsageError(f"The file {self._path} does not hold secrets; remove it.") from error
        if not isinstance(known, dict):
            raise UsageError(f"The file {self._path} does not hold secrets; remove it.")
        return {str(name): str(value) for name, value in known.items()}
