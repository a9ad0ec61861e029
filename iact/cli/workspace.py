"""`iact workspace …`: the versions of a session's files, and changes that wait to be applied to your directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings

_paths: Final = click.argument("paths", metavar="[PATH]...", nargs=-1)


@click.group(cls=CommandGroup)
def workspace() -> None:
    """Manage a session's files: their versions, and changes that wait to be applied to your directory."""


@workspace.command()
@options.session
@click.option(
    "--all", "everything", is_flag=True, help="also list what .gitignore names, caches and git's objects"
)
@options.as_json
def pending(settings: Settings, *, session: str, everything: bool, as_json: bool) -> int:
    """List the changes that wait to be applied to your directory."""
    from iact.commands import reviews

    return reviews.pending(settings, session, everything=everything, as_json=as_json)


@workspace.command()
@options.session
@click.argument("what", metavar="[PATH|VERSION]...", nargs=-1)
def diff(settings: Settings, *, session: str, what: tuple[str, ...]) -> int:
    """Print the waiting changes, or what changed between two versions.

    If the session works in a directory of yours, name paths (default: all waiting changes). Otherwise, name one or two
    versions, each by the start of its id or by a record number (the second is the newest by default).
    """
    from iact.commands import reviews, workspace

    if reviews.is_live(settings, session):
        return reviews.diff(settings, session, what)
    return workspace.diff(settings, session, what)


@workspace.command()
@options.session
@_paths
@click.option(
    "--force", is_flag=True, help="also overwrite files that changed in the directory in the meantime"
)
@options.digest
@options.as_json
def apply(
    settings: Settings, *, session: str, paths: tuple[str, ...], force: bool, digest: str, as_json: bool
) -> int:
    """Apply waiting changes to your directory: each PATH and everything in it (default: all changes).

    Without --digest, the changes are shown, and you are asked.
    """
    from iact.commands import reviews

    return reviews.apply(settings, session, paths, seen=digest, force=force, as_json=as_json)


@workspace.command()
@options.session
@_paths
@options.as_json
def drop(settings: Settings, *, session: str, paths: tuple[str, ...], as_json: bool) -> int:
    """Drop waiting changes: each PATH and everything in it (default: all changes).

    Your directory stays as it is.
    """
    from iact.commands import reviews

    return reviews.drop(settings, session, paths, as_json=as_json)


@workspace.command()
@options.session
@options.as_json
def log(settings: Settings, *, session: str, as_json: bool) -> int:
    """List the versions of a session's files."""
    from iact.commands import workspace

    return workspace.log(settings, session, as_json=as_json)


@workspace.command()
@options.session
@click.argument("version")
@click.argument("path", default="")
@options.as_json
def restore(settings: Settings, *, session: str, version: str, path: str, as_json: bool) -> int:
    """Restore a session's files to a version, given by the start of its id or by a record number.

    With a PATH, restore only that file.
    """
    from iact.commands import workspace

    return workspace.restore(settings, session, version, path, as_json=as_json)
