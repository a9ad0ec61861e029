"""The hosts that people allow modules to reach: one file for all sessions of a data directory, and one per session.

An unreadable file allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from iact.core.errors import UsageError
from iact.core.gate.hosts import Rule, host_rule, lists_of, rules_of
from iact.core.json_file import Version, locked, replace_json, version_of
from iact.core.ports import JSON

FILE: Final = "hosts.json"
"""The name of the file in a data directory, and in a session's directory."""

_WHAT: Final = "allowed hosts"
_FILE: Final = TypeAdapter(dict[str, list[str]])


class HostFile:
    """A file of allowed hosts, which need not exist."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: Version | None = None
        self._known: frozenset[Rule] = frozenset()

    def rules(self) -> frozenset[Rule]:
        """The rules that the file holds now."""
        version = version_of(self._path)
        if version != self._version:
            try:
                self._known = _read(self._path)
            except UsageError:
                self._known = frozenset()
            self._version = version
        return self._known

    def change(self, *, add: Iterable[Rule] = (), remove: Iterable[Rule] = ()) -> None:
        """Add and remove rules. On disk on return.

        Raises:
            UsageError: the file can't be read or written.
        """
        with locked(self._path, _WHAT):
            known = (_read(self._path) | frozenset(add)) - frozenset(remove)
            data: dict[str, JSON] = {module: list(rules) for module, rules in lists_of(known).items()}
            replace_json(self._path, data, _WHAT)


def _read(path: Path) -> frozenset[Rule]:
    """The rules in a file; none if there is no file. Raises UsageError."""
    try:
        content = _FILE.validate_json(path.read_bytes())
        return rules_of({module: [host_rule(text) for text in rules] for module, rules in content.items()})
    except FileNotFoundError:
        return frozenset()
    except OSError as error:
        raise UsageError(f"The {_WHAT} in {path} can't be read: {error.strerror}.") from error
    except (ValidationError, UsageError) as error:
        raise UsageError(f"The file {path} does not hold allowed hosts; correct or remove it.") from error
