"""`iact gate …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from iact.cli import options
from iact.cli.options import CommandGroup

if TYPE_CHECKING:
    from iact.settings import Settings


@click.group(cls=CommandGroup)
def gate() -> None:
    """Explain why calls are allowed or denied."""


@gate.command()
@options.journal
@click.argument("n", type=int)
@options.as_json
def explain(settings: Settings, *, journal: str, n: int, as_json: bool) -> int:
    """Explain the decision about the call at record N."""
    from iact.commands import gate, journals

    return gate.explain(journals.find(settings, journal), n, as_json=as_json)


@gate.command()
@click.argument("function")
@click.argument("given", nargs=-1, metavar="[key=value]...")
@click.option("--body", metavar="TEXT", help="the call's body")
@click.option(
    "--workspace",
    type=click.Choice(("scratch", "live")),
    default="scratch",
    help="judge as in the session's own directory, or as in a live directory of yours (default: scratch)",
)
@options.scope
@options.intent("1")
@options.as_json
def test(
    settings: Settings,
    *,
    function: str,
    given: tuple[str, ...],
    body: str | None,
    workspace: Literal["scratch", "live"],
    scope: str,
    intent: str,
    as_json: bool,
) -> int:
    """Report whether a call would be allowed, without making it."""
    from iact.commands import gate

    return gate.test(
        settings, function, given,
        body=body, workspace=workspace, scope=scope, intent=intent, as_json=as_json,
    )  # fmt: skip
