"""Who else may see or steer a session: by a role that its owner gave to a user or a group, or by a link.

A link is an address that can't be guessed. It expires, can be revoked, and counts how often it was followed. Only the
role of steerer lets anyone act; a link never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, cast

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, or_, select, update

from iact.accounts.audit import AuditLog
from iact.accounts.database import Database
from iact.accounts.digests import digest, mint, mint_id
from iact.accounts.people import Actor, SessionGrant, SharedSession, ShareLink, Shown, User
from iact.accounts.rights import GRANTED, HIDDEN_PARTS, ROLES, LinkView, Principal, Role
from iact.accounts.schema import followed_links, grants, links, users
from iact.core.errors import UsageError

LONGEST_DAYS: Final = 366.0
_DAY: Final = 86400.0


class Sharing:
    """Roles and links. `clock`: seconds since 1970; `public`: whether links that work without an account can be
    made."""

    def __init__(
        self, database: Database, audit: AuditLog, clock: Callable[[], float], *, public: bool = False
    ) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._public = public

    # --- roles ------------------------------------------------------------------------------------

    def give(self, grant: SessionGrant, *, by: Actor) -> None:
        """Give a user or a group a role on a session, in place of the current one.

        Raises:
            UsageError: the role can't be given, or the session is their own.
        """
        if grant.role not in GRANTED:
            raise UsageError(f"The role {grant.role!r} can't be given. Choose from {', '.join(GRANTED)}.")
        if grant.subject == grant.owner and not grant.of_group:
            raise UsageError("This user already owns the session.")

        row = {
            "owner": grant.owner,
            "session": grant.session,
            "subject": grant.subject,
            "of_group": grant.of_group,
            "role": grant.role,
            "created": self._clock(),
        }
        with self._database.writing() as connection:
            connection.execute(delete(grants).where(_same(grant)))
            connection.execute(insert(grants).values(**row))

            to = self._called(connection, grant)
            self._audit.write(connection, "grant.given", by, session=grant.session, role=grant.role, to=to)

    def take(self, grant: SessionGrant, *, by: Actor) -> None:
        """Revoke a role.

        Raises:
            UsageError: they have none.
        """
        with self._database.writing() as connection:
            deleted = connection.execute(delete(grants).where(_same(grant))).rowcount
            if deleted == 0:
                raise UsageError("The session is not shared with this user or group.")

            to = self._called(connection, grant)
            self._audit.write(connection, "grant.taken", by, session=grant.session, to=to)

    def grants_of(self, owner: str, session: str | None = None) -> Sequence[SessionGrant]:
        """The roles that a user gave, on one session or on all of their sessions."""
        mine = grants.c.owner == owner
        where = mine if session is None else and_(mine, grants.c.session == session)
        with self._database.reading() as connection:
            rows = connection.execute(select(grants).where(where).order_by(grants.c.created)).all()
        return [
            SessionGrant(row.owner, row.session, row.subject, cast("Role", row.role), row.of_group)
            for row in rows
        ]

    # --- links ------------------------------------------------------------------------------------

    def create(
        self, owner: User, session: str, view: LinkView, *, days: float, public: bool, by: Actor
    ) -> Shown:
        """Make a link to a session, which is shown only this once.

        Raises:
            UsageError: the number of days is invalid, or links without an account are not allowed here.
        """
        self._check(view, days=days, public=public)
        shown = Shown(mint(), mint_id())
        now = self._clock()
        row = {
            "id": shown.id,
            "digest": digest(shown.secret),
            "owner": owner.id,
            "session": session,
            "at": view.at,
            "hides": sorted(view.hides),
            "variables": sorted(view.variables),
            "public": public,
            "created": now,
            "ends": now + days * _DAY,
            "opened": 0,
        }

        with self._database.writing() as connection:
            connection.execute(insert(links).values(**row))
            self._audit.write(connection, "link.created", by, session=session, link=shown.id)
        return shown

    def _check(self, view: LinkView, *, days: float, public: bool) -> None:
        """Raise UsageError if no such link can be made."""
        if not 0 < days <= LONGEST_DAYS:
            raise UsageError(f"A link can be valid for at most {LONGEST_DAYS:.0f} days.")
        if public and not self._public:
            raise UsageError(
                "Links that work without an account are not allowed on this server. An administrator can allow them "
                "(accounts.public_links)."
            )

        unknown = view.hides - frozenset(HIDDEN_PARTS)
        if unknown:
            raise UsageError(
                f"{sorted(unknown)[0]!r} can't be left out. Choose from {', '.join(HIDDEN_PARTS)}, or name variables."
            )

    def links_of(self, owner: str, session: str | None = None) -> Sequence[ShareLink]:
        """The links that a user made, newest first, without revoked ones."""
        mine = and_(links.c.owner == owner, links.c.revoked.is_(None))
        where = mine if session is None else and_(mine, links.c.session == session)
        with self._database.reading() as connection:
            rows = connection.execute(select(links).where(where).order_by(links.c.created.desc())).all()
        return [_link(row) for row in rows]

    def revoke(self, owner: User, link: str, *, by: Actor) -> None:
        """Revoke a link; it no longer gives access.

        Raises:
            UsageError: the user made no such link.
        """
        mine = and_(links.c.owner == owner.id, links.c.id == link, links.c.revoked.is_(None))
        with self._database.writing() as connection:
            row = connection.execute(select(links).where(mine)).one_or_none()
            if row is None:
                raise UsageError(f"There is no link {link!r}. List the links with: iact share list.")

            connection.execute(update(links).where(mine).values(revoked=self._clock()))
            self._audit.write(connection, "link.revoked", by, session=row.session, link=link)

    def follow(self, secret: str, user: User | None, *, by: Actor) -> ShareLink | None:
        """Follow a link, and keep it for a signed-in user. Returns None if it is not valid, or requires an account."""
        query = select(links).where(links.c.digest == digest(secret), self._is_valid())
        with self._database.reading() as connection:
            if connection.execute(query).one_or_none() is None:  # guesses make no one wait
                return None

        with self._database.writing() as connection:
            row = connection.execute(query).one_or_none()
            if row is None:
                return None
            needs_account = not (row.public and self._public)
            if user is None and needs_account:
                return None

            connection.execute(update(links).where(links.c.id == row.id).values(opened=links.c.opened + 1))
            if user is not None and user.id != row.owner:
                _keep_followed(connection, user.id, row.id)
            self._audit.write(connection, "link.opened", by, session=row.session, link=row.id)
            return _link(row)

    def public_link(self, secret: str) -> ShareLink | None:
        """The link of a person without an account, if it is valid."""
        if not self._public:
            return None
        query = select(links).where(links.c.digest == digest(secret), links.c.public, self._is_valid())
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _link(row)

    def holds(self, link: str) -> bool:
        """Whether the link of a person without an account is still valid."""
        query = select(links.c.id).where(links.c.id == link, links.c.public, self._is_valid())
        with self._database.reading() as connection:
            return self._public and connection.execute(query).one_or_none() is not None

    # --- who may do what ----------------------------------------------------------------------------

    def reach(self, who: Principal, groups: frozenset[str], session: str | None) -> SharedSession | None:
        """The most that a principal may do with another user's session. `session`: None: that of their link."""
        with self._database.reading() as connection:
            shared = list(self._reaches(connection, who, groups, session))

        # The strongest role first; then what was granted, which leaves nothing out.
        return max(shared, key=lambda share: (ROLES.index(share.role), share.view is None), default=None)

    def shared_with(self, who: Principal, groups: frozenset[str]) -> Sequence[SharedSession]:
        """Everything that others share with a principal."""
        with self._database.reading() as connection:
            return list(self._reaches(connection, who, groups, None))

    def _reaches(
        self, connection: Connection, who: Principal, groups: frozenset[str], session: str | None
    ) -> Iterator[SharedSession]:
        """Everything that a principal may do with a session of another user, or with all. A disabled user shares nothing."""
        if who.user:
            yield from self._granted(connection, who, groups, session)
        yield from self._linked(connection, who, session)

    def _granted(
        self, connection: Connection, who: Principal, groups: frozenset[str], session: str | None
    ) -> Iterator[SharedSession]:
        is_for_them = or_(
            and_(grants.c.of_group.is_(False), grants.c.subject == who.user),
            and_(grants.c.of_group, grants.c.subject.in_(sorted(groups))),
        )
        query = select(grants, users.c.name).join(users, users.c.id == grants.c.owner)
        query = query.where(is_for_them, users.c.disabled.is_(None), grants.c.owner != who.user)
        if session is not None:
            query = query.where(grants.c.session == session)

        for row in connection.execute(query):
            role = cast("Role", row.role)
            yield SharedSession(session=row.session, owner=row.owner, owner_name=row.name, role=role)

    def _linked(self, connection: Connection, who: Principal, session: str | None) -> Iterator[SharedSession]:
        query = select(links, users.c.name).join(users, users.c.id == links.c.owner)
        query = query.where(self._is_valid(), users.c.disabled.is_(None))
        if who.user:
            query = query.join(followed_links, followed_links.c.link_id == links.c.id)
            query = query.where(followed_links.c.user_id == who.user)
        else:
            query = query.where(links.c.id == who.link, links.c.public)
        if session is not None:
            query = query.where(links.c.session == session)

        for row in connection.execute(query):
            view = _link(row).view
            yield SharedSession(
                session=row.session, owner=row.owner, owner_name=row.name, role="reader", view=view
            )

    def _is_valid(self) -> ColumnElement[bool]:
        """Whether a link gives access, as a condition of a query."""
        return and_(links.c.revoked.is_(None), links.c.ends > self._clock())

    @staticmethod
    def _called(connection: Connection, grant: SessionGrant) -> str:
        """Whom a grant is for, in words for people."""
        if grant.of_group:
            return f"group {grant.subject}"
        name = connection.execute(select(users.c.name).where(users.c.id == grant.subject)).scalar()
        return name or grant.subject


def _keep_followed(connection: Connection, user: str, link: str) -> None:
    """Note that a user followed a link, unless it is noted."""
    is_this = and_(followed_links.c.user_id == user, followed_links.c.link_id == link)
    if connection.execute(select(followed_links).where(is_this)).one_or_none() is None:
        connection.execute(insert(followed_links).values(user_id=user, link_id=link))


def _same(grant: SessionGrant) -> ColumnElement[bool]:
    """Whether a row is for the same session and the same user or group."""
    return and_(
        grants.c.owner == grant.owner,
        grants.c.session == grant.session,
        grants.c.subject == grant.subject,
        grants.c.of_group.is_(grant.of_group),
    )


def _link(row: Row[tuple[object, ...]]) -> ShareLink:
    return ShareLink(
        id=row.id,
        owner=row.owner,
        session=row.session,
        created=row.created,
        ends=row.ends,
        view=LinkView(at=row.at, hides=frozenset(row.hides), variables=frozenset(row.variables)),
        public=row.public,
        opened=row.opened,
        revoked=row.revoked,
    )
