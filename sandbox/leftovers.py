"""What hosts left behind that are gone, on any backend: to show it, and to remove it without starting a session.

The next host on the data directory removes the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import docker

from iact.core.errors import SandboxUnavailable
from iact.sandbox import reaper
from iact.sandbox.bubblewrap import cgroups
from iact.sandbox.docker.engine import EngineFailure, connect
from iact.sandbox.docker.reaper import abandoned_containers, abandoned_volumes, reap
from iact.sandbox.live import collect
from iact.sandbox.live.mounting import unclaimed

_PATIENCE = 10
"""Seconds for one request to the engine."""


@dataclass(slots=True)
class Leftovers:
    """What is left, or what was removed."""

    containers: list[str] = field(default_factory=list)
    """Names of containers, and of volumes of theirs."""
    folders: list[Path] = field(default_factory=list)
    """Folders of sockets and temporary files, most of them mounted."""
    overlays: list[Path] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    """Control groups."""

    def __bool__(self) -> bool:
        return bool(self.containers or self.folders or self.overlays or self.groups)

    def __add__(self, other: Leftovers) -> Leftovers:
        return Leftovers(
            self.containers + other.containers,
            self.folders + other.folders,
            self.overlays + other.overlays,
            self.groups + other.groups,
        )

    def told(self) -> str:
        """The numbers of each kind, for people."""
        numbers = {
            "container": len(self.containers),
            "folder": len(self.folders),
            "overlay": len(self.overlays),
            "control group": len(self.groups),
        }
        counted = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in numbers.items() if count]
        return ", ".join(counted)


def find(data: Path) -> Leftovers:
    """What hosts on the data directory `data` left that are gone. Removes nothing. Blocks.

    What an engine that does not answer has, is not found.
    """
    found = Leftovers()
    with _engine() as client:
        if client is not None:
            found.containers += abandoned_containers(client, data).values()
            found.containers += abandoned_volumes(client, data)
    found.folders += reaper.abandoned(reaper.sockets(data), data)
    found.overlays += unclaimed(data)
    found.groups += cgroups.abandoned(data)
    return found


def remove(data: Path) -> Leftovers:
    """Remove what `find` finds. Return what is gone. Blocks."""
    removed = Leftovers()
    removed.overlays += collect(data)
    removed.groups += cgroups.reap(data)
    removed.folders += reaper.reap_folders(data)
    with _engine() as client:
        if client is not None:
            removed.containers += reap(client, data).removed
    return removed


@contextmanager
def _engine() -> Iterator[docker.DockerClient | None]:
    """The engine, if one answers."""
    try:
        client = connect(timeout=_PATIENCE)
    except SandboxUnavailable:
        yield None
        return
    with closing(client):
        try:
            yield client
        except EngineFailure:
            return
