"""The options of `iact memory …`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.options import Commands

if TYPE_CHECKING:
    from iact.settings import Settings


def add_memory(commands: Commands) -> None:
    """Add the group `memory`."""
    memory = commands.group("memory", "Search and change what agents remember.")
    one = commands.add("search", _search, "Search memory, best first.", memory)
    one.add_argument("query", metavar="QUERY")
    one.add_argument("--limit", type=int, default=20, metavar="N")
    one.add_argument("--json", action="store_true")
    one = commands.add("show", _show, "Show one memory with its history.", memory)
    one.add_argument("id", metavar="ID")
    one = commands.add("forget", _forget, "Forget memories, for good.", memory)
    one.add_argument("ids", nargs="+", metavar="ID")
    one = commands.add("edit", _edit, "Change the text of a memory, for good.", memory)
    one.add_argument("id", metavar="ID")
    one.add_argument("text", metavar="TEXT")
    commands.add("rebuild", _rebuild, "Rebuild the memory store from the journals.", memory)


def _search(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import memory

    return memory.search(settings, chosen.query, limit=chosen.limit, as_json=chosen.json)


def _show(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import memory

    return memory.show(settings, chosen.id)


def _forget(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import memory

    return memory.forget(settings, chosen.ids)


def _edit(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import memory

    return memory.edit(settings, chosen.id, chosen.text)


def _rebuild(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import memory

    return memory.rebuild(settings)
