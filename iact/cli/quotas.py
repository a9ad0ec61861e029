"""`iact quota …` and `iact usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import CommandGroup, command

if TYPE_CHECKING:
    from iact.settings import Settings

_user: Final = click.option("--user", metavar="NAME", help="of this user")
_group: Final = click.option("--group", metavar="GROUP", help="of this group: what its members use together")


@click.group(cls=CommandGroup)
def quota() -> None:
    """Bound what people may use in a month, and at once."""


@quota.command("set")
@_user
@_group
@click.option(
    "--tokens", type=click.IntRange(0), metavar="N", help="tokens of models a month, read and written"
)
@click.option(
    "--money", type=click.FloatRange(0), metavar="SUM", help="what they may cost a month; needs prices"
)
@click.option("--sessions", type=click.IntRange(0), metavar="N", help="sessions that are at work at once")
@click.option(
    "--containers", type=click.IntRange(0), metavar="N", help="containers of modules that run at once"
)
def set_quota(
    settings: Settings,
    *,
    user: str | None,
    group: str | None,
    tokens: int | None,
    money: float | None,
    sessions: int | None,
    containers: int | None,
) -> int:
    """Set a quota in place of the one that there is; without --user and --group, that of each user without their own.

    What is not named is not bounded.
    """
    from iact.accounts.quotas import AccountQuota
    from iact.commands import quotas

    return quotas.set_quota(settings, user, group, AccountQuota(tokens, money, sessions, containers))


@quota.command("list")
@options.as_json
def list_quotas(settings: Settings, *, as_json: bool) -> int:
    """List the quotas."""
    from iact.commands import quotas

    return quotas.list_quotas(settings, as_json=as_json)


@command("usage")
@click.option("--month", metavar="YYYY-MM", help="of this month; else of the one that it is")
@options.as_json
def usage(settings: Settings, *, month: str | None, as_json: bool) -> int:
    """Print what users and groups used of models in a month, and what they may."""
    from iact.commands import quotas

    return quotas.usage(settings, month, as_json=as_json)
