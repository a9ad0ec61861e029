"""`iact module …` and `iact secret …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings


_everybody: Final = click.option(
    "--everybody", is_flag=True, help="of all users of a server with accounts, in place of your own"
)


_lent: Final = click.option(
    "--lend",
    "lent",
    is_flag=True,
    help="given to the modules that are set for everybody, in place of everybody's secret of that name",
)


@click.group(cls=CommandGroup)
def secret() -> None:
    """Manage the secrets that modules are given: yours on the server that you are logged in to, or those here."""


@secret.command("set")
@click.argument("name")
@_everybody
@_lent
def set_secret(settings: Settings, *, name: str, everybody: bool, lent: bool) -> int:
    """Store a secret; its value is asked for, or read from standard input."""
    from iact.commands import secret

    return secret.store(settings, name, everybody=everybody, lent=lent)


@secret.command("list")
@_everybody
@_lent
@options.as_json
def list_secrets(settings: Settings, *, everybody: bool, lent: bool, as_json: bool) -> int:
    """List the names of the secrets."""
    from iact.commands import secret

    return secret.names(settings, everybody=everybody, lent=lent, as_json=as_json)


@secret.command("remove")
@click.argument("name")
@_everybody
@_lent
def remove_secret(settings: Settings, *, name: str, everybody: bool, lent: bool) -> int:
    """Remove a secret."""
    from iact.commands import secret

    return secret.remove(settings, name, everybody=everybody, lent=lent)


@click.group(cls=CommandGroup)
def module() -> None:
    """List, add, approve and check modules."""


@module.command("list")
@_everybody
@options.as_json
def list_modules(settings: Settings, *, everybody: bool, as_json: bool) -> int:
    """List the modules and their functions."""
    from iact.commands import catalogue

    return catalogue.list_modules(settings, everybody=everybody, as_json=as_json)


@module.command()
@click.argument("source", metavar="PATH-or-IMAGE")
@_everybody
@options.as_json
def add(settings: Settings, *, source: str, everybody: bool, as_json: bool) -> int:
    """Add a module: a folder with a module.toml, a .py file, or an image of the engine's."""
    from iact.commands import catalogue

    return catalogue.add_module(settings, source, everybody=everybody, as_json=as_json)


@module.command()
@click.argument("name")
@_everybody
def remove(settings: Settings, *, name: str, everybody: bool) -> int:
    """Take a module out of the catalogue."""
    from iact.commands import catalogue

    return catalogue.remove_module(settings, name, everybody=everybody)


@module.command()
@click.argument("name")
@_everybody
@options.as_json
def describe(settings: Settings, *, name: str, everybody: bool, as_json: bool) -> int:
    """Show what a module offers and what it needs."""
    from iact.commands import catalogue

    return catalogue.describe_module(settings, name, everybody=everybody, as_json=as_json)


@module.command()
@click.argument("name")
@click.argument("functions", metavar="[FUNCTION]...", nargs=-1)
@click.option("--digest", metavar="DIGEST", default="", help="only if the module's digest begins so")
@_everybody
@options.as_json
def approve(
    settings: Settings, *, name: str, functions: tuple[str, ...], digest: str, everybody: bool, as_json: bool
) -> int:
    """Approve a module, or some of its functions: trust what it declares, and grant what it needs."""
    from iact.commands import catalogue

    return catalogue.approve_module(
        settings, name, functions, digest=digest, everybody=everybody, as_json=as_json
    )


@module.command()
@click.argument("name")
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@click.option("--session", metavar="ID", default="", help="in this session only (default: in all)")
@click.option("--remove", is_flag=True, help="take it back")
@options.as_json
def allow(
    settings: Settings, *, name: str, hosts: tuple[str, ...], session: str, remove: bool, as_json: bool
) -> int:
    """Let a module reach hosts on the network.

    HOST is docs.python.org (ports 80 and 443), *.debian.org, host:port, or * for every public host.
    """
    from iact.commands import hosts as commands

    return commands.allow(settings, name, hosts, session=session, remove=remove, as_json=as_json)


@module.command()
@click.argument("name", required=False, default="")
@click.option("--session", metavar="ID", default="", help="with those that this session may reach")
@options.as_json
def hosts(settings: Settings, *, name: str, session: str, as_json: bool) -> int:
    """List the hosts that a module may reach (default: all modules)."""
    from iact.commands import hosts

    return hosts.show(settings, name, session=session, as_json=as_json)


@module.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--backend",
    type=click.Choice(("docker", "bubblewrap", "all")),
    help="where (default: as set; all: every one that is there)",
)
@click.option("--here", is_flag=True, help="without a sandbox")
@options.as_json
def check(settings: Settings, *, path: Path, backend: str | None, here: bool, as_json: bool) -> int:
    """Check that a module keeps to the protocol."""
    from iact.commands import check

    return check.check_module(path, settings, backend=backend or "", here=here, as_json=as_json)


@click.group(cls=CommandGroup)
def policy() -> None:
    """Show or replace the policy: what scopes let agents do."""


@policy.command("show")
def show_policy(settings: Settings) -> int:
    """Print the policy file."""
    from iact.commands import policy

    return policy.show(settings)


@policy.command("set")
@click.argument("source", metavar="FILE")
def set_policy(settings: Settings, *, source: str) -> int:
    """Put FILE (- is standard input) in place of the policy, if it is a valid one.

    It holds for sessions that begin, or are opened again.
    """
    from iact.commands import policy

    return policy.replace(settings, source)
