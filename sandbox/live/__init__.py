"""Live directories: what modules write into a directory of the user's is real only when it is applied.

Modules get an overlay of the directory, made by the kernel, as their workspace. What they write lands in its upper
layer, which is ours, and from which the core reads what a call really did; the directory itself is written by the core
alone, change by change. `open_live` implements `core.ports.OpenLive`.
"""

from __future__ import annotations

from pathlib import Path

from iact.sandbox.live.mounting import collect
from iact.sandbox.live.overlay import Overlay

__all__ = ["collect", "open_live"]


def open_live(directory: Path, store: Path) -> Overlay:
    """The overlay of `directory`, mounted, with what was written kept in `store`. Blocks.

    Raises:
        WorkspaceError: there can be none: says why, and what to do.
    """
    return Overlay(directory, store)
