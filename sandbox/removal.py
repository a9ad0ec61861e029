"""Takes a container away for good, with its socket folder, whatever it does against that."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import docker
from docker.models.containers import Container

from core.errors import SandboxUnavailable
from sandbox import socket_folder
from sandbox.engine import EngineFailure, begin, knock

_GRACE = 1
"""Seconds between SIGTERM and SIGKILL."""
_ENGINE_PATIENCE = 20
"""Seconds that the engine has to stop or remove a container, before we leave that to the reaper."""


async def remove(
    container: Container | str, folder: Path, *, client: docker.DockerClient | None = None
) -> None:
    """Stop and remove a container, given itself or its name, and its socket folder; nothing here raises.

    A module may ignore SIGTERM, stop its own init or hang it: the engine kills after the grace, and if
    the engine itself hangs, the container is left to the next start's reaper.
    """
    removing = begin(_remove_now, container, folder, client)
    await asyncio.wait([removing], timeout=_ENGINE_PATIENCE)


def _remove_now(container: Container | str, folder: Path, client: docker.DockerClient | None) -> None:
    try:
        with suppress(*EngineFailure, SandboxUnavailable):
            knock()
            if isinstance(container, str):
                if client is not None:
                    client.api.remove_container(container, force=True, v=True)
                return
            with suppress(*EngineFailure):
                container.stop(timeout=_GRACE)
            container.remove(force=True, v=True)
    finally:
        socket_folder.remove(folder)
