"""Commands about people, on the accounts database: `iact user …`, `iact token …`, `iact share …`, `iact login`.

These commands check no rights: a person who can run them on a data directory can read every file in it anyway.
"""

from __future__ import annotations

import getpass
import json
import os
import pwd
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from iact import address, login
from iact.accounts.accounts import Accounts
from iact.accounts.people import Actor, User
from iact.accounts.rights import HiddenPart, LinkView, Scope, ServerRole, Words
from iact.core.errors import UsageError
from iact.people import accounts_of, owner_of
from iact.settings import Settings
from iact.user_folders import folder_of

_DAY: Final = "%Y-%m-%d %H:%M"


def actor() -> Actor:
    """The operating system user who runs the command."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Actor(name, "command line")


# --- users ----------------------------------------------------------------------------------------


def add_user(
    settings: Settings, name: str, *, role: ServerRole, groups: Sequence[str], with_password: bool | None
) -> int:
    """Create an account. `with_password`: None means a password is set if people sign in with passwords.

    Raises:
        UsageError: as `Users.add`.
    """
    wanted = settings.accounts.authenticator == "password" if with_password is None else with_password
    with accounts_of(settings) as accounts:
        password = _asked("Password") if wanted else None
        made = accounts.users.add(name, role=role, groups=groups, password=password, by=actor())
    print(f"Added {made.name}.", file=sys.stderr)
    return 0


def list_users(settings: Settings, *, as_json: bool) -> int:
    """Print all accounts."""
    with accounts_of(settings) as accounts:
        users = accounts.users.all()
    rows = [
        {
            "name": one.name, "id": one.id, "role": one.role, "groups": sorted(one.groups),
            "created": _time(one.created), "seen": _time(one.seen), "disabled": _time(one.disabled),
        }
        for one in users
    ]  # fmt: skip
    if as_json:
        return _print_json(rows)
    for one in users:
        state = "disabled" if one.disabled is not None else one.role
        seen = f"last seen {_short(one.seen)}" if one.seen is not None else "never signed in"
        print(
            "  ".join(
                [one.name, state, *(["in " + ", ".join(sorted(one.groups))] if one.groups else []), seen]
            )
        )
    return 0


def remove_user(settings: Settings, name: str) -> int:
    """Remove an account. The user's sessions and files stay on disk."""
    with accounts_of(settings) as accounts:
        user = accounts.users.named(name)
        accounts.users.remove(name, by=actor())
    folder = folder_of(settings.data, user.id)
    kept = f" Their sessions and files are still in {folder}." if folder.exists() else ""
    print(f"Removed {user.name}, their tokens, links and grants.{kept}", file=sys.stderr)
    return 0


def set_disabled(settings: Settings, name: str, *, disabled: bool) -> int:
    """Disable or enable a user."""
    with accounts_of(settings) as accounts:
        (accounts.users.disable if disabled else accounts.users.enable)(name, by=actor())
    return 0


def set_password(settings: Settings, name: str) -> int:
    """Set a user's password, and sign the user out everywhere."""
    with accounts_of(settings) as accounts:
        accounts.users.named(name)
        accounts.users.set_password(name, _asked(f"New password of {name}"), by=actor())
    return 0


def set_role(settings: Settings, name: str, role: ServerRole) -> int:
    """Make a user an administrator or an ordinary user."""
    with accounts_of(settings) as accounts:
        accounts.users.set_role(name, role, by=actor())
    return 0


def set_groups(settings: Settings, name: str, groups: Sequence[str]) -> int:
    """Put a user into exactly these groups."""
    with accounts_of(settings) as accounts:
        accounts.users.set_groups(name, groups, by=actor())
    return 0


def _asked(what: str) -> str:
    """Read a password, typed twice without being shown, or from standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.read().removesuffix("\n")
    first = getpass.getpass(f"{what}: ")
    if getpass.getpass("Once more: ") != first:
        raise UsageError("The two passwords are not the same. Nothing was changed.")
    return first


# --- tokens ---------------------------------------------------------------------------------------


def create_token(
    settings: Settings,
    user: str,
    name: str,
    scopes: Sequence[Scope],
    *,
    days: float,
    words: Words,
    as_json: bool,
) -> int:
    """Create an API token for a user and print it. It is shown only this once."""
    with accounts_of(settings) as accounts:
        named = accounts.users.named(user)
        shown = accounts.tokens.create(named, name, scopes, days=days, by=actor(), words=words)
    if as_json:
        return _print_json({"id": shown.id, "token": shown.secret})
    print(shown.secret)
    print("This token is shown only once. Anyone who has it can use it, so keep it secret.", file=sys.stderr)
    return 0


def list_tokens(settings: Settings, user: str, *, as_json: bool) -> int:
    """Print a user's tokens without their secrets."""
    with accounts_of(settings) as accounts:
        tokens = accounts.tokens.of(accounts.users.named(user).id)
    if as_json:
        return _print_json(
            [
                {
                    "id": one.id,
                    "name": one.name,
                    "scopes": sorted(one.scopes),
                    "created": _time(one.created),
                    "ends": _time(one.ends),
                    "used": _time(one.used),
                    "words": one.words,
                }
                for one in tokens
            ]
        )
    for one in tokens:
        used = f"used {_short(one.used)}" if one.used is not None else "never used"
        words = "" if one.words == "newest" else f"  words {one.words}"
        print(f"{one.name}  {' '.join(sorted(one.scopes))}  ends {_short(one.ends)}  {used}{words}")
    return 0


