"""Commands about secrets: `secret set`, `secret list`, `secret remove`. No command prints a value."""

from __future__ import annotations

import getpass
import json
import sys

from iact.commands import audit
from iact.everybody import settings_of_everybody
from iact.sandbox.secrets import Secrets
from iact.settings import Settings
from iact.wiring import make_data_directory


def store(settings: Settings, name: str, *, everybody: bool) -> int:
    """Store a secret that is typed without being shown, or comes from standard input.

    Raises:
        UsageError: the name or the value can't be.
    """
    typed = sys.stdin.isatty()
    value = getpass.getpass(f"{name}: ") if typed else sys.stdin.read().removesuffix("\n")
    _secrets(settings, everybody=everybody).store(name, value)
    audit.tell(settings, "secret.changed", secret=name, **audit.whose(everybody=everybody))
    return 0


def names(settings: Settings, *, everybody: bool, as_json: bool) -> int:
    """Print the names."""
    found = _secrets(settings, everybody=everybody).names()
    print(
        json.dumps(found) if as_json else "".join(f"{name}\n" for name in found), end="\n" if as_json else ""
    )
    return 0


def remove(settings: Settings, name: str, *, everybody: bool) -> int:
    """Remove a secret; a module that was given it keeps it until it is started anew.

    Raises:
        UsageError: there is none of this name.
    """
    _secrets(settings, everybody=everybody).remove(name)
    audit.tell(settings, "secret.changed", secret=name, removed="yes", **audit.whose(everybody=everybody))
    return 0


def _secrets(settings: Settings, *, everybody: bool) -> Secrets:
    """The user's, or those of the modules that everybody has."""
    if not everybody:
        return Secrets(settings.data)
    whole = settings_of_everybody(settings)
    make_data_directory(whole)
    return Secrets(whole.data)
