"""Commands about secrets: `secret set`, `secret list`, `secret remove`. No command prints a value."""

from __future__ import annotations

import getpass
import json
import sys

from iact.commands import audit
from iact.sandbox.secrets import Secrets
from iact.settings import Settings


def store(settings: Settings, name: str) -> int:
    """Store a secret that is typed without being shown, or comes from standard input.

    Raises:
        UsageError: the name or the value can't be.
    """
    typed = sys.stdin.isatty()
    value = getpass.getpass(f"{name}: ") if typed else sys.stdin.read().removesuffix("\n")
    Secrets(settings.data).store(name, value)
    audit.tell(settings, "secret.changed", secret=name)
    return 0


def names(settings: Settings, *, as_json: bool) -> int:
    """Print the names."""
    found = Secrets(settings.data).names()
    print(
        json.dumps(found) if as_json else "".join(f"{name}\n" for name in found), end="\n" if as_json else ""
    )
    return 0


def remove(settings: Settings, name: str) -> int:
    """Remove a secret; a module that was given it keeps it until it is started anew.

    Raises:
        UsageError: there is none of this name.
    """
    Secrets(settings.data).remove(name)
    audit.tell(settings, "secret.changed", secret=name, removed="yes")
    return 0
