"""The secrets of one user, for the page and the command line (`web.ports.OwnSecrets`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from iact.sandbox.secrets import FILE, LENT, Secrets


class OwnSecrets:
    """The secrets of one data directory. Only their names can be read."""

    def __init__(self, data: Path) -> None:
        self._data = data

    def names(self, *, lent: bool) -> Sequence[str]:
        """The names, in order. `lent`: of the secrets lent to shared modules.

        Raises:
            UsageError: the file can't be read.
        """
        return self._of(lent).names()

    def store(self, name: str, value: str, *, lent: bool) -> None:
        """Store a secret.

        Raises:
            UsageError: the name or the value is invalid.
        """
        self._of(lent).store(name, value)

    def remove(self, name: str, *, lent: bool) -> None:
        """Remove a secret.

        Raises:
            UsageError: there is no secret of this name.
        """
        self._of(lent).remove(name)

    def _of(self, lent: bool) -> Secrets:
        return Secrets(self._data, LENT if lent else FILE)
