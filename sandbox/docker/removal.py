"""Freezes containers, and removes them for good with their folders, even if they resist."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from iact.core.errors import SandboxUnavailable
from iact.sandbox import owner, socket_folder
from iact.sandbox.docker.engine import EngineFailure, knock
from iact.sandbox.docker.lease import Lease
from iact.sandbox.threads import begin

_GRACE = 1
"""Seconds between SIGTERM and SIGKILL."""
_ENGINE_PATIENCE = 20
"""Seconds for the engine to stop or remove a container, before that is tried again later."""
_ENDS_ANYWAY = 5
"""Seconds of them after which the container's lease ends, which ends the container without the engine."""


async def remove(
    container: Container,
    folder: Path,
    *,
    at_once: bool = False,
    lease: Lease | None = None,
) -> bool:
    """Stop and remove a container and its socket folder. Return whether it is gone.

    Does not raise. A module may ignore SIGTERM, or stop or hang its own init: the engine kills it after the grace
    period. `lease`: what the container runs on; it is ended, so that the container ends even if the engine hangs. `at_once`: without the
    grace period, for when nothing in it may run any more.
    """
    removing = begin(_remove_now, container, folder, at_once)
    await asyncio.wait([removing], timeout=_ENDS_ANYWAY)
    if lease is not None:
        lease.close()
    await asyncio.wait([removing], timeout=_ENGINE_PATIENCE - _ENDS_ANYWAY)
    return removing.done() and not removing.cancelled() and removing.result()


async def remove_unanswered(client: docker.DockerClient, start: str, folder: Path) -> bool:
    """Remove what a start made whose creation was not answered, and its socket folder. Return whether nothing is left.

    Does not raise. `start`: the label of that start only. Its container has no lease, so that nothing runs in it.
    """
    removing = begin(_remove_unanswered_now, client, start, folder)
    await asyncio.wait([removing], timeout=_ENGINE_PATIENCE)
    return removing.done() and not removing.cancelled() and removing.result()


def made_by(client: docker.DockerClient, start: str) -> list[str]:
    """The ids of the containers with the label of one start. Blocks.

    Raises:
        docker.errors.DockerException, requests.exceptions.RequestException: the engine does not list them.
    """
    listed = client.api.containers(all=True, filters={"label": f"{owner.START}={start}"})
    return [str(item["Id"]) for item in listed]


def free_name(client: docker.DockerClient, name: str) -> None:
    """Make sure that no container has this name. Blocks.

    The engine may still be removing a container after the code that requested it stopped waiting; this waits for it.
    """
    with suppress(NotFound):
        try:
            client.api.remove_container(name, force=True, v=True)
        except APIError as error:
            if error.status_code != 409:  # 409: it is being removed right now
                raise
            client.api.wait(name, timeout=_ENGINE_PATIENCE, condition="removed")


async def freeze(container: Container) -> None:
    """Suspend everything that runs in a container; one that can't be paused is killed. Does not raise."""
    await asyncio.wait([begin(_freeze_now, container)], timeout=_ENGINE_PATIENCE)


async def remove_volume(client: docker.DockerClient, name: str) -> bool:
    """Remove a volume that no container uses any more. Return whether it is gone. Does not raise."""
    removing = begin(_remove_volume_now, client, name)
    await asyncio.wait([removing], timeout=_ENGINE_PATIENCE)
    return removing.done() and not removing.cancelled() and removing.result()


def _freeze_now(container: Container) -> None:
    with suppress(*EngineFailure, SandboxUnavailable):
        knock()
        try:
            container.pause()
        except APIError:
            container.kill()


def _remove_volume_now(client: docker.DockerClient, name: str) -> bool:
    try:
        knock()
        client.api.remove_volume(name, force=True)
    except NotFound:
        return True
    except (*EngineFailure, SandboxUnavailable):
        return False
    return True


def _remove_unanswered_now(client: docker.DockerClient, start: str, folder: Path) -> bool:
    try:
        knock()
        for identity in made_by(client, start):
            with suppress(NotFound):
                client.api.remove_container(identity, force=True, v=True)
    except (*EngineFailure, SandboxUnavailable):
        return False
    finally:
        socket_folder.remove(folder)
    return True


def _remove_now(container: Container, folder: Path, at_once: bool) -> bool:
    try:
        knock()
        if not at_once:
            with suppress(*EngineFailure):
                container.stop(timeout=_GRACE)
        container.remove(force=True, v=True)
    except NotFound:
        return True
    except (*EngineFailure, SandboxUnavailable):
        return False
    finally:
        socket_folder.remove(folder)
    return True
