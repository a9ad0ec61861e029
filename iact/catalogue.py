"""The catalogue of modules of a data directory, for commands that no server carries out."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from iact.core.stored.catalogue import ModuleCatalogue
from iact.core.views.known_modules import KnownModule
from iact.sandbox import open_host
from iact.settings import Settings, make_data_directory


@asynccontextmanager
async def catalogue_of(settings: Settings) -> AsyncIterator[ModuleCatalogue]:
    """Open the catalogue of a data directory.

    Raises:
        SandboxUnavailable: the sandbox that the settings demand doesn't work here.
    """
    make_data_directory(settings)
    host = await open_host(
        settings.data, backend=settings.sandbox, runtime=settings.runtime, kubernetes=settings.kubernetes
    )
    try:
        yield ModuleCatalogue.of(host, settings.data)
    finally:
        await host.close()


async def known_modules(settings: Settings) -> Sequence[KnownModule]:
    """All modules with what they declare. Modules that have never run here are started once."""
    async with catalogue_of(settings) as catalogue:
        return await catalogue.described(tell)


def tell(line: str) -> None:
    """Say on standard error how the start of a module goes on."""
    print(f"iact: {line}", file=sys.stderr, flush=True)
