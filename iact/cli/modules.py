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
    "--everybody", is_flag=True, help="on a server with accounts: for all users, instead of only for you"
)


_lent: Final = click.option(
    "--lend",
    "lent",
    is_flag=True,
    help="your own secret for shared modules; they get it instead of the shared secret of that name",
)


@click.group(cls=CommandGroup)
def secret() -> None:
    """Manage the secrets that modules are given.

    These are your own on the server that you are logged in to; without a login, those of this data directory.
    """


@secret.command("set")
@click.argument("name")
@_everybody
@_lent
def set_secret(settings: Settings, *, name: str, everybody: bool, lent: bool) -> int:
    """Store a secret. Its value is read from a prompt or from standard input."""
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
    """Add a module: a folder with a module.toml, a .py file, or a container image."""
    from iact.commands import catalogue

    return catalogue.add_module(settings, source, everybody=everybody, as_json=as_json)


@module.command()
@click.argument("name")
@_everybody
def remove(settings: Settings, *, name: str, everybody: bool) -> int:
    """Remove a module from the catalogue."""
    from iact.commands import catalogue

    return catalogue.remove_module(settings, name, everybody=everybody)


@module.command()
@click.argument("name")
@_everybody
@options.as_json
def describe(settings: Settings, *, name: str, everybody: bool, as_json: bool) -> int:
    """Show what a module offers and what it needs, its digest, and its source."""
    from iact.commands import catalogue

    return catalogue.describe_module(settings, name, everybody=everybody, as_json=as_json)


@module.command()
@click.argument("name")
@click.argument("functions", metavar="[FUNCTION]...", nargs=-1)
@options.digest
@_everybody
@options.as_json
def approve(
    settings: Settings, *, name: str, functions: tuple[str, ...], digest: str, everybody: bool, as_json: bool
) -> int:
    """Approve a module, or some of its functions: trust what it declares, and grant what it needs.

    Without --digest, the module is shown with its source, and you are asked.
    """
    from iact.commands import catalogue

    return catalogue.approve_module(
        settings, name, functions, digest=digest, everybody=everybody, as_json=as_json
    )


@module.command()
@click.argument("name")
@click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
@click.option("--session", metavar="ID", default="", help="in this session only (default: in all sessions)")
@click.option("--remove", is_flag=True, help="withdraw this permission")
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
@click.option("--session", metavar="ID", default="", help="include the hosts allowed only in this session")
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
    help="where to run it (default: the configured backend; all: every available one)",
)
@click.option("--here", is_flag=True, help="run it here, without a sandbox")
@options.as_json
def check(settings: Settings, *, path: Path, backend: str | None, here: bool, as_json: bool) -> int:
    """Check that a module follows the protocol."""
    from iact.commands import check

    return check.check_module(path, settings, backend=backend or "", here=here, as_json=as_json)


@click.group(cls=CommandGroup)
def policy() -> None:
    """Show or replace the policy: what agents may do in each scope."""


@policy.command("show")
def show_policy(settings: Settings) -> int:
    """Print the policy file."""
    from iact.commands import policy

    return policy.show(settings)


@policy.command("set")
@click.argument("source", metavar="FILE")
@options.digest
def set_policy(settings: Settings, *, source: str, digest: str) -> int:
    """Replace the policy file with FILE (- reads standard input), if FILE is a valid policy.

    Without --digest, the difference is shown, and you are asked.
    The new policy applies to sessions that are started or reopened after this.
    """
    from iact.commands import policy

    return policy.replace(settings, source, seen=digest)
