"""Pushes the sandbox's images to a registry, where the nodes of a cluster find them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from iact.core.errors import SandboxUnavailable, UsageError
from iact.core.ports import Report
from iact.sandbox.catalogue import Catalogue
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import EngineFailure, connect
from iact.sandbox.images import workshop
from iact.sandbox.images.recipe import BASE


def push_images(data: Path, place: str, modules: Sequence[str], report: Report) -> list[str]:
    """Push the modules' images to `place` (registry.example/iact), building missing ones. Return the names. Blocks.

    These are the plain image, the workshop's if the data directory has one, and those of `modules`.

    Raises:
        SandboxUnavailable: an image can't be built, or the registry refuses it.
        UsageError: there is no such module.
    """
    catalogue = Catalogue(data)
    known = catalogue.modules()
    for name in modules:
        if name not in known:
            raise UsageError(f"There is no module {name!r}. See: iact module list.")
    kept = workshop.load(data)
    recipes = [BASE, *([kept.recipe()] if kept is not None else ())]
    recipes += [catalogue.recipe_of(known[name]) for name in modules]
    pushed: list[str] = []
    with closing(connect()) as client:
        for recipe in dict.fromkeys(recipes):
            made = image.ensure(client, report, source="debian", recipe=recipe).reference
            name, tag = f"{place.rstrip('/')}/{made}".rsplit(":", 1)
            report(f"pushing {name}:{tag}")
            try:
                client.images.get(made).tag(name, tag=tag)
                for line in client.api.push(name, tag=tag, stream=True, decode=True):
                    if "error" in line:
                        raise _Refused(str(line["error"]))
            except (*EngineFailure, _Refused) as error:
                why = str(error).split("\n", 1)[0][:300]
                raise SandboxUnavailable(
                    f"The image {name}:{tag} can't be pushed ({why}). Check that the registry exists "
                    "and that `docker login` succeeded."
                ) from error
            pushed.append(f"{name}:{tag}")
    return pushed


class _Refused(Exception):
    """The engine reports an error in its stream."""
