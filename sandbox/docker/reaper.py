"""Removes the containers and volumes that a killed process left behind, in whatever state.

Only objects with this data directory's digest are considered, and only those that no host claims any more are touched,
so several processes can share a data directory, also from several PID namespaces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import docker
from docker.errors import APIError, NotFound

from iact.sandbox import owner
from iact.sandbox.docker.engine import EngineFailure
from iact.sandbox.reaper import reap_folders


@dataclass(slots=True)
class Reaped:
    """What came of it, by the names of containers and volumes."""

    removed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """What the engine did not remove, this time."""


def reap(client: docker.DockerClient, data: Path) -> Reaped:
    """Remove what hosts left that are gone. One refusal does not keep the rest. Blocks.

    Raises:
        docker.errors.DockerException, requests.exceptions.RequestException: the engine does not list it.
    """
    reaped = Reaped()
    for identity, name in abandoned_containers(client, data).items():
        _try(partial(_remove, client, identity), name, reaped)
    for name in abandoned_volumes(client, data):
        _try(partial(client.api.remove_volume, name, force=True), name, reaped)
    reap_folders(data)

    if not reaped.refused:
        owner.forget_all(data)
    return reaped


def abandoned_containers(client: docker.DockerClient, data: Path) -> dict[str, str]:
    """All containers of this data directory that no host claims, running or not: their names by their ids. Blocks."""
    # The list may change while it is read, so ask for the summary only, which inspects none of them.
    listed = client.api.containers(all=True, filters=_ours(data))
    return {
        str(item["Id"]): str((item["Names"] or [item["Id"]])[0]).removeprefix("/")
        for item in listed
        if owner.left_behind(item["Labels"], data)
    }


def abandoned_volumes(client: docker.DockerClient, data: Path) -> list[str]:
    """Names of all volumes of this data directory that no host claims. Blocks."""
    listed = client.api.volumes(filters=_ours(data))["Volumes"] or []
    return [str(item["Name"]) for item in listed if owner.left_behind(item["Labels"], data)]


def _ours(data: Path) -> dict[str, str]:
    return {"label": f"{owner.OWNER}={owner.data_digest(data)}"}


def _try(remove: Callable[[], object], name: str, reaped: Reaped) -> None:
    try:
        remove()
    except EngineFailure:
        reaped.refused.append(name)
    else:
        reaped.removed.append(name)


def _remove(client: docker.DockerClient, container: str) -> None:
    try:
        client.api.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != 409:  # 409: it is being removed right now
            raise
