"""What modules declare, for commands that only look functions up: they start neither a module nor a sandbox, if they can."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from iact.core.views.known_modules import KnownModule, known_here
from iact.sandbox.catalogue import Catalogue
from iact.settings import Settings


async def declared_modules(settings: Settings) -> Sequence[KnownModule]:
    """All modules with what they declare. Those that have never run here are started once.

    Raises:
        SandboxError: one has to be started and there is no sandbox, or modules are switched off.
    """
    if settings.sandbox != "off":
        entries = await asyncio.to_thread(Catalogue(settings.data).entries)
        if all(entry.manifest is not None for entry in entries):
            return known_here(entries, settings.data)

    # What starts modules takes longer to import than a plan to check.
    from iact.catalogue import known_modules

    return await known_modules(settings)
