"""Removes folders that killed processes left behind: socket folders, with their mounts, and temporary files."""

from __future__ import annotations

from pathlib import Path

from iact.sandbox import owner, socket_folder


def reap_folders(data: Path) -> None:
    """Remove the socket folders of dead processes. Blocks."""
    reap_below(sockets(data))


def reap_below(place: Path) -> None:
    """Remove the folders of dead processes in `place`. Blocks."""
    for folder in _folders(place):
        socket_folder.remove(folder)


def sockets(data: Path) -> Path:
    """Where the socket folders of this data directory are."""
    return data / "run"


def _folders(place: Path) -> list[Path]:
    """Folders of processes that are gone. Names: PROCESS@NUMBER."""
    try:
        entries = list(place.iterdir())
    except OSError:
        return []
    dead = []
    for entry in entries:
        process = owner.Process.parse(entry.name.partition("@")[0])
        if process is not None and not process.alive:
            dead.append(entry)
    return dead
