"""`iact cluster …`: sessions on several machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal

import click

from iact.cli import options
from iact.cli.options import CommandGroup, Count

if TYPE_CHECKING:
    from iact.settings import Settings

store: Final = click.option(
    "--store",
    metavar="URL",
    help="the store that all hosts share, such as s3://BUCKET/PREFIX or file:///DIRECTORY (or IACT_STORE)",
)
CLUSTER: Final = "how hosts find each other: static (through the store only), or the address of a Ray cluster (or IACT_CLUSTER)"


def _shared(command: Callable[..., int]) -> Callable[..., int]:
    """The options `--store` and `--cluster`."""
    return store(click.option("--cluster", "address", metavar="ADDRESS", help=CLUSTER)(command))


def with_options(settings: Settings, store: str | None, cluster: str | None) -> Settings:
    """Return the settings with these options applied."""
    given = {"store": store, "cluster": cluster}
    return settings.model_copy(update={name: value for name, value in given.items() if value})


@click.group(cls=CommandGroup)
def cluster() -> None:
    """Run sessions on several machines."""


@cluster.command()
@store
@click.option("--nodes", type=Count(1, 32), default=3, metavar="N", help="number of hosts (default: 3)")
@click.option(
    "--engine",
    type=click.Choice(("ray", "static")),
    default="ray",
    help="what restarts hosts that fail: Ray, or only this command",
)
@click.option("--port", type=int, default=0, help="port of the page; 0 picks a free one")
def up(
    settings: Settings, *, store: str | None, nodes: int, engine: Literal["ray", "static"], port: int
) -> int:
    """Run a whole cluster on this machine: hosts and their gateway. Without --store, it uses a directory."""
    from iact.commands import cluster

    return cluster.up(with_options(settings, store, None), nodes=nodes, engine=engine, port=port)


@cluster.command()
@_shared
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", help="the address to listen on")
@click.option(
    "--advertise",
    metavar="NAME",
    default="",
    help="the name or address at which others reach this host (default: where it listens)",
)
@click.option("--port", type=int, default=0, help="port for pages; 0 picks a free one")
@click.option("--control-port", type=int, default=0, help="port for other hosts; 0 picks a free one")
@click.option(
    "--grace",
    metavar="SECONDS",
    type=float,
    default=30.0,
    help="how long running work may take to finish when its session is moved",
)
def host(
    settings: Settings,
    *,
    store: str | None,
    address: str | None,
    bind: str,
    advertise: str,
    port: int,
    control_port: int,
    grace: float,
) -> int:
    """Run one of the hosts that hold the sessions of a store, until it is stopped."""
    from iact.commands import cluster

    return cluster.host(
        with_options(settings, store, address),
        bind=bind, advertise=advertise, port=port, control_port=control_port, grace=grace,
    )  # fmt: skip


@cluster.command()
@_shared
@options.as_json
def status(settings: Settings, *, store: str | None, address: str | None, as_json: bool) -> int:
    """List the hosts that are running."""
    from iact.commands import cluster

    return cluster.status(with_options(settings, store, address), as_json=as_json)


@cluster.command()
@_shared
@click.argument("host")
def drain(settings: Settings, *, store: str | None, address: str | None, host: str) -> int:
    """Make a host hand over all its sessions and accept no more, so that it can be stopped."""
    from iact.commands import cluster

    return cluster.drain(with_options(settings, store, address), host)


@cluster.command()
@_shared
@click.argument("session")
@click.argument("host")
def move(settings: Settings, *, store: str | None, address: str | None, session: str, host: str) -> int:
    """Move a session to another host."""
    from iact.commands import cluster

    return cluster.move(with_options(settings, store, address), session, host)
