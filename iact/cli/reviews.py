"""The options of `iact workspace pending`, `diff`, `apply` and `drop`: changes that wait in a live directory."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.options import Commands, Group

if TYPE_CHECKING:
    from iact.settings import Settings


def add_reviews(commands: Commands, workspace: Group) -> None:
    """Add them to the group `workspace`."""
    one = commands.add(
        "pending", _pending, "List the changes that wait to be applied to your directory.", workspace
    )
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument("--json", action="store_true")

    one = commands.add(
        "diff", _diff, "Print the waiting changes, or what changed between two versions.", workspace
    )
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument(
        "what",
        metavar="PATH|VERSION",
        nargs="*",
        help="in a directory of yours: paths (default: all that waits); else one or two versions, each the beginning "
        "of its id or a record's number (default of the second: the newest)",
    )

    one = commands.add("apply", _apply, "Apply waiting changes to your directory.", workspace)
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument("paths", metavar="PATH", nargs="*", help="with all that is in it (default: everything)")
    one.add_argument("--force", action="store_true", help="also over what changed in the directory meanwhile")
    one.add_argument("--json", action="store_true")

    one = commands.add("drop", _drop, "Drop waiting changes; your directory stays as it is.", workspace)
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument("paths", metavar="PATH", nargs="*", help="with all that is in it (default: everything)")
    one.add_argument("--json", action="store_true")


def _pending(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import reviews

    return reviews.pending(settings, chosen.session, as_json=chosen.json)


def _diff(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import reviews, workspace

    if reviews.is_live(settings, chosen.session):
        return reviews.diff(settings, chosen.session, chosen.what)
    return workspace.diff(settings, chosen.session, chosen.what)


def _apply(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import reviews

    return reviews.apply(settings, chosen.session, chosen.paths, force=chosen.force, as_json=chosen.json)


def _drop(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import reviews

    return reviews.drop(settings, chosen.session, chosen.paths, as_json=chosen.json)
