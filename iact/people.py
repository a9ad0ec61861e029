"""Several users on one server: from the settings to what says who somebody is. Imported only where there are accounts."""

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
    """What a server needs to know who somebody is."""

    accounts: Accounts
    authentication: Authentication
    entrance: SignInRoutes


def quota_holder(whose: str) -> str:
    """What the database of accounts calls whoever has calls under way: one start of a host (its incarnation), or a directory."""
    return hashlib.sha256(whose.encode()).hexdigest()[:32]


@contextmanager
def accounts_of(
    settings: Settings, clock: Callable[[], float] = time.time, *, incarnation: str = ""
) -> Iterator[Accounts]:
    """The accounts that the settings name. `incarnation`: the start of a host that these are for.

    Raises:
        UsageError: they can't be opened, or this installation has one user, or hosts would have different ones.
    """
    about = settings.accounts
    if about.authenticator == "token":
        raise UsageError(
            "This installation has one user. Choose how people sign in first: accounts.authenticator in iact.toml."
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
    """See to it that a server which other machines reach is one that only a proxy with TLS does.

    Raises:
        UsageError: passwords and cookies could go over the network in clear.
    """
    about = settings.accounts
    if not (about.url or "").lower().startswith("https://"):
        raise UsageError(
            f"Binding to {host} would have people sign in without encryption. Put a proxy with TLS before this server, and "
            "its address into accounts.url: https://…"
        )
    if not about.proxies:
        raise UsageError(
            f"Binding to {host} would let anybody speak to this server without encryption. Name the addresses of the proxy "
            "before it: accounts.proxies."
        )


@contextmanager
def opened_people(settings: Settings, environment: Mapping[str, str]) -> Iterator[ServerPeople]:
    """All that a server needs of people.

    Raises:
        UsageError: as `accounts_of`; or a setting can't be.
    """
    with accounts_of(settings) as accounts:
        authentication = authentication_of(settings, accounts)
        oidc = settings.accounts.authenticator == "oidc"
        provider = _provider(settings, accounts, environment) if oidc else None
        yield ServerPeople(accounts, authentication, SignInRoutes(accounts, authentication, provider))


def authentication_of(settings: Settings, accounts: Accounts) -> Authentication:
    """Who somebody is, and what was granted to them, under these settings."""
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
    """How a server that listens on `host` is reached, where there are accounts.

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
        # From this machine and the proxies, where others reach the address.
        "admits": (lambda peer: is_loopback(peer) or rules.trusts(peer)) if remote else lambda peer: True,
    }


def cookie_name(settings: Settings) -> str:
    """What the cookie of this server is called: the same after each start, and at all gateways of a store, and another one
    for each server of a machine."""
    what = settings.store or str(settings.data.resolve())
    return f"iact_{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def owner_of(settings: Settings, accounts: Accounts, session: str) -> str | None:
    """Whose a session is; None: there is no such session of a user."""
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
