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
@options.as_json
def show(settings: Settings, *, identity: str, as_json: bool) -> int:
    """Show one memory: what it says, where it is from, and what it replaced."""
    from iact.commands import memory

    return memory.show(settings, identity, as_json=as_json)


@memory.command()
@click.argument("identities", metavar="ID...", nargs=-1, required=True)
@options.as_json
def forget(settings: Settings, *, identities: tuple[str, ...], as_json: bool) -> int:
    """Permanently forget memories."""
    from iact.commands import memory

    return memory.forget(settings, identities, as_json=as_json)


@memory.command(name="forget-all")
@click.option("--yes", is_flag=True, help="don't ask whether that is meant")
@options.as_json
def forget_all(settings: Settings, *, yes: bool, as_json: bool) -> int:
    """Permanently forget everything that is remembered so far."""
    from iact.commands import memory

    return memory.forget_all(settings, sure=yes, as_json=as_json)


@memory.command()
@click.argument("identity", metavar="ID")
@click.argument("text")
@options.as_json
def edit(settings: Settings, *, identity: str, text: str, as_json: bool) -> int:
    """Permanently change the text of a memory."""
    from iact.commands import memory

    return memory.edit(settings, identity, text, as_json=as_json)


@memory.command()
@click.option("--session", default="", metavar="ID", help="only in this running session")
@options.as_json
def off(settings: Settings, *, session: str, as_json: bool) -> int:
    """Switch memory off: remember nothing, and tell agents nothing."""
    from iact.commands import memory

    return memory.switch(settings, False, session=session, as_json=as_json)


@memory.command()
@click.option("--session", default="", metavar="ID", help="only in this running session")
@options.as_json
def on(settings: Settings, *, session: str, as_json: bool) -> int:
    """Switch memory on again."""
    from iact.commands import memory

    return memory.switch(settings, True, session=session, as_json=as_json)


@memory.command()
@click.argument("sessions", metavar="SESSION...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="all sessions in the data directory")
@options.as_json
def distil(settings: Settings, *, sessions: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Ask a model what of sessions is worth remembering, in any language."""
    from iact.commands import memory

    return memory.distil(settings, sessions, everything=everything, as_json=as_json)


@memory.command()
@options.as_json
def rebuild(settings: Settings, *, as_json: bool) -> int:
    """Rebuild the memory store from the journals."""
    from iact.commands import memory

    return memory.rebuild(settings, as_json=as_json)
