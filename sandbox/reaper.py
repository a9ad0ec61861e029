"""Removes folders that killed processes left behind: socket folders, with their mounts, and temporary files."""

from __future__ import annotations

from pathlib import Path

from iact.sandbox import owner, socket_folder


def reap_folders(data: Path) -> list[Path]:
    """Remove the folders in `run` that no host claims any more. Return those that are gone. Blocks."""
    return reap_below(sockets(data), data)


def reap_below(place: Path, data: Path) -> list[Path]:
    """Remove the folders in `place` that no host of the data directory `data` claims. Return those that are gone.

    Blocks.
    """
    removed = []
    for folder in abandoned(place, data):
        socket_folder.remove(folder)
        if not folder.exists():
            removed.append(folder)
    return removed


def sockets(data: Path) -> Path:
    """Where the socket folders of this data directory are."""
    return data / "run"


def abandoned(place: Path, data: Path) -> list[Path]:
    """The folders in `place` whose claim nobody holds. Names: CLAIM@NUMBER. Blocks."""
    beside_claims = place.is_relative_to(data)
    try:
        entries = list(place.iterdir())
    except OSError:
        return []
    return [entry for entry in entries if _is_abandoned(entry.name, data, beside_claims)]


def _is_abandoned(name: str, data: Path, beside_claims: bool) -> bool:
    claim, numbered, _ = name.partition("@")
    if not numbered:
        return False

    # A host makes its claim before it makes folders, and gives it up after them. So in the data directory an unknown
    # claim is one that was given up; elsewhere it may be one of another directory that has this path in another mount
    # namespace.
    held = owner.holds(data, claim)
    return held is False or (held is None and beside_claims)
