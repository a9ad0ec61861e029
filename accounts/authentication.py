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
    """How people sign in to one server."""

    authenticator: AuthenticatorName
    cookie: str
    """The name of the cookie of a sign-in."""
    secure: bool = False
    """Whether it is sent only over TLS."""
    create: bool = True
    """Whether a person whom a proxy or a provider vouches for gets an account."""

    # Who administers.
    admins: frozenset[str] = frozenset()
    """Names of people, and of groups behind `group:`."""
    admins_see: bool = False
    """Whether administrators may see all sessions."""

    # A proxy that vouches for people.
    header: str = "x-forwarded-user"
    """The header in which it names them."""
    groups_header: str | None = None
    """The header in which it names their groups; None: it names none."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Where it is."""

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

        # A socket for both versions shows an address of version 4 as one of version 6.
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self.proxies)

    def address_of(self, request: HttpRequest) -> str:
        """The address of the client: the last one that a trusted proxy names, or the peer's own."""
        if not self.trusts(request.peer):
            return request.peer
        forwarded = _parts(header(request, "x-forwarded-for"))
        return forwarded[-1].strip()[:64] if forwarded else request.peer


_GROUP: Final = "group:"
"""Before the name of a group in the list of admins. A person may be named as a group is, and is not the group."""


def _split(admins: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The groups and the people in a list of admins, by the keys of their names."""
    groups = set()
    people = set()
    for admin in admins:
        if admin.startswith(_GROUP):
            groups.add(name_key(admin.removeprefix(_GROUP)))
        else:
            people.add(name_key(admin))
    return frozenset(groups), frozenset(people)


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
        groups, people = _split(rules.admins)
        self._admins = people
        self._admin_groups = groups
        self._reported: dict[str, float] = {}
        """What was reported within the last hour, and when."""
        self.rules: Final = rules

    def identify(self, request: HttpRequest) -> Principal | None:
        """Who a request comes from, or None if the sender is unknown."""
        if request.authorizations:
            return self._by_token(request.authorizations)

        if self.rules.authenticator == "header":
            try:
                user = self.by_header(request)
            except UsageError as error:
                _LOG.warning("Somebody was not let in: %s", error)
                return None
            if user is not None:
                return self.principal(user, key="header")

        return self._by_sign_in(request) or self._by_link(request)

    def holds(self, who: Principal) -> bool:
        """Whether a principal is still valid: not signed out, disabled, expired or revoked."""
        kind, _, identity = who.key.partition(" ")
        if kind == "link":
            return self._accounts.sharing.holds(identity)

        user = self._accounts.users.get(who.user)
        if user is None or user.disabled is not None:
            return False
        if who.admin and not self._is_admin(user):
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
        shared = self._accounts.sharing.reach(who, groups, session)
        if shared is not None or session is None:
            return shared

        sees_all = who.admin and self.rules.admins_see
        return self._as_admin(who, session) if sees_all else None

    def by_header(self, request: HttpRequest) -> User | None:
        """The user that the proxy named, or None if it named none or is not a trusted proxy.

        Raises:
            UsageError: they have no account here.
        """
        names = header(request, self.rules.header.lower())
        if not names:
            return None
        if not self.rules.trusts(request.peer):
            self._tell_once(request.peer)
            return None
        if len(names) != 1 or not names[0].strip():
            return None

        name = names[0].strip()
        groups: list[str] = []
        if self.rules.groups_header:
            groups = _parts(header(request, self.rules.groups_header.lower()))
        actor = Actor(name, self.rules.address_of(request))
        users = self._accounts.users
        user = users.vouched(f"header:{name_key(name)}", name, groups, create=self.rules.create, by=actor)

        # There is no sign-in of which one could tell: the first request of an hour is told of.
        if user is not None and (user.seen or 0.0) < self._accounts.clock() - _HOUR:
            users.seen(user.id)
            self._accounts.audit.tell("sign-in", replace(actor, user=user.id))
        return user

    def principal(self, user: User, key: str) -> Principal:
        """The principal of a user who signed in as a person."""
        return Principal(user=user.id, name=user.name, admin=self._is_admin(user), key=key)

    def _by_token(self, authorizations: tuple[str, ...]) -> Principal | None:
        scheme, _, secret = authorizations[0].partition(" ")
        if len(authorizations) != 1 or scheme.lower() != "bearer":
            return None
        token = self._accounts.tokens.find(secret.strip())
        if token is None:
            return None
        user = self._accounts.users.get(token.user)
        if user is None or user.disabled is not None:
            return None

        admin = self._is_admin(user) and "admin" in token.scopes
        return Principal(
            user=user.id,
            name=user.name,
            admin=admin,
            scopes=token.scopes,
            key=f"token {token.id}",
            words=token.words,
        )

    def _by_sign_in(self, request: HttpRequest) -> Principal | None:
        secret = cookie(request, self.rules.cookie_name)
        sign_in = self._accounts.sign_ins.find(secret) if secret else None
        if sign_in is None:
            return None
        user = self._accounts.users.get(sign_in.user)
        if user is None or user.disabled is not None:
            return None
        return self.principal(user, f"sign-in {sign_in.id}")

    def _by_link(self, request: HttpRequest) -> Principal | None:
        secret = cookie(request, self.rules.link_cookie)
        link = self._accounts.sharing.public_link(secret) if secret else None
        if link is None:
            return None
        return Principal(user="", link=link.id, scopes=_LINK_SCOPES, key=f"link {link.id}")

    def _is_admin(self, user: User) -> bool:
        if user.role == "admin" or name_key(user.name) in self._admins:
            return True

        # Only a proxy or a provider says who is in which group; groups that are kept here are for sharing.
        if self.rules.authenticator not in ("header", "oidc"):
            return False
        groups = [name_key(group) for group in user.groups]
        return not self._admin_groups.isdisjoint(groups)

    def _as_admin(self, who: Principal, session: str) -> SharedSession | None:
        """What an administrator who may see all sessions may do with one, which is told in the audit."""
        owner = self._owner_of(session)
        user = None if owner is None else self._accounts.users.get(owner)
        if user is None or user.id == who.user:
            return None

        if self._is_first(f"{who.user} {session}"):
            actor = Actor(who.name, user=who.user)
            self._accounts.audit.tell("session.seen", actor, session=session, owner=user.name)
        return SharedSession(session=session, owner=user.id, owner_name=user.name, role="reader")

    def _tell_once(self, peer: str) -> None:
        """Audit a request that claims a user without coming from the proxy, but not often enough to flood the audit."""
        if self._is_first(peer):
            self._accounts.audit.tell("sign-in.failed", Actor("", peer), why="header from another address")

    def _is_first(self, what: str) -> bool:
        """Whether to report an event: True if it was not reported within the last hour."""
        now = self._accounts.clock()
        self._reported = {event: at for event, at in self._reported.items() if at > now - _HOUR}
        if what in self._reported or len(self._reported) >= 1000:
            return False
        self._reported[what] = now
        return True


def header(request: HttpRequest, name: str) -> tuple[str, ...]:
    """Every value of a header. `name` is in lower case."""
    return tuple(value for header_name, value in request.headers if header_name == name)


def _parts(values: Iterable[str]) -> list[str]:
    """The parts of a header that is a list, however often it is repeated."""
    return [part for value in values for part in value.split(",")]


def cookie(request: HttpRequest, name: str) -> str:
    """The value of a cookie; empty if there is none, or several: then it is unknown which of them is ours."""
    values = [value for cookie_name, value in _cookies(request) if cookie_name == name]
    return values[0] if len(values) == 1 else ""


def _cookies(request: HttpRequest) -> Iterator[tuple[str, str]]:
    for line in request.cookies:
        for pair in line.split(";"):
            name, _, value = pair.strip().partition("=")
            yield name, value
