"""`iact image build` and `push`: the images that tools run in, and the workshop image of a user's shell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, Literal

from iact.core.errors import UsageError
from iact.sandbox import build
from iact.sandbox.docker.registry import push_images
from iact.sandbox.images import workshop
from iact.sandbox.images.workshop import PROFILES, Profile
from iact.settings import Settings, make_data_directory

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
    """Build the sandbox's images unless they exist. The packages named become the workshop image.

    Raises:
        UsageError: the options contradict each other, or a package name is invalid.
    """
    wanted = workshop.chosen(profiles, packages, wheels)
    named = bool(wanted.packages or wanted.asked)
    if plain and named:
        raise UsageError(
            "--plain can't be used with --profile, --with and --wheels, because it removes everything that they add."
        )
    if named and source == "registry":
        raise UsageError(
            "A shell with more packages is built from Debian packages. Leave out --from registry."
        )
    make_data_directory(settings)
    if named:
        kept = workshop.load(settings.data) if add else None
        wanted = kept.with_more(wanted) if kept is not None else wanted
        made = build.make_workshop(settings.data, wanted, _tell, settings.sandbox)
        print(made.name)
        _tell("all shells that start from now on use it")
        return 0
    print(build.system(_tell, settings.sandbox, source=source).name)
    if plain:
        workshop.store(settings.data, None)
    elif (kept := workshop.load(settings.data)) is not None:
        print(build.system(_tell, settings.sandbox, kept.recipe()).name)
    return 0


def push(settings: Settings, modules: Sequence[str]) -> int:
    """Push the images that modules run in to the registry that the settings name.

    Raises:
        UsageError: the settings name no registry.
    """
    if not settings.kubernetes_images:
        raise UsageError(
            "There is no registry to push images to. Set IACT_KUBERNETES_IMAGES, for example to registry.example/iact."
        )
    make_data_directory(settings)
    for name in push_images(settings.data, settings.kubernetes_images, modules, _tell):
        print(name)
    return 0


def offer(settings: Settings) -> int:
    """Ask on the terminal which tools the shell should have, and build its image. An empty line means none."""
    print("The shell that agents work in has the usual commands, git and Python. You can add more:")
    for name, each in PROFILES.items():
        print(f"  {name}  {each.summary}")
        print(
            f"  {'':{len(name)}}  {each.size / 1e6:.0f} MB on disk, {each.seconds} seconds or more to build"
        )
    said = input(
        "Which of these do you want (data, dev or both; empty for none, you can add them later with iact image build)? "
    ).strip()
    if said not in _ANSWERS:
        print(f"{said[:40]!r} is not one of these, so nothing was added. See: iact image build --help")
        return 0
    return build_image(settings, None, profiles=_ANSWERS[said]) if _ANSWERS[said] else 0


def _tell(line: str) -> None:
    print(f"iact: {line}", file=sys.stderr, flush=True)
