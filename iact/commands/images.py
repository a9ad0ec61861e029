"""`iact image build` and `push`: what tools run in, and the workshop that a person's shell has."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, Literal

from iact.core.errors import UsageError
from iact.sandbox import build
from iact.sandbox.docker.registry import push_images
from iact.sandbox.images import workshop
from iact.sandbox.images.workshop import PROFILES, Profile
from iact.settings import Settings
from iact.wiring import make_data_directory

_ANSWERS: Final[dict[str, tuple[Profile, ...]]] = {
    "": (),
    "none": (),
    "data": ("data",),
    "dev": ("dev",),
    "both": ("data", "dev"),
}


def build_image(
    settings: Settings,
    source: Literal["registry", "debian"] | None,
    *,
    profiles: Sequence[Profile] = (),
    packages: str = "",
    wheels: str = "",
    add: bool = False,
    plain: bool = False,
) -> int:
    """Build the sandbox's images unless they are there; what is named becomes the workshop.

    Raises:
        UsageError: the options contradict each other, or something is no name of a package.
    """
    wanted = workshop.chosen(profiles, packages, wheels)
    named = bool(wanted.packages or wanted.asked)
    if plain and named:
        raise UsageError("--plain goes without --profile, --with and --wheels: it takes them all away.")
    if named and source == "registry":
        raise UsageError("A workshop is made of Debian packages; leave out --from registry.")
    make_data_directory(settings)
    if named:
        kept = workshop.load(settings.data) if add else None
        wanted = kept.with_more(wanted) if kept is not None else wanted
        made = build.make_workshop(settings.data, wanted, _tell, settings.sandbox)
        print(made.name)
        _tell("each shell that is started from now on has it")
        return 0
    print(build.system(_tell, settings.sandbox, source=source).name)
    if plain:
        workshop.store(settings.data, None)
    elif (kept := workshop.load(settings.data)) is not None:
        print(build.system(_tell, settings.sandbox, kept.recipe()).name)
    return 0


def push(settings: Settings, modules: Sequence[str]) -> int:
    """Put the images that modules run in into the registry that the settings name.

    Raises:
        UsageError: they name none.
    """
    if not settings.kubernetes_images:
        raise UsageError(
            "Nothing says where images go. Set IACT_KUBERNETES_IMAGES, such as registry.example/iact."
        )
    make_data_directory(settings)
    for name in push_images(settings.data, settings.kubernetes_images, modules, _tell):
        print(name)
    return 0


def offer(settings: Settings) -> int:
    """Ask on the terminal which tools the shell is to have, and build that; an empty line is none."""
    print("The shell that agents work in has the usual commands, git and Python. It can have more:")
    for name, each in PROFILES.items():
        print(f"  {name}  {each.summary}")
        print(
            f"  {'':{len(name)}}  {each.size / 1e6:.0f} MB on disk, {each.seconds} seconds or more to build"
        )
    said = input("Which of them (data, dev, both; empty for none, iact image build adds it later)? ").strip()
    if said not in _ANSWERS:
        print(f"{said[:40]!r} is none of these, so nothing is added; see: iact image build --help")
        return 0
    return build_image(settings, None, profiles=_ANSWERS[said]) if _ANSWERS[said] else 0


def _tell(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)
