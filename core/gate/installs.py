"""Scripts that do nothing but install packages from an index. Pure.

An installer asks an index more than once: for the list of a package's versions, then for the files. What it brought the
first time makes it a program that has read a stranger, so its next request would be asked about as data that leaves
(`core.tree.carried`). But an installer sends names of packages and nothing else, as long as nothing of the packages
runs. So it is let go only to one index: pip builds a package that has no wheel, and what npm fetches from a repository
brings settings of npm's, which name programs that npm runs. Anything else of a package npm does not run, because the
module shell tells it so in such a script.

Only the plainest form is recognised: whatever stands beside it, or an option that isn't listed, makes it a script like
any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, Literal

Installer = Literal["pip", "npm"]

_NO_FILE: Final = r"(?!\S*\.(?i:zip|whl|tar|tgz|tbz|txz|tlz)\b)"
"""Installers take a name with such an ending for an archive that is here, not in an index."""

_NAME: Final = r"[A-Za-z0-9][\w.-]*"
_OF_PYTHON: Final = rf"{_NAME}(?:\[[\w,-]+\])?(?:[=~]=[\w.+-]+)?"
_OF_NPM: Final = rf"(?:@{_NAME}/)?{_NAME}(?:@[\w.+~^-]+)?"
"""A package by its name, with a version or without. No path, no address, and no repository, as `user/name` would be."""


def _quoted_or_not(package: str) -> str:
    return rf"{_NO_FILE}(?:{package}|'{package}'|\"{package}\")"


_PIP: Final = re.compile(
    r"(?:pip3?|python3? -m pip) install"
    r"(?: (?:-q|-qq|--quiet|-U|--upgrade|--user|--no-deps|--no-input|--pre|-r requirements[\w.-]*\.txt|"
    rf"{_quoted_or_not(_OF_PYTHON)}))+",
    re.ASCII,
)
_NPM: Final = re.compile(
    r"npm (?:install|i|add|ci)"
    r"(?: (?:-s|--silent|-D|--save-dev|-E|--save-exact|--no-save|--no-audit|--no-fund|"
    rf"{_quoted_or_not(_OF_NPM)}))*",
    re.ASCII,
)

_MADE: Final[Mapping[Installer, re.Pattern[str]]] = {
    "pip": re.compile(r"\.local(?:/(?:bin|lib|include|share/man|share/doc)(?:/.*)?|/share)?", re.DOTALL),
    "npm": re.compile(r"node_modules(?:/.*)?|package\.json|package-lock\.json", re.DOTALL),
}
"""Where an installer puts packages and the list of them. Not what else a package puts beside them: a desktop starts what
it finds in other folders of `.local/share`."""

PUBLIC_INDEX: Final = frozenset({"pypi.org", "files.pythonhosted.org"})
"""The hosts of the public index of Python, which takes nothing from those who ask it."""


def installer_of(script: str) -> Installer | None:
    """The installer that a script runs, if it does nothing else."""
    line = script.strip()
    if _PIP.fullmatch(line):
        return "pip"
    if _NPM.fullmatch(line):
        return "npm"
    return None


def is_made_by(installers: Collection[Installer], path: str) -> bool:
    """Whether one of these installers writes at a path: where packages are, or the lists of them."""
    return any(_MADE[installer].fullmatch(path) for installer in installers)
