"""Who a request comes from, and whether they still are who they were.

A request can carry one of four credentials: an API token, which a program sends; a proxy's headers, which are ignored
from any other address; the cookie of a sign-in; or the cookie of a link. They are checked in this order, and the first
one that is present decides: a cookie does not make up for an invalid token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from iact.accounts.accounts import Accounts
from iact.accounts.people import Actor, AuthenticatorName, HttpRequest, SharedSession, User
from iact.accounts.rights import Principal, Scope
from iact.accounts.users import name_key
from iact.core.errors import UsageError

_LOG: Final = logging.getLogger(__name__)
_HOUR: Final = 3600.0
_LINK_SCOPES: Final[frozenset[Scope]] = frozenset(("sessions:read",))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRules:
    """How people sign in to one server. `cookie`: the cookie's name; `secure`: it is sent only over TLS."""

    authenticator: AuthenticatorName
    cookie: str
    secure: bool = False
    admins: frozenset[str] = frozenset()
    create: bool = True
    header: str = "x-forwarded-user"
    groups_header: str | None = None
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    admins_see: bool = False

    @property
    def cookie_name(self) -> str:
        """The cookie's full name. With its prefix, browsers accept the cookie only from this host itself."""
        return f"__Host-{self.cookie}" if self.secure else self.cookie

    @property
    def link_cookie(self) -> str:
        """The cookie of a person who follows a link without an account."""
        return f"{self.cookie_name}_link"

    def trusts(self, peer: str) -> bool:
        """Whether a request comes from a trusted proxy."""
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in one for one in self.proxies)

    def address_of(self, request: HttpRequest) -> str:
        """The address of the client: the last one that a trusted proxy names, or the peer's own."""
        if self.trusts(request.peer):
            told = [part.strip() for one in header(request, "x-forwarded-for") for part in one.split(",")]
            return told[-1][:64] if told else request.peer
        return request.peer


_GROUP: Final = "group:"
"""Before the name of a group in the list of admins. A person may be named as a group is, and is not the group."""


