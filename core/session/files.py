"""The files that the agents of one session work on: its own workspace with its versions, or a person's directory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from iact.core.errors import StoreUnavailable, WorkspaceError
from iact.core.session.effects import SessionEffects, open_effects
from iact.core.session.live import Live
from iact.core.session.services import Services
from iact.core.session.uploaded_files import put_again
from iact.core.stored.workspace import Workspace, is_unkept, version_of


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """`effects`: what calls change in a directory that is seen through an overlay; does nothing if there is no
    overlay."""

    workspace: Workspace
    effects: SessionEffects

    @property
    def folder(self) -> Path:
        """The folder that modules work in."""
        return self.effects.folder or self.workspace.folder


async def open_files(live: Live, services: Services) -> SessionFiles:
    """Open the files of a session: with versions for its own workspace, with an overlay for a person's directory."""
    own, directory = live.tree.workspace == "scratch", live.journal.directory
    folder = directory / "workspace" if own else Path(live.tree.workspace)
    workspace = Workspace(folder, directory, services.versions if own else None, live.journal.segments)
    if own and live.journal.moved:
        await _fetch(live, workspace)
    if own:
        await _put_again(live, workspace)
    return SessionFiles(workspace, await open_effects(live, folder, services.open_live))


async def _put_again(live: Live, workspace: Workspace) -> None:
    """Make the files of uploads whose records a crash, or a move to another host, left without them."""
    try:
        await asyncio.to_thread(put_again, workspace.folder, live.records, live.journal.blob)
    except WorkspaceError as error:
        live.notice("/", "workspace", str(error))


async def _fetch(live: Live, workspace: Workspace) -> None:
    """Fetch the files of a session that was on another host: those of the newest version that a record names."""
    written = [one for one in live.records if version_of(one) or is_unkept(one)]
    named = [one for one in written if version_of(one)]
    if not written:
        return
    if not named:
        text = "The session was on another host. Its files stayed there, because no version of them was kept."
        live.notice("/", "workspace", text)
        return
    try:
        await workspace.fetch(version_of(named[-1]))
    except (WorkspaceError, StoreUnavailable) as error:
        text = (
            f"The session was on another host, and its files could not be fetched: {error} The workspace "
            "contains the files that this host had."
        )
        live.notice("/", "workspace", text)
        return
    if written[-1] is not named[-1]:
        text = (
            f"The session was on another host. Its files are as they were after record {named[-1].n}; "
            "later changes were not kept."
        )
        live.notice("/", "workspace", text)
