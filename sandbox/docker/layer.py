"""What real root writes to its system, outside of its workspace: held by the engine where its storage can, else looked at.

An engine on XFS with project quotas, on Btrfs or on ZFS holds a container's writable layer to a size. On any other the
engine is asked every few seconds how large the layer is; one that is too large ends with its container.
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
"""Seconds between two looks; what is written meanwhile is bounded by the size of a single file and the disk's speed."""


class ImageLayers:
    """Whether an engine holds layers to a size; learned when the first is asked for."""

    def __init__(self) -> None:
        self.held: bool | None = None

    def make(self, create: Callable[[HostOptions], str], options: HostOptions, most: int) -> str:
        """The id of a container that `create` makes with `options`, its layer held to `most` bytes if that can be. Blocks."""
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
        """Whether it was too large."""
        self._task = asyncio.create_task(self._look(client, container, most))

    def close(self) -> None:
        """Look no more."""
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
