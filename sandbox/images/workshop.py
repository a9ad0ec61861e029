"""The workshop: the system that a user's shell runs in, with the programs and Python packages the user wants there.

The plain system is small, since most sessions never compile anything. A person chooses the additions. The choice is
kept in the data directory (`workshop.json`) and built by `iact image build`; each version of the program builds it
again from there. Agents can't change it. Python packages are pinned when the choice is made, so that every build has
the same versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from iact.core import whole_file
from iact.core.errors import UsageError
from iact.sandbox.images.recipe import Recipe

Profile = Literal["data", "dev"]

_FILE: Final = "workshop.json"
_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9+.-]{1,60}")
_WHEEL: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\[[A-Za-z0-9,_-]{1,60}\])?((==|>=|<=|~=)[A-Za-z0-9][A-Za-z0-9.*!+_-]{0,60})?"
)
_MOST: Final = 200
"""The most packages, and the most wheels, that one workshop can name."""
_LONGEST: Final = 700
"""The most characters of each list that agents get."""


_ROOT: Final = "You are root: `apt-get update &&\napt-get install NAME` adds Debian packages, which the session's next shell has, too."
_NOBODY: Final = (
    "Nobody is root here: a Debian package is\nadded by the user, with `iact image build --add --with NAME`."
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A ready-made choice. `size`: approximate bytes on disk; `seconds`: approximate build time on a small machine."""

    packages: tuple[str, ...]
    wheels: tuple[str, ...]
    size: int
    seconds: int
    summary: str


_BOTH: Final = ("curl", "ca-certificates", "sqlite3", "file", "python3-pip", "python3-venv")

PROFILES: Final[dict[Profile, Offer]] = {
    "data": Offer(
        (*_BOTH, "poppler-utils", "gnuplot-nox"),
        ("numpy", "pandas", "matplotlib", "openpyxl"),
        570_000_000,
        60,
        "data work: numpy, pandas, matplotlib, openpyxl, sqlite3, gnuplot, poppler, pip, curl",
    ),
    "dev": Offer(
        (*_BOTH, "gcc", "g++", "make", "cmake", "pkg-config", "ripgrep", "nodejs", "npm", "python3-dev"),
        ("pytest",),
        750_000_000,
        60,
        "programming: gcc, g++, make, cmake, node, npm, pip, pytest, git, curl, sqlite3, ripgrep",
    ),
}


@dataclass(frozen=True, slots=True)
class Workshop:
    """A person's choice. `asked`: Python packages as named; `wheels`: the exact versions they were resolved to."""

    profiles: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    wheels: tuple[str, ...] = ()

    def with_more(self, more: Workshop) -> Workshop:
        """Combine both choices, without pins."""
        return Workshop(
            tuple(dict.fromkeys(self.profiles + more.profiles)),
            tuple(dict.fromkeys(self.packages + more.packages)),
            tuple(dict.fromkeys(self.asked + more.asked)),
        )

    def recipe(self, packages: Sequence[str] = ()) -> Recipe:
        """The system for a module that itself needs `packages`."""
        return Recipe(tuple(dict.fromkeys([*packages, *self.packages])), self.wheels, workshop=True)

    def described(self, *, root: bool = False) -> str:
        """A description of the installed programs for agents, in a few lines. `root`: whether agents are root there."""
        named = _shown([name for name in self.packages if name not in ("ca-certificates", "python3-dev")])
        wanted = {_plain(name) for name in self.asked}
        versions = [line.partition(" ")[0].replace("==", " ") for line in self.wheels]
        python = _shown([line for line in versions if _plain(line.partition(" ")[0]) in wanted])
        lines = [f"Installed here, beside the usual commands, git and jq: {named}."] if named else []
        if python:
            lines.append(f"Python packages: {python}.")
        installers = [
            command
            for command, package in {"pip install": "python3-pip", "npm install": "npm"}.items()
            if package in self.packages
        ]
        lines.append(
            f"{', '.join([*installers, 'git clone'])} work for hosts that a person allows, who is asked as you go; use "
            "https.\nWhat pip installs is in /workspace/.local, and stays with the session. "
            + (_ROOT if root else _NOBODY)
        )
        return "\n".join(lines)


def chosen(profiles: Sequence[Profile], packages: str, wheels: str) -> Workshop:
    """The workshop of some profiles plus packages and wheels, as a person names them; nothing is pinned yet.

    Raises:
        UsageError: one of them is not a name of a package.
    """
    more, named = packages.replace(",", " ").split(), wheels.split()
    for text, form, kind in [(each, _PACKAGE, "Debian") for each in more] + [
        (each, _WHEEL, "Python") for each in named
    ]:
        if not form.fullmatch(text):
            raise UsageError(
                f"{text[:100]!r} is not the name of a {kind} package; write names separated by spaces."
            )
    offers = [PROFILES[each] for each in profiles]
    all_packages = tuple(dict.fromkeys([name for each in offers for name in each.packages] + more))
    asked = tuple(dict.fromkeys([name for each in offers for name in each.wheels] + named))
    if max(len(all_packages), len(asked)) > _MOST:
        raise UsageError(f"A workshop can have at most {_MOST} packages of each kind; name fewer.")
    return Workshop(tuple(dict.fromkeys(profiles)), all_packages, asked)


def load(data: Path) -> Workshop | None:
    """The workshop chosen for data directory `data`, or None if there is none or it can't be read. Blocks."""
    try:
        raw = json.loads((data / _FILE).read_text(encoding="utf-8"))
        found = Workshop(**{name: tuple(map(str, raw[name])) for name in Workshop.__dataclass_fields__})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if all(map(_PACKAGE.fullmatch, found.packages)) else None


def store(data: Path, workshop: Workshop | None) -> None:
    """Set the workshop of data directory `data`; None: the shell runs in the plain system. Blocks."""
    if workshop is None:
        (data / _FILE).unlink(missing_ok=True)
        return
    data.mkdir(parents=True, exist_ok=True)
    whole_file.replace(data / _FILE, json.dumps(asdict(workshop), indent=1).encode())


def _plain(name: str) -> str:
    """Normalise a name, as the index does for comparison."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[=<>~]", name)[0]).lower()


def _shown(names: Sequence[str]) -> str:
    text = ", ".join(names)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rpartition(',')[0]} and more"
