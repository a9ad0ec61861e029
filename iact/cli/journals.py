"""The options of commands that read a journal: `replay`, `context`, and all of `journal`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.options import Commands, count, message

if TYPE_CHECKING:
    from iact.settings import Settings


def add_journals(commands: Commands) -> None:
    """Add `replay`, `context` and the group `journal`."""
    one = commands.add(
        "replay",
        _replay,
        "Rebuild a session from its journal; verify it, or show it as it was at any record.",
    )
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--verify", action="store_true", help="run the core over it and compare every context")
    one.add_argument("--at", type=int, metavar="N", help="as it was behind record N")
    one.add_argument("--tree", action="store_true", help="print the call tree")
    one.add_argument("--json", action="store_true")

    one = commands.add("context", _context, "Print exactly what a model was sent.")
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--agent", metavar="PATH", default="/")
    one.add_argument("--at", type=int, metavar="N")
    one.add_argument("--json", action="store_true")

    journal = commands.group("journal", "Check and list journals on disk.")
    one = commands.add(
        "check", _check, "Check a journal's form, its chain of digests and the blobs it names.", journal
    )
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--json", action="store_true")
    one = commands.add("tail", _tail, "Print a line for each record.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("-f", "--follow", action="store_true", help="go on with new records as they come")
    one.add_argument("-n", dest="last", type=count, metavar="COUNT", help="begin with the last COUNT records")
    one = commands.add("fork", _fork, "Make a new session from the first records of a journal.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--at", type=int, metavar="N", help="the last record that both share (default: all)")
    one.add_argument(
        "--say", metavar="TEXT", help="say this in it, and print the reply; - reads standard input"
    )
    one.add_argument(
        "--run", action="store_true", help="carry out what was under way at N first; without, it is dropped"
    )
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "timeline",
        _timeline,
        "Print what each agent did when, and what the answers waited for.",
        journal,
    )
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--at", type=int, metavar="N", help="up to record N")
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "export",
        _export,
        "Write a session's journal as one Markdown file, also of a session that is in a shared store.",
        journal,
    )
    one.add_argument("session", metavar="SESSION")
    one.add_argument("-o", dest="out", metavar="FILE", help="write it there instead of to standard output")
    one = commands.add("html", _html, "Write a journal as one self-contained HTML page.", journal)
    one.add_argument("journal", metavar="JOURNAL")
    one.add_argument("--at", type=int, metavar="N", help="as it was behind record N")
    one.add_argument("-o", dest="out", metavar="FILE", help="write it there instead of to standard output")


def _replay(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    path = journals.find(settings, chosen.journal)
    return journals.replay(
        settings, path, at=chosen.at, verify=chosen.verify, tree=chosen.tree, as_json=chosen.json
    )


def _context(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    path = journals.find(settings, chosen.journal)
    return journals.context(path, chosen.agent, at=chosen.at, as_json=chosen.json)


def _check(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    return journals.check(journals.find(settings, chosen.journal), as_json=chosen.json)


def _tail(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    return journals.tail(journals.find(settings, chosen.journal), follow=chosen.follow, last=chosen.last)


def _fork(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    path = journals.find(settings, chosen.journal)
    text = message(chosen.say) if chosen.say is not None else None
    return journals.fork(settings, path, at=chosen.at, text=text, as_json=chosen.json, run=chosen.run)


def _timeline(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    return journals.timeline(journals.find(settings, chosen.journal), at=chosen.at, as_json=chosen.json)


def _export(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    return journals.export(settings, chosen.session, out=chosen.out)


def _html(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import journals

    return journals.html(journals.find(settings, chosen.journal), at=chosen.at, out=chosen.out)
