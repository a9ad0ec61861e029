"""What the agents of one session work in: its own workspace with its versions, or a person's directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from iact.core.session.effects import Effects, open_effects
from iact.core.session.live import Live
from iact.core.session.services import Services
from iact.core.session.workspace import Workspace


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """`effects`: what calls change in a directory that is seen through an overlay; nothing, if it is not."""

    workspace: Workspace
    effects: Effects

    @property
    def folder(self) -> Path:
        """What modules work in."""
        return self.effects.folder or self.workspace.folder


async def open_files(live: Live, services: Services) -> SessionFiles:
    """The files of a session: versions are kept of its own, an overlay is made over a person's."""
    own, directory = live.tree.workspace == "scratch", live.journal.directory
    folder = directory / "workspace" if own else Path(live.tree.workspace)
    workspace = Workspace(folder, directory, services.versions if own else None)
    return SessionFiles(workspace, await open_effects(live, folder, services.open_live))
