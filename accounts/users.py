"""Users: who has an account, their names and roles on the server, and who vouches for them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from sqlalchemy import Connection, Row, delete, insert, select, update

from iact.accounts import passwords
from iact.accounts.audit import AuditLog
from iact.accounts.database import Database
from iact.accounts.digests import mint_id
from iact.accounts.people import Actor, User
from iact.accounts.rights import LOCAL, ServerRole
from iact.accounts.schema import memberships, sign_ins, users
from iact.core.errors import UsageError

_LONGEST: Final = 64
_FORBIDDEN: Final = frozenset(":/\\<>\"'`,;")


def checked_name(name: str) -> str:
    """A name as it is stored.

    Raises:
        UsageError: the name is not allowed.
    """
    stored = unicodedata.normalize("NFKC", name).strip()
    has_length = 0 < len(stored) <= _LONGEST
    has_signs = stored.isprintable() and not _FORBIDDEN & set(stored)
    if not has_length or not has_signs or stored.startswith("-"):
        raise UsageError(
            f"{name[:80]!r} can't be the name of a user. It has up to {_LONGEST} letters, digits, spaces, and signs such as _ and @."
        )
    return stored


def name_key(name: str) -> str:
    """A name in the form that is compared, ignoring case."""
    return unicodedata.normalize("NFKC", name).strip().casefold()[:_LONGEST]


class Users:
    """The users of a server. `clock`: seconds since 1970."""

    def __init__(self, database: Database, audit: AuditLog, clock: Callable[[], float]) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock

    def add(
        self,
        name: str,
        *,
        by: Actor,
        role: ServerRole = "user",
        password: str | None = None,
        groups: Iterable[str] = (),
    ) -> User:
        """Make an account. Without a password, it is for a person whom a proxy or a provider vouches for.

        Raises:
            UsageError: the name is taken or not allowed, or the password is too short.
        """
        stored_name = checked_name(name)
        stored_password = passwords.hashed(password) if password is not None else None
        with self._database.writing() as connection:
            if self._row(connection, name_key(stored_name)) is not None:
                raise UsageError(f"There is already a user {stored_name!r}.")

            user = self._insert(connection, stored_name, role, password=stored_password)
            self._set_groups(connection, user, groups, told=False)
            self._audit.write(connection, "user.added", by, user=stored_name, role=role)
            return self._user(connection, self._by_id(connection, user))

    def all(self) -> Sequence[User]:
        """Every account, by name."""
        query = select(users).where(users.c.id != LOCAL.user).order_by(users.c.name_key)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
            return [self._user(connection, row) for row in rows]

    def named(self, name: str) -> User:
        """The user with a name.

        Raises:
            UsageError: there is none.
        """
        with self._database.reading() as connection:
            return self._user(connection, self._named(connection, name))

    def get(self, user: str) -> User | None:
        """The user with an id."""
        with self._database.reading() as connection:
            row = connection.execute(select(users).where(users.c.id == user)).one_or_none()
            return None if row is None else self._user(connection, row)

    def with_password(self, name: str, password: str) -> User | None:
        """The user with this name and password, or None if there is none or they may not sign in."""
        with self._database.reading() as connection:
            row = self._row(connection, name_key(name))

        # Asked even if there is no such user, so that both take as long.
        stored = None if row is None else row.password
        if not passwords.matches(stored, password):
            return None
        assert row is not None

        if passwords.outdated(row.password):
            renewed = passwords.hashed(password)
            with self._database.writing() as connection:
                connection.execute(update(users).where(users.c.id == row.id).values(password=renewed))
        return _unless_disabled(self.get(row.id))

    def vouched(
        self, identity: str, name: str, groups: Iterable[str], *, create: bool, by: Actor
    ) -> User | None:
        """The user that a proxy or a provider names. `identity`: their permanent id there; `name`: their current name.

        An account that an administrator added under that name, and that has no identity yet, becomes theirs.

        Raises:
            UsageError: they have no account, or the name belongs to another person.
        """
        stored_name = checked_name(name)
        told_groups = frozenset(group.strip()[:128] for group in groups if group.strip())

        # A proxy names them with every request, of which nearly none changes anything.
        with self._database.reading() as connection:
            row = self._with_identity(connection, identity)
            if row is not None and self._told(connection, row.id) == told_groups:
                return _unless_disabled(self._user(connection, row))

        with self._database.writing() as connection:
            row = self._with_identity(connection, identity)
            if row is not None:
                user = row.id
            else:
                user = self._adopt(connection, identity, stored_name, create=create, by=by)
            self._set_groups(connection, user, told_groups, told=True)
            return _unless_disabled(self._user(connection, self._by_id(connection, user)))

    def set_role(self, name: str, role: ServerRole, *, by: Actor) -> None:
        """Make a user an administrator, or no longer one.

        Raises:
            UsageError: there is no such user.
        """
        with self._database.writing() as connection:
            row = self._named(connection, name)
            connection.execute(update(users).where(users.c.id == row.id).values(role=role))
            self._audit.write(connection, "user.role", by, user=row.name, role=role)

    def set_password(self, name: str, password: str, *, by: Actor, stay: str | None = None) -> None:
        """Change a user's password. They are signed out everywhere, except for the sign-in `stay`.

        Raises:
            UsageError: there is no such user, or the password is too short.
        """
        stored = passwords.hashed(password)
        with self._database.writing() as connection:
            row = self._named(connection, name)
            connection.execute(update(users).where(users.c.id == row.id).values(password=stored))
            connection.execute(
                delete(sign_ins).where(sign_ins.c.user_id == row.id, sign_ins.c.id != (stay or ""))
            )
            self._audit.write(connection, "user.password", by, user=row.name)

    def set_groups(self, name: str, groups: Iterable[str], *, by: Actor) -> None:
        """Put a user into these groups, in addition to those that a provider reports.

        Raises:
            UsageError: there is no such user.
        """
        names = sorted({group.strip() for group in groups if group.strip()})
        with self._database.writing() as connection:
            row = self._named(connection, name)
            self._set_groups(connection, row.id, names, told=False)
            self._audit.write(connection, "user.groups", by, user=row.name, groups=", ".join(names))

    def disable(self, name: str, *, by: Actor) -> None:
        """Disable a user, who can no longer sign in by any means. Their data stays.

        Raises:
            UsageError: there is no such user.
        """
        with self._database.writing() as connection:
            row = self._named(connection, name)
            connection.execute(update(users).where(users.c.id == row.id).values(disabled=self._clock()))
            connection.execute(delete(sign_ins).where(sign_ins.c.user_id == row.id))
            self._audit.write(connection, "user.disabled", by, user=row.name)

    def enable(self, name: str, *, by: Actor) -> None:
        """Let a user sign in again.

        Raises:
            UsageError: there is no such user.
        """
        with self._database.writing() as connection:
            row = self._named(connection, name)
            connection.execute(update(users).where(users.c.id == row.id).values(disabled=None))
            self._audit.write(connection, "user.enabled", by, user=row.name)

    def seen(self, user: str) -> None:
        """Record that a user is active now."""
        with self._database.writing() as connection:
            connection.execute(update(users).where(users.c.id == user).values(seen=self._clock()))

    def remove(self, name: str, *, by: Actor) -> str:
        """Remove an account, its tokens, links and grants. Returns its id, which is the name of its directory.

        Raises:
            UsageError: there is no such user.
        """
        with self._database.writing() as connection:
            row = self._named(connection, name)
            connection.execute(delete(users).where(users.c.id == row.id))
            self._audit.write(connection, "user.removed", by, user=row.name)
            return str(row.id)

    def _adopt(self, connection: Connection, identity: str, name: str, *, create: bool, by: Actor) -> str:
        """The account for a person whom nobody vouched for before: one of their name, or a new one. Returns its id."""
        row = self._row(connection, name_key(name))
        if row is None:
            if not create:
                raise UsageError(f"There is no account for {name!r} here. Ask an administrator to add one.")
            user = self._insert(connection, name, "user", identity=identity)
            self._audit.write(connection, "user.added", by, user=name, role="user")
            return user

        is_anothers = row.identity is not None or row.password is not None or row.id == LOCAL.user
        if is_anothers:
            raise UsageError(f"The name {name!r} belongs to another account here. Ask an administrator.")
        connection.execute(update(users).where(users.c.id == row.id).values(identity=identity))
        return str(row.id)

    def _insert(
        self,
        connection: Connection,
        name: str,
        role: ServerRole,
        *,
        password: str | None = None,
        identity: str | None = None,
    ) -> str:
        """Add an account. Returns its id."""
        user = mint_id()
        row = {
            "id": user,
            "name": name,
            "name_key": name_key(name),
            "role": role,
            "password": password,
            "identity": identity,
            "created": self._clock(),
        }
        connection.execute(insert(users).values(**row))
        return user

    @staticmethod
    def _row(connection: Connection, key: str) -> Row[tuple[object, ...]] | None:
        return connection.execute(select(users).where(users.c.name_key == key)).one_or_none()

    @staticmethod
    def _by_id(connection: Connection, user: str) -> Row[tuple[object, ...]]:
        return connection.execute(select(users).where(users.c.id == user)).one()

    @staticmethod
    def _with_identity(connection: Connection, identity: str) -> Row[tuple[object, ...]] | None:
        return connection.execute(select(users).where(users.c.identity == identity)).one_or_none()

    def _named(self, connection: Connection, name: str) -> Row[tuple[object, ...]]:
        """The account with a name. Raises UsageError."""
        row = self._row(connection, name_key(name))
        if row is None or row.id == LOCAL.user:
            raise UsageError(f"There is no user {name!r}. List the users with: iact user list.")
        return row

    @staticmethod
    def _told(connection: Connection, user: str) -> frozenset[str]:
        """The groups that a proxy or a provider reported."""
        query = select(memberships.c.group_name).where(memberships.c.user_id == user, memberships.c.told)
        return frozenset(connection.execute(query).scalars())

    @staticmethod
    def _set_groups(connection: Connection, user: str, groups: Iterable[str], *, told: bool) -> None:
        """Replace the groups that were reported (`told`), or those that were set here. A group is only one of both."""
        of_user = memberships.c.user_id == user
        query = select(memberships.c.group_name).where(of_user, memberships.c.told.is_(not told))
        others = frozenset(connection.execute(query).scalars())

        connection.execute(delete(memberships).where(of_user, memberships.c.told.is_(told)))
        for group in sorted(frozenset(groups) - others):
            connection.execute(insert(memberships).values(user_id=user, group_name=group, told=told))

    @staticmethod
    def _user(connection: Connection, row: Row[tuple[object, ...]]) -> User:
        query = select(memberships.c.group_name).where(memberships.c.user_id == row.id)
        groups = connection.execute(query).scalars()
        return User(
            id=row.id,
            name=row.name,
            role=cast("ServerRole", row.role),
            created=row.created,
            groups=frozenset(groups),
            disabled=row.disabled,
            seen=row.seen,
        )


def _unless_disabled(user: User | None) -> User | None:
    """The user, if they may sign in."""
    return user if user is not None and user.disabled is None else None
