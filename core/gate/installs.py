"""Scripts that do nothing but install packages from an index. Pure.

An installer asks an index more than once: for the list of a package's versions, then for the files. What it brought the
first time makes it a program that has read a stranger, so its next request would be asked about as data that leaves
(`core.tree.carried`). But an installer sends names of packages and nothing else, as long as nothing of the packages
runs. npm runs nothing of a package, because the module shell tells it so in such a script; pip builds a package
that has no wheel, so it is let go only to one index.

Only the plainest form is recognised: whatever stands beside it, or an option that isn't listed, makes it a script like
any other.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Installer = Literal["pip", "npm"]

_PACKAGE: Final = r"@?[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?(?:\[[\w,-]+\])?(?:(?:==|~=|@)[\w.+~^-]+)?"
"""A package by its name, with a version or without. No path, no address."""

_REQUIREMENT: Final = rf"(?:{_PACKAGE}|'{_PACKAGE}'|\"{_PACKAGE}\")"

_PIP: Final = re.compile(
    r"(?:pip3?|python3? -m pip) install"
    rf"(?: (?:-q|-qq|--quiet|-U|--upgrade|--user|--no-deps|--no-input|--pre|-r requirements[\w.-]*\.txt|{_REQUIREMENT}))+"
)
_NPM: Final = re.compile(
    r"npm (?:install|i|add|ci)"
    rf"(?: (?:-s|--silent|-D|--save-dev|-E|--save-exact|--no-save|--no-audit|--no-fund|{_REQUIREMENT}))*"
)


PUBLIC_INDEX: Final = frozenset({"pypi.org", "files.pythonhosted.org"})
"""The hosts of the public index of Python, which takes nothing from those who ask it."""


def installer_of(script: str) -> Installer | None:
    """The installer that a script runs, if it does nothing else."""
    line = script.strip()
    if _PIP.fullmatch(line):
        return "pip"
    return "npm" if _NPM.fullmatch(line) else None


def is_made_by_installing(path: str) -> bool:
    """Whether installers write at a path: where packages are, or the lists of them."""
    first, _, rest = path.partition("/")
    if rest:
        return first in (".local", "node_modules")
    return first in (".local", "node_modules", "package.json", "package-lock.json")
