"""`iact user …`, `iact token …`, `iact share …`, `iact login`, `iact logout` and `iact audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.accounts.rights import HIDDEN_PARTS, SCOPES, HiddenPart, Scope, ServerRole
from iact.cli import options
from iact.cli.options import CommandGroup, command

if TYPE_CHECKING:
    from iact.settings import Settings

_groups: Final = click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="a group they are in; again for more"
)
_user: Final = click.option("--user", metavar="NAME", required=True, help="whose tokens")


@click.group(cls=CommandGroup)
def user() -> None:
    """Manage who may sign in to the server."""


@user.command("add")
@click.argument("name")
@click.option("--admin", is_flag=True, help="an administrator")
@_groups
@click.option("--no-password", is_flag=True, help="for whoever a proxy or a provider says it is")
def add_user(
    settings: Settings, *, name: str, admin: bool, groups: tuple[str, ...], no_password: bool
) -> int:
    """Add a user; the password is asked for, or read from standard input."""
    from iact.commands import people

    role: ServerRole = "admin" if admin else "user"
    return people.add_user(
        settings, name, role=role, groups=groups, with_password=False if no_password else None
    )


@user.command("list")
@options.as_json
def list_users(settings: Settings, *, as_json: bool) -> int:
    """List the users."""
    from iact.commands import people

    return people.list_users(settings, as_json=as_json)


@user.command("remove")
@click.argument("name")
def remove_user(settings: Settings, *, name: str) -> int:
    """Remove a user, their tokens, links and grants; their sessions stay on disk."""
    from iact.commands import people

    return people.remove_user(settings, name)


@user.command("disable")
@click.argument("name")
def disable_user(settings: Settings, *, name: str) -> int:
    """Sign a user out everywhere, and let them in no more."""
    from iact.commands import people

    return people.set_disabled(settings, name, disabled=True)


@user.command("enable")
@click.argument("name")
def enable_user(settings: Settings, *, name: str) -> int:
    """Let a user in again who was disabled."""
    from iact.commands import people

    return people.set_disabled(settings, name, disabled=False)


@user.command("password")
@click.argument("name")
def set_password(settings: Settings, *, name: str) -> int:
    """Set a user's password, which is asked for, or read from standard input; they are signed out everywhere."""
    from iact.commands import people

    return people.set_password(settings, name)


@user.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(["admin", "user"]))
def set_role(settings: Settings, *, name: str, role: ServerRole) -> int:
    """Make a user an administrator, or no longer one."""
    from iact.commands import people

    return people.set_role(settings, name, role)


@user.command("groups")
@click.argument("name")
@_groups
def set_groups(settings: Settings, *, name: str, groups: tuple[str, ...]) -> int:
    """Put a user into these groups and no others, beside those that a provider tells."""
    from iact.commands import people

    return people.set_groups(settings, name, groups)


@click.group(cls=CommandGroup)
def token() -> None:
    """Manage the API tokens of users."""


@token.command("create")
@click.argument("name")
@_user
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, default=("sessions:read",), show_default=True,
    help="what it may be used for; again for more",
)  # fmt: skip
@click.option(
    "--days", type=float, default=90.0, show_default=True, metavar="N", help="for how long it is good"
)
@options.as_json
def create_token(
    settings: Settings, *, name: str, user: str, scopes: tuple[Scope, ...], days: float, as_json: bool
) -> int:
    """Create an API token and print it, this once. NAME says what it is for."""
    from iact.commands import people

    return people.create_token(settings, user, name, scopes, days=days, as_json=as_json)


@token.command("list")
@_user
@options.as_json
def list_tokens(settings: Settings, *, user: str, as_json: bool) -> int:
    """List the tokens of a user."""
    from iact.commands import people

    return people.list_tokens(settings, user, as_json=as_json)


@token.command("revoke")
@click.argument("token")
@_user
def revoke_token(settings: Settings, *, token: str, user: str) -> int:
    """Revoke a token, by its name or its id."""
    from iact.commands import people

    return people.revoke_token(settings, user, token)


@click.group(cls=CommandGroup)
def share() -> None:
    """Manage links to sessions, by which others can look at them."""


@share.command("create")
@click.argument("session")
@click.option(
    "--days", type=float, default=7.0, show_default=True, metavar="N", help="for how long it is good"
)
@click.option("--at", type=int, metavar="N", help="frozen: as the session was after record N")
@click.option(
    "--hide", "hides", type=click.Choice(HIDDEN_PARTS), multiple=True, help="what is left out; again for more"
)
@click.option(
    "--hide-variable", "variables", multiple=True, metavar="NAME", help="a variable whose values are left out"
)
@click.option("--public", is_flag=True, help="it works without an account, if the server allows that")
@options.as_json
def create_link(
    settings: Settings,
    *,
    session: str,
    days: float,
    at: int | None,
    hides: tuple[HiddenPart, ...],
    variables: tuple[str, ...],
    public: bool,
    as_json: bool,
) -> int:
    """Create a link to a session and print it, this once. Nobody can change anything by it."""
    from iact.commands import people

    return people.create_link(
        settings, session, days=days, at=at, hides=hides, variables=variables, public=public, as_json=as_json
    )


@share.command("list")
@click.argument("session")
@options.as_json
def list_links(settings: Settings, *, session: str, as_json: bool) -> int:
    """List the links to a session, and how often each was opened."""
    from iact.commands import people

    return people.list_links(settings, session, as_json=as_json)


@share.command("revoke")
@click.argument("session")
@click.argument("link")
def revoke_link(settings: Settings, *, session: str, link: str) -> int:
    """Revoke a link, by its id."""
    from iact.commands import people

    return people.revoke_link(settings, session, link)


@command("login")
@click.argument("url")
def log_in(settings: Settings, *, url: str) -> int:
    """Log in to a server; commands about sessions then go there. The API token is asked for, or read from standard input."""
    from iact.commands import people

    return people.log_in(settings, url)


@command("logout")
def log_out(settings: Settings) -> int:
    """Have them go to the server of the data directory again."""
    from iact.commands import people

    return people.log_out(settings)


@command()
@click.option("--since", metavar="TIME", help="a date or a time, UTC: 2026-11-23")
@click.option("--who", metavar="NAME", help="of this user alone")
@click.option(
    "--what", metavar="KIND", help="of this kind alone, such as call.denied; or of several: user, sign-in"
)
@options.as_json
def audit(settings: Settings, *, since: str | None, who: str | None, what: str | None, as_json: bool) -> int:
    """Print who decided what over all sessions: approvals, hosts, declassification, policy, sign-ins. Never content."""
    from iact.commands import audit

    return audit.audit(settings, since=since, who=who, what=what, as_json=as_json)
