"""Bounds what real root writes to its system, outside of its workspace: by the engine if possible, else by polling.

An engine on XFS with project quotas, on Btrfs or on ZFS limits the size of a container's writable layer. Other engines
are asked every few seconds how large the layer is; if it is too large, the container is killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import docker
from docker.errors import APIError
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.sandbox.docker.engine import EngineFailure, knock
from iact.sandbox.docker.options import HostOptions
from iact.sandbox.threads import in_thread

_BETWEEN: Final = 2.0
"""Seconds between two checks. Meanwhile, the size of a single file and the disk's speed bound what is written."""


class ImageLayers:
    """Whether an engine limits the size of layers; determined when the first is requested."""

    def __init__(self) -> None:
        self.held: bool | None = None

    def make(self, create: Callable[[HostOptions], str], options: HostOptions, most: int) -> str:
        """Create a container, with its layer limited to `most` bytes if possible. Return its id. Blocks."""
        if self.held is not False:
            try:
                made = create({**options, "storage_opt": {"size": str(most)}})
                self.held = True
                return made
            except APIError as error:
                if self.held or "storage" not in str(error.explanation or error).lower():
                    raise
                self.held = False
        return create(options)


class LayerWatch:
    """Ends a container when its layer is larger than `most` bytes. Runs until it is closed."""

    def __init__(self, client: docker.DockerClient, container: Container, most: int) -> None:
        self.full = False
        """Whether the layer was too large."""
        self._task = asyncio.create_task(self._look(client, container, most))

    def close(self) -> None:
        """Stop checking."""
        self._task.cancel()

    async def _look(self, client: docker.DockerClient, container: Container, most: int) -> None:
        while not self.full:
            await asyncio.sleep(_BETWEEN)
            self.full = await in_thread(_size, client, str(container.id)) > most
        with suppress(*EngineFailure):
            await in_thread(container.kill)


def _size(client: docker.DockerClient, container: str) -> int:
    with suppress(*EngineFailure, SandboxUnavailable):
        knock()
        for listed in client.api.containers(all=True, size=True, filters={"id": container}):
            return int(listed.get("SizeRw") or 0)
    return 0
