"""Commands about secrets: `secret set`, `secret list`, `secret remove`. No command prints a value.

If the user is logged in to a server, the secrets are those on that server; otherwise those of the data directory.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Sequence
from typing import Protocol

from iact import login
from iact.commands import audit
from iact.commands.remote import Frame, ask_logged_in
from iact.core.errors import UsageError
from iact.everybody import settings_of_everybody
from iact.own_secrets import OwnSecrets
from iact.sandbox.secrets import Secrets
from iact.settings import Settings, make_data_directory
from iact.web.own_secrets import about_secret


def store(settings: Settings, name: str, *, everybody: bool, lent: bool) -> int:
    """Store a secret, typed without being shown or read from standard input.

    Raises:
        UsageError: the name or the value is invalid.
    """
    place = _place(settings, everybody=everybody, lent=lent)
    typed = sys.stdin.isatty()
    value = getpass.getpass(f"{name}: ") if typed else sys.stdin.read().removesuffix("\n")
    place.store(name, value)
    return 0


def names(settings: Settings, *, everybody: bool, lent: bool, as_json: bool) -> int:
    """Print the names of the secrets."""
    found = _place(settings, everybody=everybody, lent=lent).names()
    print(
        json.dumps(found) if as_json else "".join(f"{name}\n" for name in found), end="\n" if as_json else ""
    )
    return 0


def remove(settings: Settings, name: str, *, everybody: bool, lent: bool) -> int:
    """Remove a secret. A module that was given it keeps it until it is restarted.

    Raises:
        UsageError: there is no secret of this name.
    """
    _place(settings, everybody=everybody, lent=lent).remove(name)
    return 0


class _Place(Protocol):
    """The secrets that a command works on."""

    def names(self) -> Sequence[str]: ...
    def store(self, name: str, value: str) -> None: ...
    def remove(self, name: str) -> None: ...


def _place(settings: Settings, *, everybody: bool, lent: bool) -> _Place:
    if everybody and lent:
        raise UsageError(
            "A secret is either shared by all users (--everybody) or your own (--lend). Leave out one of the options."
        )
    if everybody:
        return _Everybodys(settings)
    return _Own(settings, lent) if login.read(settings.data) is None else _Remote(settings, lent)


class _Everybodys:
    """Secrets that an administrator sets for shared modules, in this data directory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        whole = settings_of_everybody(settings)
        make_data_directory(whole)
        self._secrets = Secrets(whole.data)

    def names(self) -> Sequence[str]:
        return self._secrets.names()

    def store(self, name: str, value: str) -> None:
        self._secrets.store(name, value)
        audit.tell(self._settings, "secret.changed", secret=name, **audit.whose(everybody=True))

    def remove(self, name: str) -> None:
        self._secrets.remove(name)
        audit.tell(
            self._settings, "secret.changed", secret=name, removed="yes", **audit.whose(everybody=True)
        )


class _Own:
    """Secrets of the only user of this data directory."""

    def __init__(self, settings: Settings, lent: bool) -> None:
        self._settings = settings
        self._lent = lent
        self._secrets = OwnSecrets(settings.data)

    def names(self) -> Sequence[str]:
        return self._secrets.names(lent=self._lent)

    def store(self, name: str, value: str) -> None:
        self._secrets.store(name, value, lent=self._lent)
        audit.tell(self._settings, "secret.changed", **about_secret(name, lent=self._lent))

    def remove(self, name: str) -> None:
        self._secrets.remove(name, lent=self._lent)
        audit.tell(self._settings, "secret.changed", **about_secret(name, lent=self._lent), removed="yes")


class _Remote:
    """Secrets of the user who is logged in, on their server."""

    def __init__(self, settings: Settings, lent: bool) -> None:
        self._settings = settings
        self._lent = lent

    def names(self) -> Sequence[str]:
        found = self._ask({"type": "secrets"})["lent" if self._lent else "list"]
        return [str(one) for one in found] if isinstance(found, list) else []

    def store(self, name: str, value: str) -> None:
        self._ask({"type": "secret.set", "name": name, "value": value, "lent": self._lent})

    def remove(self, name: str) -> None:
        self._ask({"type": "secret.remove", "name": name, "lent": self._lent})

    def _ask(self, message: Frame) -> Frame:
        return ask_logged_in(self._settings, message)
