"""Accounts as the page shows and changes them (`web.ports.PeopleRegister`), on the accounts database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from iact.accounts.accounts import Accounts
from iact.accounts.people import (
    Actor,
    ApiToken,
    AuditEvent,
    AuditKind,
    SessionGrant,
    SharedSession,
    ShareLink,
    Shown,
    SignIn,
    User,
)
from iact.accounts.rights import LinkView, Principal, Role, Scope, Words
from iact.audit import AuditedSessions, AuditFilter, audit_lines
from iact.core.errors import UsageError
from iact.web.ports import Used

_LOG: Final = logging.getLogger(__name__)


class AccountRegister:
    """The accounts for the page.

    `data`: where the sessions of all users are. `public_links`: whether links that work without an account are allowed.
    `stores`: as for `audit_lines`.
    """

    def __init__(
        self,
        accounts: Accounts,
        data: Path,
        *,
        public_links: bool,
        stores: Callable[[], Mapping[str, AuditedSessions]] = dict,
    ) -> None:
        self._accounts = accounts
        self._data = data
        self._stores = stores
        self._public_links = public_links

    @property
    def public_links(self) -> bool:
        """Whether links that work without an account are allowed."""
        return self._public_links

    # --- sharing ------------------------------------------------------------------------------------

    def shared_with(self, who: Principal) -> Sequence[SharedSession]:
        """The sessions that others share with a user."""
        user = self._accounts.users.get(who.user)
        return () if user is None else self._accounts.sharing.shared_with(who, user.groups)

    def grants(self, who: Principal, session: str) -> Sequence[tuple[str, SessionGrant]]:
        """The roles granted on a session of the user's, each with the name of the user or group."""
        grants = self._accounts.sharing.grants_of(who.user, session)
        return [(self._called(one), one) for one in grants]

    def _called(self, grant: SessionGrant) -> str:
        if grant.of_group:
            return grant.subject
        user = self._accounts.users.get(grant.subject)
        return grant.subject if user is None else user.name

    def links(self, who: Principal, session: str) -> Sequence[ShareLink]:
        """The links to a session of the user's, newest first."""
        return self._accounts.sharing.links_of(who.user, session)

    def share(self, who: Principal, session: str, name: str, role: Role, *, group: bool) -> None:
        """Grant a user or group a role on a session."""
        self._accounts.sharing.give(self._grant(who, session, name, role, group=group), by=_actor(who))

    def unshare(self, who: Principal, session: str, name: str, *, group: bool) -> None:
        """Withdraw a role."""
        self._accounts.sharing.take(self._grant(who, session, name, "reader", group=group), by=_actor(who))

    def _grant(self, who: Principal, session: str, name: str, role: Role, *, group: bool) -> SessionGrant:
        subject = name if group else self._accounts.users.named(name).id
        return SessionGrant(owner=who.user, session=session, subject=subject, role=role, of_group=group)

    def create_link(
        self, who: Principal, session: str, view: LinkView, days: float, *, public: bool
    ) -> Shown:
        """Create a link."""
        return self._accounts.sharing.create(
            self._self(who), session, view, days=days, public=public, by=_actor(who)
        )

    def revoke_link(self, who: Principal, link: str) -> None:
        """Revoke a link."""
        self._accounts.sharing.revoke(self._self(who), link, by=_actor(who))

    # --- the user's own account --------------------------------------------------------------------------

    def _self(self, who: Principal) -> User:
        user = self._accounts.users.get(who.user)
        if user is None:
            raise UsageError("You have no account on this server.")
        return user

    def tokens(self, who: Principal) -> Sequence[ApiToken]:
        """The user's tokens, newest first."""
        return self._accounts.tokens.of(who.user)

    def create_token(
        self, who: Principal, name: str, scopes: Sequence[Scope], days: float, words: Words
    ) -> Shown:
        """Create a token."""
        return self._accounts.tokens.create(
            self._self(who), name, scopes, days=days, by=_actor(who), words=words
        )

    def revoke_token(self, who: Principal, token: str) -> None:
        """Revoke a token."""
        self._accounts.tokens.revoke(self._self(who), token, by=_actor(who))

    def sign_ins(self, who: Principal) -> Sequence[SignIn]:
        """The places where the user is signed in."""
        return self._accounts.sign_ins.of(who.user)

    def sign_out(self, who: Principal, sign_in: str | None) -> None:
        """Sign the user out, of one sign-in or everywhere."""
        self._accounts.sign_ins.end(who.user, sign_in)
        self._accounts.audit.tell("sign-out", _actor(who))

    def usage(self, who: Principal | None) -> Sequence[Used]:
        """What a user used of models this month; with None, what all users and groups used."""
        quotas = self._accounts.quotas
        names = {one.id: one.name for one in self._accounts.users.all()}
        rows: list[Used] = []
        for one in quotas.used(user=None if who is None else who.user):
            bound = quotas.bound(one.kind, one.subject)
            name = one.subject if one.kind == "group" else names.get(one.subject, one.subject)
            rows.append(Used(name, one.month, "tokens", one.tokens, bound.tokens))
            if one.money or bound.money is not None:
                rows.append(Used(name, one.month, "money", one.money, bound.money))
        return rows

    # --- for administrators -------------------------------------------------------------------------

    def users(self) -> Sequence[User]:
        """All accounts, by name."""
        return self._accounts.users.all()

    def add_user(self, who: Principal, name: str, password: str | None, *, admin: bool) -> None:
        """Create an account."""
        self._accounts.users.add(name, password=password, role="admin" if admin else "user", by=_actor(who))

    def change_user(
        self,
        who: Principal,
        name: str,
        *,
        password: str | None,
        admin: bool | None,
        disabled: bool | None,
        groups: Sequence[str] | None,
    ) -> None:
        """Change an account."""
        users, by = self._accounts.users, _actor(who)
        if users.named(name).id == who.user and (disabled or admin is False):
            raise UsageError(
                "You can't disable your own account or give up your administrator role. Ask another administrator."
            )
        if admin is not None:
            users.set_role(name, "admin" if admin else "user", by=by)
        if password is not None:
            users.set_password(name, password, by=by)
        if groups is not None:
            users.set_groups(name, groups, by=by)
        if disabled is not None:
            (users.disable if disabled else users.enable)(name, by=by)

    def audit(self, most: int) -> Sequence[AuditEvent]:
        """The newest events, the oldest of them first."""
        return self._accounts.audit.events(most=most)

    def audit_file(
        self, since: str | None, who: str | None, what: str | None
    ) -> Callable[[], Iterator[bytes]]:
        """Return a function that yields the matching audit entries as lines of JSON.

        Raises:
            UsageError: `since` is not a date.
        """
        wanted = AuditFilter.of(since, who, what)

        def content() -> Iterator[bytes]:
            for line in audit_lines(self._data, self._accounts.audit, wanted, _LOG.warning, self._stores):
                yield f"{line.json}\n".encode("utf-8", "replace")

        return content

    def tell(self, who: Principal, kind: AuditKind, about: Mapping[str, str]) -> None:
        """Record in the audit what a user did."""
        self._accounts.audit.tell(kind, _actor(who), **about)


def _actor(who: Principal) -> Actor:
    return Actor(who.name or who.user, user=who.user)  # the operator has an id and no name
