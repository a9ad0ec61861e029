"""`iact quota …` and `iact usage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.cli import options
from iact.cli.options import CommandGroup, command

if TYPE_CHECKING:
    from iact.settings import Settings

_user: Final = click.option("--user", metavar="NAME", help="the user that the quota is for")
_group: Final = click.option(
    "--group", metavar="GROUP", help="the group that the quota is for; its members share it"
)


@click.group(cls=CommandGroup)
def quota() -> None:
    """Limit what users may use per month and at the same time."""


@quota.command("set")
@_user
@_group
@click.option(
    "--tokens", type=click.IntRange(0), metavar="N", help="model tokens per month, input and output"
)
@click.option(
    "--money", type=click.FloatRange(0), metavar="SUM", help="cost of models per month; needs prices"
)
@click.option("--sessions", type=click.IntRange(0), metavar="N", help="sessions at work at the same time")
@click.option(
    "--containers", type=click.IntRange(0), metavar="N", help="module containers running at the same time"
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
    """Set a quota, replacing the existing one.

    Without --user and --group, it applies to every user who has no quota of their own. Amounts that are not given are
    unlimited.
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
@click.option("--month", metavar="YYYY-MM", help="the month (default: the current one)")
@options.as_json
def usage(settings: Settings, *, month: str | None, as_json: bool) -> int:
    """Print how much users and groups used models in a month, and their limits."""
    from iact.commands import quotas

    return quotas.usage(settings, month, as_json=as_json)
