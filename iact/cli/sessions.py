"""The options of commands about stored sessions: the group `session`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.options import INTENTS, SCOPE, Commands, count

if TYPE_CHECKING:
    from iact.settings import Settings


def add_sessions(commands: Commands) -> None:
    """Add the group `session`."""
    session = commands.group("session", "Stored sessions.")
    one = commands.add("list", _list, "List the stored sessions, the newest first.", session)
    one.add_argument("--deleted", action="store_true", help="those in the trash instead")
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "search",
        _search,
        "Find sessions by their titles and by all that was said or printed in them.",
        session,
    )
    one.add_argument(
        "query", metavar="WORDS", help="words by their beginnings; text in double quotes as it is"
    )
    one.add_argument("--limit", type=count, default=20, metavar="N")
    one.add_argument("--json", action="store_true")
    one = commands.add("rename", _rename, "Give a session a name; an empty one takes it away.", session)
    one.add_argument("session", metavar="ID")
    one.add_argument("title", metavar="NAME")
    one = commands.add(
        "pin", _pin, "Keep a session at the top of the list, and from being deleted for its age.", session
    )
    one.add_argument("session", metavar="ID")
    one.add_argument("--off", action="store_true", help="unpin it")
    one = commands.add(
        "delete",
        _delete,
        "Delete sessions. They are in the trash until it is emptied (setting sessions.trash_days), and can be restored; "
        "then their files, what memory holds of them, and their containers are gone.",
        session,
    )
    one.add_argument("sessions", nargs="+", metavar="ID")
    one.add_argument("--now", action="store_true", help="for good; also what is in the trash already")
    one.add_argument("--json", action="store_true")
    one = commands.add("restore", _restore, "Restore deleted sessions from the trash.", session)
    one.add_argument("sessions", nargs="+", metavar="ID")
    one.add_argument("--json", action="store_true")
    one = commands.add("export", _export, "Write a session with all its files into one archive.", session)
    one.add_argument("session", metavar="ID")
    one.add_argument("-o", dest="out", metavar="FILE", help="write it there (default: ID.tar.gz)")
    one = commands.add(
        "import",
        _import,
        "Import a session from an archive or a session's directory. One that this installation made can go on; any "
        "other can only be looked at until you adopt it.",
        session,
    )
    one.add_argument("source", metavar="FILE")
    one.add_argument("--json", action="store_true")
    commands.add(
        "tidy",
        _tidy,
        "Delete the sessions that the settings no longer keep, and remove old ones from the trash for good. A server "
        "does that every hour.",
        session,
    )
    one = commands.add(
        "adopt",
        _adopt,
        "Make a session of your own from one that another installation made: its records and copies of its "
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

    if chosen.deleted:
        return sessions.list_deleted(settings, as_json=chosen.json)
    return sessions.list_sessions(settings, as_json=chosen.json)


def _search(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.search(settings, chosen.query, limit=chosen.limit, as_json=chosen.json)


def _rename(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.rename(settings, chosen.session, chosen.title)


def _pin(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.pin(settings, chosen.session, pinned=not chosen.off)


def _delete(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import deleting

    return deleting.delete(settings, chosen.sessions, now=chosen.now, as_json=chosen.json)


def _restore(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import deleting

    return deleting.restore(settings, chosen.sessions, as_json=chosen.json)


def _tidy(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import deleting

    return deleting.tidy(settings)


def _export(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.export(settings, chosen.session, chosen.out)


def _import(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.take_in(settings, chosen.source, as_json=chosen.json)


def _adopt(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import sessions

    return sessions.adopt(
        settings, chosen.source, at=chosen.at, intent=chosen.intent, scope=chosen.scope, as_json=chosen.json
    )
