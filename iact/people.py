"""Several users on one server: turns settings into authentication. Imported only if there are accounts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from iact.accounts.accounts import Accounts, open_accounts
from iact.accounts.authentication import Authentication, AuthenticationRules
from iact.accounts.oidc import OidcClient, OidcProvider
from iact.accounts.sign_in_routes import SignInRoutes
from iact.core.errors import UsageError
from iact.sandbox.secrets import Secrets
from iact.settings import Settings
from iact.shared_users import check_accounts, holds
from iact.user_folders import USERS
from iact.web.safety import is_loopback
from iact.web.server import DoorOptions
from iact.wiring import shared_of


@dataclass(frozen=True, slots=True)
class ServerPeople:
    """What a server needs to identify its users."""

    accounts: Accounts
    authentication: Authentication
    entrance: SignInRoutes


def quota_holder(whose: str) -> str:
    """The name in the accounts database for the holder of running calls: an incarnation of a host, or a directory."""
    return hashlib.sha256(whose.encode()).hexdigest()[:32]


@contextmanager
def accounts_of(
    settings: Settings, clock: Callable[[], float] = time.time, *, incarnation: str = ""
) -> Iterator[Accounts]:
    """Open the accounts that the settings name. `incarnation`: the host incarnation that uses them.

    Raises:
        UsageError: they can't be opened, this installation has one user, or hosts would have different accounts.
    """
    about = settings.accounts
    if about.authenticator == "token":
        raise UsageError(
            "This installation has only one user. First choose how people sign in: accounts.authenticator in iact.toml."
        )
    check_accounts(settings)
    with open_accounts(
        settings.data,
        settings.accounts_url,
        clock,
        days=about.days,
        public_links=about.public_links,
        host=quota_holder(incarnation or f"{settings.host} {settings.data}"),
    ) as opened:
        yield opened


def check_remote(settings: Settings, host: str) -> None:
    """Check that a server that other machines can reach is only reached through a proxy with TLS.

    Raises:
        UsageError: passwords and cookies could cross the network unencrypted.
    """
    about = settings.accounts
    if not (about.url or "").lower().startswith("https://"):
        raise UsageError(
            f"If this server listened on {host}, people would sign in without encryption. Put a proxy with TLS in front of "
            "it, and set accounts.url to the proxy's address: https://…"
        )
    if not about.proxies:
        raise UsageError(
            f"If this server listened on {host}, anyone could talk to it without encryption. Set accounts.proxies to the "
            "addresses of the proxy in front of it."
        )


@contextmanager
def opened_people(settings: Settings, environment: Mapping[str, str]) -> Iterator[ServerPeople]:
    """Open everything that a server needs to identify its users.

    Raises:
        UsageError: as `accounts_of`; or a setting is invalid.
    """
    with accounts_of(settings) as accounts:
        authentication = authentication_of(settings, accounts)
        oidc = settings.accounts.authenticator == "oidc"
        provider = _provider(settings, accounts, environment) if oidc else None
        yield ServerPeople(accounts, authentication, SignInRoutes(accounts, authentication, provider))


def authentication_of(settings: Settings, accounts: Accounts) -> Authentication:
    """Return what identifies users and reads their grants under these settings."""
    about = settings.accounts
    rules = AuthenticationRules(
        authenticator=about.authenticator,
        cookie=cookie_name(settings),
        secure=(about.url or "").lower().startswith("https://"),
        admins=frozenset(about.admins),
        create=about.create,
        header=about.header.lower(),
        groups_header=about.groups_header,
        proxies=about.proxies,
        admins_see=about.admins_see,
    )
    return Authentication(accounts, rules, lambda session: owner_of(settings, accounts, session))


def doors(settings: Settings, people: ServerPeople, host: str) -> DoorOptions:
    """How a server with accounts that listens on `host` is reached.

    Raises:
        UsageError: as `check_remote`.
    """
    remote = not is_loopback(host)
    if remote:
        check_remote(settings, host)
    rules = people.authentication.rules
    return {
        "outside": settings.accounts.url,
        "allow_remote": remote,
        # Only from this machine and the proxies, if other machines can reach the address.
        "admits": (lambda peer: is_loopback(peer) or rules.trusts(peer)) if remote else lambda peer: True,
    }


def cookie_name(settings: Settings) -> str:
    """The name of this server's cookie: the same after each start and for all gateways of a store, but different for each
    server on a machine."""
    what = settings.store or str(settings.data.resolve())
    return f"iact_{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def owner_of(settings: Settings, accounts: Accounts, session: str) -> str | None:
    """The id of a session's owner, or None if no user has such a session."""
    if not session or "/" in session or session.startswith("."):
        return None
    shared = shared_of(settings)
    if shared is not None:
        found = [one.id for one in accounts.users.all() if holds(settings, shared, one.id, session)]
    else:
        users = settings.data / USERS
        there = users.iterdir() if users.is_dir() else ()
        found = [one.name for one in there if (one / "sessions" / session).is_dir()]
    return found[0] if len(found) == 1 else None


def _provider(settings: Settings, accounts: Accounts, environment: Mapping[str, str]) -> OidcProvider:
    about = settings.accounts
    assert about.issuer, "the settings are checked when they are read"
    assert about.client
    assert about.url
    client = OidcClient(
        issuer=about.issuer,
        client=about.client,
        redirect=f"{about.url.rstrip('/')}/sign-in/return",
        secret=_secret(settings, environment),
        scopes=about.oidc_scopes,
        name_claim=about.name_claim,
        groups_claim=about.groups_claim,
    )
    return OidcProvider(client, accounts.database, accounts.clock)


def _secret(settings: Settings, environment: Mapping[str, str]) -> str | None:
    name = settings.accounts.secret
    if name is None:
        return None
    found = environment.get(name) or Secrets(settings.data).of((name,)).get(name)
    if not found:
        raise UsageError(
            f"accounts.secret names {name}, and there is neither an environment variable nor a secret of this name. "
            f"Store it: iact secret set {name}"
        )
    return found
