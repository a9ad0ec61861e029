"""`iact user …`, `iact token …`, `iact share …`, `iact login`, `iact logout` and `iact audit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from iact.accounts.rights import HIDDEN_PARTS, SCOPES, WORDS, HiddenPart, Scope, ServerRole, Words
from iact.cli import options
from iact.cli.options import CommandGroup, command

if TYPE_CHECKING:
    from iact.settings import Settings

_groups: Final = click.option(
    "--group", "groups", multiple=True, metavar="GROUP", help="a group that the user is in; repeat for more"
)
_user: Final = click.option("--user", metavar="NAME", required=True, help="the user whose token it is")


@click.group(cls=CommandGroup)
def user() -> None:
    """Manage who may sign in to the server."""


@user.command("add")
@click.argument("name")
@click.option("--admin", is_flag=True, help="make the user an administrator")
@_groups
@click.option(
    "--no-password",
    is_flag=True,
    help="without a password: a proxy or an identity provider signs the user in",
)
def add_user(
    settings: Settings, *, name: str, admin: bool, groups: tuple[str, ...], no_password: bool
) -> int:
    """Add a user. The password is read from a prompt or from standard input."""
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
    """Sign a user out everywhere, and don't let them sign in again."""
    from iact.commands import people

    return people.set_disabled(settings, name, disabled=True)


@user.command("enable")
@click.argument("name")
def enable_user(settings: Settings, *, name: str) -> int:
    """Let a disabled user sign in again."""
    from iact.commands import people

    return people.set_disabled(settings, name, disabled=False)


@user.command("password")
@click.argument("name")
def set_password(settings: Settings, *, name: str) -> int:
    """Set a user's password and sign the user out everywhere.

    The password is read from a prompt or from standard input.
    """
    from iact.commands import people

    return people.set_password(settings, name)


@user.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(["admin", "user"]))
def set_role(settings: Settings, *, name: str, role: ServerRole) -> int:
    """Make a user an administrator or an ordinary user."""
    from iact.commands import people

    return people.set_role(settings, name, role)


@user.command("groups")
@click.argument("name")
@_groups
def set_groups(settings: Settings, *, name: str, groups: tuple[str, ...]) -> int:
    """Put a user into exactly these groups, in addition to those that an identity provider reports."""
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
    help="what the token may be used for; repeat for more",
)  # fmt: skip
@click.option(
    "--days", type=float, default=90.0, show_default=True, metavar="N", help="how long the token is valid"
)
@click.option(
    "--words", type=click.Choice(WORDS), default="newest", show_default=True,
    help="what of all that its program sends is the user's words: also the earlier chat that it tells of, only the "
    "newest message, or nothing, since it passes on what others write",
)  # fmt: skip
@options.as_json
def create_token(
    settings: Settings,
    *,
    name: str,
    user: str,
    scopes: tuple[Scope, ...],
    days: float,
    words: Words,
    as_json: bool,
) -> int:
    """Create an API token and print it. It is shown only this once. NAME says what the token is for."""
    from iact.commands import people

    return people.create_token(settings, user, name, scopes, days=days, words=words, as_json=as_json)


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
    """Revoke a token, given by its name or id."""
    from iact.commands import people

    return people.revoke_token(settings, user, token)


@click.group(cls=CommandGroup)
def share() -> None:
    """Manage links that let others view sessions."""


@share.command("create")
@click.argument("session")
@click.option(
    "--days", type=float, default=7.0, show_default=True, metavar="N", help="how long the link is valid"
)
@click.option(
    "--at", type=int, metavar="N", help="show only the state after record N, even when the session continues"
)
@click.option(
    "--hide", "hides", type=click.Choice(HIDDEN_PARTS), multiple=True, help="leave this out; repeat for more"
)
@click.option(
    "--hide-variable",
    "variables",
    multiple=True,
    metavar="NAME",
    help="leave out the values of this variable; repeat for more",
)
@click.option("--public", is_flag=True, help="the link works without an account, if the server allows it")
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
    """Create a read-only link to a session and print it. It is shown only this once."""
    from iact.commands import people

    return people.create_link(
        settings, session, days=days, at=at, hides=hides, variables=variables, public=public, as_json=as_json
    )


@share.command("list")
@click.argument("session")
@options.as_json
def list_links(settings: Settings, *, session: str, as_json: bool) -> int:
    """List the links to a session, with how often each was opened."""
    from iact.commands import people

    return people.list_links(settings, session, as_json=as_json)


@share.command("revoke")
@click.argument("session")
@click.argument("link")
def revoke_link(settings: Settings, *, session: str, link: str) -> int:
    """Revoke a link, given by its id."""
    from iact.commands import people

    return people.revoke_link(settings, session, link)


@command("login")
@click.argument("url")
def log_in(settings: Settings, *, url: str) -> int:
    """Log in to a server. Commands about sessions then use that server.

    The API token is read from a prompt or from standard input.
    """
    from iact.commands import people

    return people.log_in(settings, url)


@command("logout")
def log_out(settings: Settings) -> int:
    """Log out. Commands about sessions use the server of the data directory again."""
    from iact.commands import people

    return people.log_out(settings)


@command()
@click.option("--since", metavar="TIME", help="only from this date or time on, in UTC: 2026-11-23")
@click.option("--who", metavar="NAME", help="only what this user did")
@click.option(
    "--what",
    metavar="KIND",
    help="only this kind, such as call.denied, or a whole group of kinds, such as user or sign-in",
)
@options.as_json
def audit(settings: Settings, *, since: str | None, who: str | None, what: str | None, as_json: bool) -> int:
    """Print who decided what in all sessions: approvals, hosts, declassification, policy, sign-ins.

    What was said in the sessions is never printed.
    """
    from iact.commands import audit

    return audit.audit(settings, since=since, who=who, what=what, as_json=as_json)
