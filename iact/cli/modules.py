"""The options of commands about modules, their secrets, and the files that they work on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from iact.cli.options import Commands
from iact.cli.reviews import add_reviews

if TYPE_CHECKING:
    from iact.settings import Settings


def add_modules(commands: Commands) -> None:
    """Add the groups `module`, `secret` and `workspace`."""
    _add_secrets(commands)
    module = commands.group("module", "List, add, approve and check modules.")
    one = commands.add("list", _modules, "List the modules and their functions.", module)
    one.add_argument("--json", action="store_true")

    one = commands.add(
        "add",
        _module_add,
        "Add a module: a folder with a module.toml, a .py file, or an image of the engine's.",
        module,
    )
    one.add_argument("source", metavar="PATH-or-IMAGE")
    one.add_argument("--json", action="store_true")
    one = commands.add("remove", _module_remove, "Take a module out of the catalogue.", module)
    one.add_argument("name", metavar="NAME")
    one = commands.add("describe", _module_describe, "Show what a module offers and what it needs.", module)
    one.add_argument("name", metavar="NAME")
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "approve",
        _module_approve,
        "Approve a module: trust what it declares, and grant what it needs.",
        module,
    )
    one.add_argument("name", metavar="NAME")
    one.add_argument("functions", nargs="*", metavar="FUNCTION", help="only these (default: all of it)")
    one.add_argument("--digest", default="", help="only if the module's digest begins so")
    one.add_argument("--json", action="store_true")

    one = commands.add("allow", _module_allow, "Let a module reach hosts on the network.", module)
    one.add_argument("name", metavar="NAME")
    one.add_argument(
        "hosts",
        nargs="+",
        metavar="HOST",
        help="docs.python.org (ports 80 and 443), *.debian.org, host:port, or * for every public host",
    )
    one.add_argument("--session", metavar="ID", default="", help="in this session only (default: in all)")
    one.add_argument("--remove", action="store_true", help="take it back")
    one.add_argument("--json", action="store_true")
    one = commands.add("hosts", _module_hosts, "List the hosts that modules may reach.", module)
    one.add_argument("name", metavar="NAME", nargs="?", default="", help="of this module (default: of all)")
    one.add_argument("--session", metavar="ID", default="", help="with those that this session may reach")
    one.add_argument("--json", action="store_true")

    one = commands.add("check", _module_check, "Check that a module keeps to the protocol.", module)
    one.add_argument("path", metavar="PATH", type=Path)
    one.add_argument(
        "--backend",
        choices=("docker", "bubblewrap", "all"),
        default="",
        help="where (default: as set; all: every one that is there)",
    )
    one.add_argument("--here", action="store_true", help="without a sandbox")
    one.add_argument("--json", action="store_true")

    workspace = commands.group(
        "workspace",
        "The files of a session: their versions, and changes that wait to be applied to your directory.",
    )
    add_reviews(commands, workspace)
    one = commands.add("log", _workspace_log, "List the versions of a session's files.", workspace)
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument("--json", action="store_true")
    one = commands.add(
        "restore", _workspace_restore, "Restore the files of a session to a version.", workspace
    )
    one.add_argument("--session", metavar="ID", required=True)
    one.add_argument("version", metavar="VERSION", help="the beginning of its id, or a record's number")
    one.add_argument("--json", action="store_true")


def _add_secrets(commands: Commands) -> None:
    secret = commands.group("secret", "Manage the secrets that modules are given.")
    one = commands.add(
        "set", _secret_set, "Store a secret; its value is asked for, or read from standard input.", secret
    )
    one.add_argument("name", metavar="NAME")
    one = commands.add("list", _secret_list, "List the names of the secrets.", secret)
    one.add_argument("--json", action="store_true")
    one = commands.add("remove", _secret_remove, "Remove a secret.", secret)
    one.add_argument("name", metavar="NAME")


def _secret_set(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import secret

    return secret.store(settings, chosen.name)


def _secret_list(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import secret

    return secret.names(settings, as_json=chosen.json)


def _secret_remove(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import secret

    return secret.remove(settings, chosen.name)


def _modules(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.list_modules(settings, as_json=chosen.json)


def _module_add(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.add_module(settings, chosen.source, as_json=chosen.json)


def _module_remove(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.remove_module(settings, chosen.name)


def _module_describe(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.describe_module(settings, chosen.name, as_json=chosen.json)


def _module_approve(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.approve_module(
        settings, chosen.name, chosen.functions, digest=chosen.digest, as_json=chosen.json
    )


def _module_allow(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import hosts

    return hosts.allow(
        settings, chosen.name, chosen.hosts,
        session=chosen.session, remove=chosen.remove, as_json=chosen.json,
    )  # fmt: skip


def _module_hosts(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import hosts

    return hosts.show(settings, chosen.name, session=chosen.session, as_json=chosen.json)


def _workspace_log(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import workspace

    return workspace.log(settings, chosen.session, as_json=chosen.json)


def _workspace_restore(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import workspace

    return workspace.restore(settings, chosen.session, chosen.version, as_json=chosen.json)


def _module_check(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import check

    return check.check_module(
        chosen.path, settings, backend=chosen.backend, here=chosen.here, as_json=chosen.json
    )
