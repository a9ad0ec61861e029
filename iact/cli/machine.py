"""Commands about this machine: `image`, `backup`, `restore`, `doctor`, `completion`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from click.shell_completion import get_completion_class

from iact.cli import options
from iact.cli.options import CommandGroup, command

if TYPE_CHECKING:
    from iact.settings import Settings


@click.group(cls=CommandGroup)
def image() -> None:
    """Build and push the sandbox's images."""


@image.command()
@click.option(
    "--from", "source", type=click.Choice(("registry", "debian")), help="where the base image comes from"
)
@click.option(
    "--profile",
    "profiles",
    type=click.Choice(("data", "dev")),
    multiple=True,
    help="a ready-made selection: data (numpy, pandas, matplotlib, sqlite3) or dev (gcc, make, node, pip, curl); both may be named",
)
@click.option("--with", "packages", metavar="NAMES", default="", help='Debian packages: "ffmpeg pandoc"')
@click.option("--wheels", metavar="NAMES", default="", help='Python packages: "scipy polars==1.9.0"')
@click.option("--add", is_flag=True, help="keep what the shell has, and add what is named")
@click.option("--plain", is_flag=True, help="remove all of these from the shell")
def build(
    settings: Settings,
    *,
    source: Literal["registry", "debian"] | None,
    profiles: tuple[Literal["data", "dev"], ...],
    packages: str,
    wheels: str,
    add: bool,
    plain: bool,
) -> int:
    """Build the images that tools run in, if they are missing.

    The packages named here are what the shell has from then on.
    """
    from iact.commands import images

    return images.build_image(
        settings, source, profiles=profiles, packages=packages, wheels=wheels, add=add, plain=plain
    )


@image.command()
@click.option(
    "--module",
    "modules",
    multiple=True,
    metavar="NAME",
    help="also push the image of this module, such as browser",
)
def push(settings: Settings, *, modules: tuple[str, ...]) -> int:
    """Push the sandbox's images to the place where a cluster's nodes find them (IACT_KUBERNETES_IMAGES)."""
    from iact.commands import images

    return images.push(settings, modules)


@image.command()
def offer(settings: Settings) -> int:
    """Ask on the terminal which tools the shell should have, and build its image."""
    from iact.commands import images

    return images.offer(settings)


@command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(settings: Settings, *, file: Path) -> int:
    """Back up the whole data directory to FILE. A server may be running."""
    from iact.commands import backup as backups

    return backups.back_up(settings, file)


@command()
@click.argument("file", type=click.Path(path_type=Path))
def restore(settings: Settings, *, file: Path) -> int:
    """Restore the data directory from a backup. The directory must be empty or new."""
    from iact.commands import backup as backups

    return backups.restore(settings, file)


@command()
@options.as_json
@click.option(
    "--fix", is_flag=True, help="remove the containers, mounts and folders that killed processes left"
)
def doctor(settings: Settings, *, as_json: bool, fix: bool) -> int:
    """Check what works on this machine, and how to fix what does not."""
    from iact.commands import catalogue

    return catalogue.doctor(settings, as_json=as_json, fix=fix)


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> int:
    """Print the completion script for a shell."""
    # This is no `Command`: it needs no settings, so it runs while the command line is parsed.
    found = get_completion_class(shell)
    assert found is not None
    print(found(context.find_root().command, {}, "iact", "_IACT_COMPLETE").source())
    return 0