def revoke_token(settings: Settings, user: str, token: str) -> int:
    """Revoke a token."""
    with accounts_of(settings) as accounts:
        accounts.tokens.revoke(accounts.users.named(user), token, by=actor())
    return 0


# --- links ----------------------------------------------------------------------------------------


def create_link(
    settings: Settings,
    session: str,
    *,
    days: float,
    at: int | None,
    hides: Iterable[HiddenPart],
    variables: Iterable[str],
    public: bool,
    as_json: bool,
) -> int:
    """Create a link to a session of a user and print it. It is shown only this once."""
    view = LinkView(at=at, hides=frozenset(hides), variables=frozenset(variables))
    with accounts_of(settings) as accounts:
        owner = _owner(settings, accounts, session)
        shown = accounts.sharing.create(owner, session, view, days=days, public=public, by=actor())
    url = f"{_page(settings)}link/{shown.secret}"
    if as_json:
        return _print_json({"id": shown.id, "url": url})
    print(url)
    return 0


def list_links(settings: Settings, session: str, *, as_json: bool) -> int:
    """Print the links to a session without their secrets, and how often each was opened."""
    with accounts_of(settings) as accounts:
        links = accounts.sharing.links_of(_owner(settings, accounts, session).id, session)
    if as_json:
        return _print_json(
            [
                {
                    "id": one.id,
                    "created": _time(one.created),
                    "ends": _time(one.ends),
                    "opened": one.opened,
                    "at": one.view.at,
                    "hides": sorted(one.view.hides),
                    "variables": sorted(one.view.variables),
                    "public": one.public,
                }
                for one in links
            ]
        )
    for one in links:
        what = "live" if one.view.at is None else f"up to record {one.view.at}"
        without = [*sorted(one.view.hides), *sorted(one.view.variables)]
        parts = [
            one.id,
            what,
            *(["without " + ", ".join(without)] if without else []),
            f"ends {_short(one.ends)}",
        ]
        print(
            "  ".join(
                [*parts, f"opened {one.opened} times", *(["works without an account"] if one.public else [])]
            )
        )
    return 0


def revoke_link(settings: Settings, session: str, link: str) -> int:
    """Revoke a link."""
    with accounts_of(settings) as accounts:
        accounts.sharing.revoke(_owner(settings, accounts, session), link, by=actor())
    return 0


def _owner(settings: Settings, accounts: Accounts, session: str) -> User:
    found = owner_of(settings, accounts, session)
    user = None if found is None else accounts.users.get(found)
    if user is None:
        raise UsageError(f"No user of this server has a session {session!r}.")
    return user


def _page(settings: Settings) -> str:
    if settings.accounts.url is not None:
        return f"{settings.accounts.url.rstrip('/')}/"
    return address.find(settings.data).page


# --- on the command line ----------------------------------------------------------------------------


def log_in(settings: Settings, url: str) -> int:
    """Remember a server and a token for it. The token is typed without being shown, or read from standard input."""
    typed = sys.stdin.isatty()
    token = getpass.getpass(f"API token for {url}: ") if typed else sys.stdin.read()
    found = login.checked(url, token.strip())
    login.keep(settings.data, found)
    print(f"Logged in to {found.url} as {found.name}. To log out: iact logout", file=sys.stderr)
    return 0


def log_out(settings: Settings) -> int:
    """Forget the server and the token. The token stays valid until it is revoked."""
    found = login.forget(settings.data)
    if found is None:
        raise UsageError("You are not logged in to a server.")
    print(f"Logged out of {found.url}. The token stays valid until it is revoked there.", file=sys.stderr)
    return 0


# --- print ------------------------------------------------------------------------------------------


def _time(at: float | None) -> str | None:
    return (
        None
        if at is None
        else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )


def _short(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime(_DAY)


def _print_json(told: Sequence[Mapping[str, object]] | Mapping[str, object]) -> int:
    print(json.dumps(told, ensure_ascii=False))
    return 0
