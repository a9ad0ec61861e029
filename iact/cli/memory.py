"""`iact memory …`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings


@click.group(cls=CommandGroup)
def memory() -> None:
    """Search and change what agents remember."""


@memory.command()
@click.argument("query")
@click.option("--limit", type=int, default=20, metavar="N", help="print at most N results (default: 20)")
@options.as_json
def search(settings: Settings, *, query: str, limit: int, as_json: bool) -> int:
    """Search memory. The best matches are printed first."""
    from iact.commands import memory

    return memory.search(settings, query, limit=limit, as_json=as_json)


@memory.command(name="list")
@click.option("--limit", type=int, default=50, metavar="N", help="print at most N statements (default: 50)")
@options.as_json
def list_(settings: Settings, *, limit: int, as_json: bool) -> int:
    """List what is remembered, the newest first."""
    from iact.commands import memory

    return memory.list_all(settings, limit=limit, as_json=as_json)


@memory.command()
@click.argument("identity", metavar="ID")
def show(settings: Settings, *, identity: str) -> int:
    """Show one memory with its history."""
    from iact.commands import memory

    return memory.show(settings, identity)


@memory.command()
@click.argument("identities", metavar="ID...", nargs=-1, required=True)
def forget(settings: Settings, *, identities: tuple[str, ...]) -> int:
    """Permanently forget memories."""
    from iact.commands import memory

    return memory.forget(settings, identities)


@memory.command()
@click.argument("identity", metavar="ID")
@click.argument("text")
def edit(settings: Settings, *, identity: str, text: str) -> int:
    """Permanently change the text of a memory."""
    from iact.commands import memory

    return memory.edit(settings, identity, text)


@memory.command()
def rebuild(settings: Settings) -> int:
    """Rebuild the memory store from the journals."""
    from iact.commands import memory

    return memory.rebuild(settings)
