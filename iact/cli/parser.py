"""The parser of the command line, put together from the parts beside it.

A part knows a command's options; what the command does is in `iact.commands`, loaded only where it runs.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from iact.cli.cluster import CLUSTER, STORE, add_cluster, with_options
from iact.cli.controls import add_controls
from iact.cli.gate import add_gate
from iact.cli.journals import add_journals
from iact.cli.memory import add_memory
from iact.cli.modules import add_modules
from iact.cli.options import INTENTS, PLAN_FIRST, SCOPE, WAY, Commands, count, message
from iact.cli.plans import add_plans
from iact.cli.sessions import add_sessions
from iact.core.records.ways import WAYS

if TYPE_CHECKING:
    from iact.settings import Settings


def build_parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    parser = argparse.ArgumentParser(prog="iact", description="A recursive agent-call-tree runtime.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = Commands(parser)
    _add_sessions(commands)
    add_journals(commands)
    add_sessions(commands)
    add_controls(commands)
    add_modules(commands)
    add_plans(commands)
    add_gate(commands)
    add_memory(commands)
    add_cluster(commands)
    _add_machine(commands)
    return parser


class _Version(argparse.Action):
    """Prints the version of what is installed; pyproject.toml is its only home."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"iact {version('iact')}")
        parser.exit()


def _add_sessions(commands: Commands) -> None:
    one = commands.add("serve", _serve, "Start the server with the browser page.")
    one.add_argument("--host", default="127.0.0.1")
    one.add_argument("--port", type=int, default=0)
    one.add_argument("--workspace", metavar="DIR", help="work in this directory instead of one per session")
    one.add_argument("--scope", metavar="NAME", default="default", help=SCOPE)
    one.add_argument("--open", action="store_true", help="open the page in a browser")
    one.add_argument("--store", metavar="URL", help=STORE)
    one.add_argument("--cluster", metavar="ADDRESS", help=f"serve the sessions of several hosts; {CLUSTER}")

    one = commands.add(
        "run", _run, "Send one message to the root agent of a new or existing session, and print its reply."
    )
    one.add_argument("task", metavar="TASK", help="the message; - reads it from standard input")
    one.add_argument("--session", metavar="ID", help="go on with this session")
    one.add_argument(
        "--workspace", metavar="DIR", help="work in this directory instead of one of the session's own"
    )
    one.add_argument("--intent", metavar="0|1|2", default=None, help=INTENTS)
    one.add_argument("--scope", metavar="NAME", default="default", help=SCOPE)
    one.add_argument(
        "--add-tokens",
        metavar="N",
        type=count,
        default=0,
        help="raise the session's budget by N tokens first",
    )
    one.add_argument("--mode", choices=WAYS, default="dialogue", help=WAY)
    one.add_argument("--plan-first", action="store_true", help=PLAN_FIRST)
    one.add_argument("--json", action="store_true")


def _add_machine(commands: Commands) -> None:
    image = commands.group("image", "Build the sandbox's images.")
    one = commands.add(
        "build",
        _image,
        "Build what tools run in, if it is not there; what is named here is what the shell has from then on.",
        image,
    )
    one.add_argument("--from", dest="source", choices=("registry", "debian"))
    one.add_argument(
        "--profile",
        dest="profiles",
        action="append",
        choices=("data", "dev"),
        default=[],
        help="a ready choice: data (numpy, pandas, matplotlib, sqlite3) or dev (gcc, make, node, pip, curl); both may be named",
    )
    one.add_argument(
        "--with", dest="packages", metavar="NAMES", default="", help='Debian packages: "ffmpeg pandoc"'
    )
    one.add_argument("--wheels", metavar="NAMES", default="", help='Python packages: "scipy polars==1.9.0"')
    one.add_argument("--add", action="store_true", help="keep what the shell has, and add what is named")
    one.add_argument("--plain", action="store_true", help="let the shell have none of these any more")

    commands.add(
        "offer", _offer, "Ask on the terminal which tools the shell is to have, and build that.", image
    )

    one = commands.add("doctor", _doctor, "Check what works on this machine, and how to fix what does not.")
    one.add_argument("--json", action="store_true")

    one = commands.add("completion", _completion, "Print the completion script of a shell.")
    one.add_argument("shell", choices=("bash", "zsh", "fish"))


def _serve(chosen: argparse.Namespace, settings: Settings) -> int:
    settings = with_options(chosen, settings)
    if settings.cluster is not None:
        from iact.commands import cluster

        return cluster.gateway(settings, host=chosen.host, port=chosen.port)
    from iact.commands import serve

    return serve.serve(
        settings, host=chosen.host, port=chosen.port, workspace=chosen.workspace, scope=chosen.scope,
        open_browser=chosen.open,
    )  # fmt: skip


def _run(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import run

    return run.run(
        settings,
        message(chosen.task, "task"),
        session=chosen.session,
        workspace=chosen.workspace,
        intent=chosen.intent,
        scope=chosen.scope,
        as_json=chosen.json,
        mode=chosen.mode,
        plan_first=chosen.plan_first,
        add_tokens=chosen.add_tokens,
    )


def _image(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import images

    return images.build_image(
        settings,
        chosen.source,
        profiles=chosen.profiles,
        packages=chosen.packages,
        wheels=chosen.wheels,
        add=chosen.add,
        plain=chosen.plain,
    )


def _offer(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import images

    return images.offer(settings)


def _completion(chosen: argparse.Namespace, settings: Settings) -> int:
    import shtab

    print(shtab.complete(build_parser(), chosen.shell))
    return 0


def _doctor(chosen: argparse.Namespace, settings: Settings) -> int:
    from iact.commands import catalogue

    return catalogue.doctor(settings, as_json=chosen.json)
