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
    """The files of a session: their versions, and changes that wait to be applied to your directory."""


@workspace.command()
@options.session
@options.as_json
def pending(settings: Settings, *, session: str, as_json: bool) -> int:
    """List the changes that wait to be applied to your directory."""
    from iact.commands import reviews

    return reviews.pending(settings, session, as_json=as_json)


@workspace.command()
@options.session
@click.argument("what", metavar="[PATH|VERSION]...", nargs=-1)
def diff(settings: Settings, *, session: str, what: tuple[str, ...]) -> int:
    """Print the waiting changes, or what changed between two versions.

    For a directory of yours, name paths (default: all that waits). Otherwise name one or two versions, each by the
    beginning of its id or a record's number (default of the second: the newest).
    """
    from iact.commands import reviews, workspace

    if reviews.is_live(settings, session):
        return reviews.diff(settings, session, what)
    return workspace.diff(settings, session, what)


@workspace.command()
@options.session
@_paths
@click.option("--force", is_flag=True, help="also over what changed in the directory meanwhile")
@options.as_json
def apply(settings: Settings, *, session: str, paths: tuple[str, ...], force: bool, as_json: bool) -> int:
    """Apply waiting changes to your directory: each PATH with all that is in it (default: everything)."""
    from iact.commands import reviews

    return reviews.apply(settings, session, paths, force=force, as_json=as_json)


@workspace.command()
@options.session
@_paths
@options.as_json
def drop(settings: Settings, *, session: str, paths: tuple[str, ...], as_json: bool) -> int:
    """Drop waiting changes: each PATH with all that is in it (default: everything). Your directory stays as it is."""
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
@options.as_json
def restore(settings: Settings, *, session: str, version: str, as_json: bool) -> int:
    """Restore the files of a session to a version: the beginning of its id, or a record's number."""
    from iact.commands import workspace

    return workspace.restore(settings, session, version, as_json=as_json)
