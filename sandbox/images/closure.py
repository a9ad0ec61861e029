"""Finds which wheels a list of packages needs, without running anything of them.

pip itself would look up dependencies, but it runs the `setup.py` of a dependency that is given as an address, whatever
it is told about wheels. So pip is asked for one wheel at a time, without its dependencies. These are read here from the
wheel's metadata, and one that is given as an address is refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from iact.core.errors import PackagesUnavailable

_ROUNDS: Final = 60
"""How often wheels are chosen again because of what others need, before we give up."""
_METADATA: Final = 2_000_000
"""The largest metadata of a wheel that is read, in bytes."""

Download = Callable[[Sequence[str], Path], None]
"""Downloads the wheels of requirements into a folder, without their dependencies."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A downloaded wheel."""

    name: str
    """Its canonical name."""
    version: str
    needs: tuple[str, ...]
    """Its dependencies, as its metadata says."""


class _Wanted:
    """What is needed of one package, by all that need it."""

    def __init__(self) -> None:
        self.versions = SpecifierSet()
        self.extras: set[str] = set()


def with_dependencies(asked: Sequence[str], python: str, download: Download, folder: Path) -> list[str]:
    """Return `asked` and all that it needs for Python `python`, each as `name==version`.

    `folder`: an empty one, for the wheels that are looked into.

    Raises:
        PackagesUnavailable: something is not available as a wheel, is given as an address, or fits nothing else.
    """
    chosen: dict[str, Wheel] = {}
    for _ in range(_ROUNDS):
        wanted = _wanted(asked, chosen, python)
        missing = {
            name: need
            for name, need in wanted.items()
            if name not in chosen or not need.versions.contains(chosen[name].version, prereleases=True)
        }
        if not missing:
            return [f"{name}=={chosen[name].version}" for name in sorted(wanted)]

        for name, need in missing.items():
            place = folder / f"{len(list(folder.iterdir()))}"
            place.mkdir()
            download([f"{name}{need.versions}"], place)
            chosen[name] = _wheel_in(place)

    raise PackagesUnavailable(
        f"The packages {', '.join(asked)} need versions of others that exclude each other."
    )


def _wanted(asked: Iterable[str], chosen: dict[str, Wheel], python: str) -> dict[str, _Wanted]:
    """What `asked` needs, as far as the wheels that were chosen so far tell."""
    wanted: dict[str, _Wanted] = {}
    left = [(line.partition(" --hash=")[0], "", "") for line in asked]
    seen = set(left)
    while left:
        text, whose, extra = left.pop()
        need = _requirement(text, whose)
        if not _applies(need, python, extra):
            continue
        if need.url:
            raise PackagesUnavailable(
                f"The package {whose or need.name} asks for {need.name} at the address {need.url[:200]}. "
                "Packages come from the index only."
            )

        name = canonicalize_name(need.name)
        known = wanted.setdefault(name, _Wanted())
        known.versions &= need.specifier
        known.extras |= need.extras
        wheel = chosen.get(name)
        if wheel is None:
            continue
        for other in ("", *sorted(known.extras)):
            more = [(line, wheel.name, other) for line in wheel.needs]
            left += [one for one in more if one not in seen]
            seen.update(more)
    return wanted


def _requirement(text: str, whose: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        raise PackagesUnavailable(
            f"The package {whose} has a dependency that can't be read: {error}."
        ) from error


def _applies(need: Requirement, python: str, extra: str) -> bool:
    if need.marker is None:
        return not extra  # it was counted without an extra
    environment: dict[str, str | Set[str]] = {"python_version": python, "python_full_version": f"{python}.0"}
    return need.marker.evaluate({**environment, "extra": extra})


def _wheel_in(folder: Path) -> Wheel:
    """Read the metadata of the only wheel in a folder. Nothing of it is unpacked."""
    found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise PackagesUnavailable("The index offers something that is not a wheel.")
    try:
        with zipfile.ZipFile(found[0]) as archive:
            names = [one for one in archive.infolist() if one.filename.endswith(".dist-info/METADATA")]
            if len(names) != 1 or names[0].file_size > _METADATA:
                raise PackagesUnavailable(f"The wheel {found[0].name} has no metadata that can be read.")
            head = HeaderParser().parsestr(archive.read(names[0]).decode("utf-8", "replace"))
    except (OSError, zipfile.BadZipFile) as error:
        raise PackagesUnavailable(f"The wheel {found[0].name} is damaged.") from error
    return Wheel(
        canonicalize_name(str(head["Name"])), str(head["Version"]), tuple(head.get_all("Requires-Dist") or ())
    )