def _split(admins: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The groups and the people in a list of admins, by the keys of their names."""
    groups, names = set(), set()
    for one in admins:
        if one.startswith(_GROUP):
            groups.add(name_key(one.removeprefix(_GROUP)))
        else:
            names.add(name_key(one))
    return frozenset(groups), frozenset(names)


class Authentication:
    """Implements `web.ports.People`. `owner_of`: the owner of a session, for administrators who may see all
    sessions."""

    def __init__(
        self,
        accounts: Accounts,
        rules: AuthenticationRules,
        owner_of: Callable[[str], str | None] = lambda _: None,
    ) -> None:
        self._accounts = accounts
        self._owner_of = owner_of
        groups, names = _split(rules.admins)
        self._admins = names
        self._admin_groups = groups
        self._told: dict[str, float] = {}
        self.rules: Final = rules

    def identify(self, asked: HttpRequest) -> Principal | None:
        """Who a request comes from, or None if the sender is unknown."""
        if asked.authorizations:
            return self._by_token(asked.authorizations)
        if self.rules.authenticator == "header":
            try:
                found = self.by_header(asked)
            except UsageError as error:
                _LOG.warning("Somebody was not let in: %s", error)
                return None
            if found is not None:
                return self.principal(found, key="header")
        return self._by_sign_in(asked) or self._by_link(asked)

    def holds(self, who: Principal) -> bool:
        """Whether a principal is still valid: not signed out, disabled, expired or revoked."""
        kind, _, identity = who.key.partition(" ")
        if kind == "link":
            return self._accounts.sharing.holds(identity)
        user = self._accounts.users.get(who.user)
        if user is None or user.disabled is not None or (who.admin and not self._is_admin(user)):
            return False
        if kind == "token":
            return self._accounts.tokens.holds(identity)
        return kind == "header" or self._accounts.sign_ins.holds(identity)

    def grant(self, who: Principal, session: str | None) -> SharedSession | None:
        """What a principal may do with another user's session. None for `session`: the one that their link leads to."""
        if session is None and not who.link:
            return None
        user = self._accounts.users.get(who.user) if who.user else None
        groups = user.groups if user is not None else frozenset[str]()
        found = self._accounts.sharing.reach(who, groups, session)
        if found is not None or session is None or not (who.admin and self.rules.admins_see):
            return found
        return self._as_admin(who, session)

    def by_header(self, asked: HttpRequest) -> User | None:
        """The user that the proxy named, or None if it named none or is not a trusted proxy.

        Raises:
            UsageError: they have no account here.
        """
        names = header(asked, self.rules.header.lower())
        if not names:
            return None
        if not self.rules.trusts(asked.peer):
            self._tell_once(asked.peer)
            return None
        if len(names) != 1 or not names[0].strip():
            return None
        told = header(asked, self.rules.groups_header.lower()) if self.rules.groups_header else ()
        groups = [part for one in told for part in one.split(",")]
        name, users = names[0].strip(), self._accounts.users
        actor = Actor(name, self.rules.address_of(asked))
        user = users.vouched(f"header:{name_key(name)}", name, groups, create=self.rules.create, by=actor)
        if user is not None and (user.seen or 0.0) < self._accounts.clock() - _HOUR:
            users.seen(user.id)
            self._accounts.audit.tell("sign-in", replace(actor, user=user.id))
        return user

    def principal(self, user: User, key: str) -> Principal:
        """The principal of a user who signed in as a person."""
        return Principal(user=user.id, name=user.name, admin=self._is_admin(user), key=key)

    def _by_token(self, authorizations: tuple[str, ...]) -> Principal | None:
        scheme, _, given = authorizations[0].partition(" ")
        if len(authorizations) != 1 or scheme.lower() != "bearer":
            return None
        token = self._accounts.tokens.find(given.strip())
        user = None if token is None else self._accounts.users.get(token.user)
        if token is None or user is None or user.disabled is not None:
            return None
        admin = self._is_admin(user) and "admin" in token.scopes
        return Principal(
            user=user.id, name=user.name, admin=admin, scopes=token.scopes, key=f"token {token.id}"
        )

    def _by_sign_in(self, asked: HttpRequest) -> Principal | None:
        secret = cookie(asked, self.rules.cookie_name)
        found = self._accounts.sign_ins.find(secret) if secret else None
        user = None if found is None else self._accounts.users.get(found.user)
        if found is None or user is None or user.disabled is not None:
            return None
        return self.principal(user, f"sign-in {found.id}")

    def _by_link(self, asked: HttpRequest) -> Principal | None:
        secret = cookie(asked, self.rules.link_cookie)
        link = self._accounts.sharing.public_link(secret) if secret else None
        if link is None:
            return None
        return Principal(user="", link=link.id, scopes=_LINK_SCOPES, key=f"link {link.id}")

    def _is_admin(self, user: User) -> bool:
        if user.role == "admin" or name_key(user.name) in self._admins:
            return True

        # Only a proxy or a provider says who is in which group; groups that are kept here are for sharing.
        told = self.rules.authenticator in ("header", "oidc")
        groups = [name_key(group) for group in user.groups] if told else []
        return not self._admin_groups.isdisjoint(groups)

    def _as_admin(self, who: Principal, session: str) -> SharedSession | None:
        owner = self._owner_of(session)
        user = None if owner is None else self._accounts.users.get(owner)
        if user is None or user.id == who.user:
            return None
        if self._first(f"{who.user} {session}"):
            self._accounts.audit.tell(
                "session.seen", Actor(who.name, user=who.user), session=session, owner=user.name
            )
        return SharedSession(session=session, owner=user.id, owner_name=user.name, role="reader")

    def _tell_once(self, peer: str) -> None:
        """Audit a request that claims a user without coming from the proxy, but not often enough to flood the audit."""
        if self._first(peer):
            self._accounts.audit.tell("sign-in.failed", Actor("", peer), why="header from another address")

    def _first(self, what: str) -> bool:
        """Whether to report an event: True if it was not reported within the last hour."""
        now = self._accounts.clock()
        self._told = {one: at for one, at in self._told.items() if at > now - _HOUR}
        if what in self._told or len(self._told) >= 1000:
            return False
        self._told[what] = now
        return True


def header(request: HttpRequest, name: str) -> tuple[str, ...]:
    """Every value of a header. `name` is in lower case."""
    return tuple(value for one, value in request.headers if one == name)


def cookie(request: HttpRequest, name: str) -> str:
    """The value of a cookie; empty if there is none, or several: then it is unknown which of them is ours."""
    found = [value for one, value in _cookies(request) if one == name]
    return found[0] if len(found) == 1 else ""


def _cookies(request: HttpRequest) -> Iterator[tuple[str, str]]:
    for line in request.cookies:
        for pair in line.split(";"):
            name, _, value = pair.strip().partition("=")
            yield name, value
