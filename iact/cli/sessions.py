"""The options of commands about stored sessions: the group `session`."""

from __future__ import annotations

import argparse

from iact.cli.options import INTENTS, SCOPE, Commands
from iact.settings import Settings


def add_sessions(commands: Commands) -> None:
    """Add the group `session`."""
    session = commands.group("session", "Stored sessions.")
    one = commands.add("list", _list, "List the stored sessions, the newest first.", session)
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "adopt",
        _adopt,
        "Make a session of your own from one that this installation did not make: its records and copies of its "
        "files, under your own intent, scope and policy. Nothing that it had under way is carried out.",
        session,
    )
    one.add_argument("source", metavar="SESSION", help="its directory, its journal, or its id")
    one.add_argument("--at", type=int, metavar="N", help="the last record to take over (default: all)")
    one.add_argument("--intent", metavar="0|1|2", default="1", help=INTENTS)
    one.add_argument("--scope", metavar="NAME", default="default", help=SCOPE)
    one.add_argument("--json", action="store_true")


def _list(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.list_sessions(settings, as_json=chosen.json)


def _adopt(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.adopt(
        settings, chosen.source, at=chosen.at, intent=chosen.intent, scope=chosen.scope, as_json=chosen.json
    )
