"""What hosts left behind on this machine that are gone: to show it, and to remove it without starting a session.

The next host on the data directory removes the same. Pods are not among it: only the host that started them knows its
cluster, and the cluster ends them within minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
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
    engine_silent: bool = False
    """No engine answers, or not to everything, so that containers may be left that are not listed."""

    def __bool__(self) -> bool:
        return bool(self.containers or self.folders or self.overlays or self.groups)

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


def find(places: Sequence[Path]) -> Leftovers:
    """What hosts on the data directories `places` left that are gone. Removes nothing. Blocks."""
    found = Leftovers()
    for data in places:
        found.folders += reaper.abandoned(reaper.sockets(data), data)
        found.overlays += unclaimed(data)
        found.groups += cgroups.abandoned(data)
    found.groups = list(dict.fromkeys(found.groups))  # some belong to no data directory

    _ask_engine(places, _abandoned, found)
    return found


def remove(places: Sequence[Path]) -> Leftovers:
    """Remove what `find` finds. Return what is gone. Blocks."""
    removed = Leftovers()
    for data in places:
        removed.overlays += collect(data)
        removed.groups += cgroups.reap(data)
        removed.folders += reaper.reap_folders(data)

    _ask_engine(places, _reaped, removed)
    return removed


def _ask_engine(
    places: Sequence[Path], ask: Callable[[docker.DockerClient, Path], Iterable[str]], told: Leftovers
) -> None:
    """Note in `told` the containers that `ask` names for each data directory, and whether the engine fell silent."""
    try:
        with closing(connect(timeout=_PATIENCE)) as client:
            for data in places:
                told.containers += ask(client, data)
    except (SandboxUnavailable, *EngineFailure):
        told.engine_silent = True


def _abandoned(client: docker.DockerClient, data: Path) -> list[str]:
    return [*abandoned_containers(client, data).values(), *abandoned_volumes(client, data)]


def _reaped(client: docker.DockerClient, data: Path) -> list[str]:
    return reap(client, data).removed
