"""Finds which wheels a list of packages needs, without running anything of them.

pip itself would look up dependencies, but it runs the `setup.py` of a dependency that is given as an address, whatever
it is told about wheels. So pip is asked for one wheel at a time, without its dependencies. These are read from the
wheel's metadata (of a module's packages, inside a sandbox: `sandbox.unpack_inside`), and one that is given as an address
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from iact.core.errors import PackagesUnavailable
from iact.sandbox import unpack_inside

_ROUNDS: Final = 60
"""How often wheels are chosen again because of what others need, before we give up."""
_FIELD: Final = 2_000
"""The longest dependency, name or version that is read, in characters."""

Download = Callable[[Sequence[str], Path], None]
"""Downloads the wheels of requirements into a folder, without their dependencies."""

Read = Callable[[Path], Mapping[str, object]]
"""Reads the metadata of a wheel: `name`, `version` and `needs`, or `refused` with the reason."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A downloaded wheel."""

    name: str
    """Its canonical name."""
    version: str
    needs: tuple[str, ...]
    """Its dependencies, as its metadata says."""
    file: Path

    @property
    def pin(self) -> str:
        return f"{self.name}=={self.version}"


class _Wanted:
    """What is needed of one package, by all that need it."""

    def __init__(self) -> None:
        self.versions = SpecifierSet()
        self.extras: set[str] = set()


def with_dependencies(
    asked: Sequence[str], python: str, download: Download, read: Read, folder: Path
) -> list[Wheel]:
    """Return the wheels of `asked` and of all that it needs for Python `python`, in the order of their names.

    `folder`: an empty one, for the wheels.

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
            return [chosen[name] for name in sorted(wanted)]

        for name, need in missing.items():
            place = folder / f"{len(list(folder.iterdir()))}"
            place.mkdir()
            download([f"{name}{need.versions}"], place)
            chosen[name] = _wheel_in(place, read)

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


def on_host(wheel: Path) -> Mapping[str, object]:
    """A `Read` for wheels that a person named, for an image of theirs. Reads metadata, and unpacks nothing."""
    try:
        return unpack_inside.needs(wheel)
    except unpack_inside.UnfitPackage as error:
        return {"refused": f"{wheel.name}: {error}"}


def _wheel_in(folder: Path, read: Read) -> Wheel:
    """The only wheel in a folder, with what `read` says of it."""
    found = list(folder.glob("*.whl"))
    if len(found) != 1:
        raise PackagesUnavailable("The index offers something that is not a wheel.")
    match read(found[0]):
        case {"name": str(name), "version": str(version), "needs": [*needs]}:
            texts = [name, version, *map(str, needs)]
            if max(map(len, texts)) <= _FIELD:
                return Wheel(canonicalize_name(name), version, tuple(texts[2:]), found[0])
        case {"refused": str(why)}:
            raise PackagesUnavailable(f"A package is refused: {why[:_FIELD]}.")
    raise PackagesUnavailable(f"The wheel {found[0].name} has no metadata that can be read.")
