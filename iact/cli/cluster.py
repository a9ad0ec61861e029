"""The options of commands about several machines: the group `cluster`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from iact.cli.options import Commands

if TYPE_CHECKING:
    from iact.settings import Settings

STORE: Final = (
    "the store that all hosts share, such as s3://BUCKET/PREFIX or file:///DIRECTORY (or IACT_STORE)"
)
CLUSTER: Final = (
    "how hosts find each other: static, by the store alone, or the address of a Ray cluster (or IACT_CLUSTER)"
)


def add_cluster(commands: Commands) -> None:
    """Add the group `cluster`."""
    cluster = commands.group("cluster", "Sessions on several machines.")
    one = commands.add(
        "host", _host, "Be one of the hosts that hold the sessions of a store, until it is stopped.", cluster
    )
    _shared(one)
    one.add_argument("--bind", metavar="ADDRESS", default="127.0.0.1", help="where it listens")
    one.add_argument(
        "--advertise",
        metavar="NAME",
        default="",
        help="under which name or address others reach it (default: where it listens)",
    )
    one.add_argument("--port", type=int, default=0, help="for pages; 0 takes a free one")
    one.add_argument("--control-port", type=int, default=0, help="for other hosts; 0 takes a free one")
    one.add_argument(
        "--grace",
        metavar="SECONDS",
        type=float,
        default=30.0,
        help="how long what is under way may take to its end when its session is moved",
    )
    one = commands.add("status", _status, "List the hosts that are running.", cluster)
    _shared(one)
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "drain", _drain, "Have a host pass on all of its sessions and take no more, so that it can be stopped.",
        cluster,
    )  # fmt: skip
    _shared(one)
    one.add_argument("host", metavar="HOST")
    one = commands.add("move", _move, "Have a session go on at another host.", cluster)
    _shared(one)
    one.add_argument("session", metavar="SESSION")
    one.add_argument("host", metavar="HOST")


def _shared(one: argparse.ArgumentParser) -> None:
    one.add_argument("--store", metavar="URL", help=STORE)
    one.add_argument("--cluster", metavar="ADDRESS", help=CLUSTER)


def with_options(chosen: argparse.Namespace, settings: Settings) -> Settings:
    """The settings, with what the options say instead."""
    given = {"store": chosen.store, "cluster": chosen.cluster}
    return settings.model_copy(update={name: value for name, value in given.items() if value})


def _host(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import cluster

    return cluster.host(
        with_options(chosen, settings), bind=chosen.bind, advertise=chosen.advertise, port=chosen.port,
        control_port=chosen.control_port, grace=chosen.grace,
    )  # fmt: skip


def _status(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import cluster

    return cluster.status(with_options(chosen, settings), as_json=chosen.json)


def _drain(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import cluster

    return cluster.drain(with_options(chosen, settings), chosen.host)


def _move(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import cluster

    return cluster.move(with_options(chosen, settings), chosen.session, chosen.host)
