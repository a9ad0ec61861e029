"""Removes the containers and volumes that a killed process left behind.

Only objects with this data directory's digest are considered, and only those of a process that no longer lives are
touched, so several processes can share a data directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import docker
from docker.errors import APIError, NotFound

from iact.sandbox import owner
from iact.sandbox.reaper import reap_folders


def reap(client: docker.DockerClient, data: Path) -> list[str]:
    """Remove the leftovers of dead processes. Return the names of the containers that were removed. Blocks."""
    removed = [name for name in _containers(client, data) if _remove(client, name)]
    for name in _volumes(client, data):
        with suppress(APIError):  # someone else is removing it, or a container that is being removed uses it
            client.api.remove_volume(name, force=True)
    reap_folders(data)
    return removed


def _containers(client: docker.DockerClient, data: Path) -> list[str]:
    """Names of all containers of this data directory whose process is gone, running or not."""
    # The list may change while it is read, so ask for the summary only, which inspects none of them.
    listed = client.api.containers(all=True, filters=_ours(data))
    return [str(item["Id"]) for item in listed if _dead(item["Labels"])]


def _volumes(client: docker.DockerClient, data: Path) -> list[str]:
    """Names of all volumes of this data directory whose process is gone."""
    listed = client.api.volumes(filters=_ours(data))["Volumes"] or []
    return [str(item["Name"]) for item in listed if _dead(item["Labels"])]


def _ours(data: Path) -> dict[str, str]:
    return {"label": f"{owner.OWNER}={owner.data_digest(data)}"}


def _dead(labels: Mapping[str, str]) -> bool:
    process = owner.process_of(labels)
    return process is None or not process.alive


def _remove(client: docker.DockerClient, container: str) -> bool:
    with suppress(NotFound):
        try:
            client.api.remove_container(container, force=True, v=True)
        except APIError as error:
            if error.status_code != 409:  # 409: it is being removed right now
                raise
        return True
    return False
