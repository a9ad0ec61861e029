"""Builds what tools run in, before anybody waits for it: the plain system, and the workshop that a person wants."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from iact.core.errors import SandboxUnavailable
from iact.core.ports import Report
from iact.sandbox.bubblewrap import system_folder
from iact.sandbox.bubblewrap.host import check as check_bubblewrap
from iact.sandbox.docker import image
from iact.sandbox.docker.engine import connect
from iact.sandbox.docker.image import Source
from iact.sandbox.images import payload, workshop
from iact.sandbox.images.recipe import BASE, Recipe
from iact.sandbox.images.workshop import Workshop

Backend = Literal["auto", "docker", "bubblewrap", "kubernetes", "off"]


@dataclass(frozen=True, slots=True)
class Built:
    """A system that is there. `name`: the engine's name of its image, or its folder; `python`: version of its Python."""

    name: str
    python: str


def system(report: Report, backend: Backend, recipe: Recipe = BASE, source: Source | None = None) -> Built:
    """The system of `recipe`, found or built where tools run: in the engine, or below the cache. Blocks.

    Raises:
        SandboxUnavailable: with what to install or run.
    """
    if backend == "off":
        raise SandboxUnavailable("Modules are switched off by the setting IACT_SANDBOX=off; change it first.")
    if backend == "kubernetes":  # its nodes find images by the names of those that are made of packages
        source = "debian"
    if backend != "bubblewrap":
        try:
            client = connect()
        except SandboxUnavailable:
            if backend == "docker" or source is not None or not _bubblewrap_works():
                raise
        else:
            with closing(client):
                made = image.ensure(client, report, source=source, recipe=recipe)
                return Built(made.reference, image.python_of(client, made.reference))
    folder = system_folder.ensure(report, recipe)
    return Built(str(folder), system_folder.python_of(folder))


def _bubblewrap_works() -> bool:
    try:
        check_bubblewrap()
    except SandboxUnavailable:
        return False
    return True


def make_workshop(data: Path, wanted: Workshop, report: Report, backend: Backend) -> Built:
    """Build the workshop `wanted` with today's versions, and let it be the one of data directory `data`. Blocks.

    What ran in another goes on in that. Where this fails, the workshop that was there stays.

    Raises:
        PackagesUnavailable: a Python package can't be had.
        SandboxUnavailable: with what to install or run.
    """
    wheels = wanted.wheels
    if wanted.asked:
        python = system(report, backend).python
        report("looking up the Python packages")
        wheels = payload.pinned(wanted.asked, python)
    pinned = replace(wanted, wheels=wheels)
    made = system(report, backend, pinned.recipe())
    workshop.store(data, pinned)
    return made
