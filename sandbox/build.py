"""Builds the systems that modules run in before they are needed: the plain system, and the workshop a person chose."""

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
    """A system that exists. `name`: the engine's name of its image, or its folder; `python`: its version of Python."""

    name: str
    python: str


def system(report: Report, backend: Backend, recipe: Recipe = BASE, source: Source | None = None) -> Built:
    """Find or build the system of `recipe` where modules run: in the engine, or below the cache. Blocks.

    Raises:
        SandboxUnavailable: it can't be built; the message says what to install or run.
    """
    if backend == "off":
        raise SandboxUnavailable("Modules are switched off by the setting IACT_SANDBOX=off; change it first.")
    if backend == "kubernetes":  # its nodes find images by names that only images built from packages have
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
    """Build the workshop `wanted` with current versions, and make it the workshop of data directory `data`. Blocks.

    Modules that run in another workshop continue there. If this fails, the previous workshop stays.

    Raises:
        PackagesUnavailable: a Python package is not available.
        SandboxUnavailable: it can't be built; the message says what to install or run.
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
