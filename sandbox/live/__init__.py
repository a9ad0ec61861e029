"""Live directories: what modules write to a user's directory takes effect only when it is applied.

As their workspace, modules get an overlay of the directory, made by the kernel. Their writes land in its upper layer,
which is ours, and from which the core reads what a call really did. The directory itself is written only by the core,
change by change. `open_live` implements `core.ports.OpenLive`.
"""

from __future__ import annotations

from pathlib import Path

from iact.sandbox.live.layer import layers_in
from iact.sandbox.live.mounting import collect
from iact.sandbox.live.overlay import Overlay

__all__ = ["collect", "layers_in", "open_live"]


def open_live(directory: Path, store: Path) -> Overlay:
    """Mount the overlay of `directory`, with what was written kept in `store`. Blocks.

    Raises:
        WorkspaceError: an overlay is not possible; the message says why, and what to do.
    """
    return Overlay(directory, store)
