"""API tokens of users: each has a name, scopes and an end, and is shown once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from sqlalchemy import Connection, Row, insert, select, update

from iact.accounts.audit import AuditLog
from iact.accounts.database import Database
from iact.accounts.digests import digest, mint, mint_id
from iact.accounts.people import Actor, ApiToken, Shown, User
from iact.accounts.rights import SCOPES, Scope, Words
from iact.accounts.schema import api_tokens
from iact.core.errors import UsageError

PREFIX: Final = "iact_"
"""The prefix by which people, and secret scanners, recognise a token."""

LONGEST_DAYS: Final = 366.0
_AGREEING: Final = frozenset[Scope]({"clear", "admin"})
"""The scopes with which a token says yes in its user's name."""

_DAY: Final = 86400.0
_MINUTE: Final = 60.0


class ApiTokens:
    """Creates, finds and revokes tokens. `clock`: seconds since 1970."""

    def __init__(self, database: Database, audit: AuditLog, clock: Callable[[], float]) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock

    def create(
        self,
        user: User,
        name: str,
        scopes: Iterable[Scope],
        *,
        days: float,
        by: Actor,
        words: Words = "newest",
    ) -> Shown:
        """Make a token, which is shown only this once. `words`: what of all that is sent with it is the user's words.

        Raises:
            UsageError: the name, a scope or the number of days is invalid.
        """
        stored_name = name.strip()
        chosen = frozenset(scopes)
        _check(stored_name, chosen, days)
        if "admin" in chosen and user.role != "admin":
            raise UsageError("Only an administrator can create a token with the scope admin.")
        if words == "none" and chosen & _AGREEING:
            raise UsageError(
                "A program that passes on what others write can agree to nothing for you: leave out the scopes clear and "
                "admin."
            )

        shown = Shown(PREFIX + mint(), mint_id())
        now = self._clock()
        with self._database.writing() as connection:
            if self._named(connection, user.id, stored_name) is not None:
                raise UsageError(
                    f"There is already a token {stored_name!r}. Choose another name, or revoke that token."
                )
            row = {
                "id": shown.id,
                "digest": digest(shown.secret),
                "user_id": user.id,
                "name": stored_name,
                "scopes": sorted(chosen),
                "created": now,
                "ends": now + days * _DAY,
                "words": words,
            }
            connection.execute(insert(api_tokens).values(**row))

            listed = " ".join(sorted(chosen))
            self._audit.write(
                connection, "token.created", by, user=user.name, token=stored_name, scopes=listed
            )
        return shown

    def find(self, secret: str) -> ApiToken | None:
        """The token that a program sent, if it is valid."""
        if not secret.startswith(PREFIX):
            return None

        query = select(api_tokens).where(api_tokens.c.digest == digest(secret))
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        now = self._clock()
        if row is None or row.revoked is not None or row.ends <= now:
            return None

        # To the minute, so that not every request writes.
        if row.used is None or now - row.used >= _MINUTE:
            with self._database.writing() as connection:
                connection.execute(update(api_tokens).where(api_tokens.c.id == row.id).values(used=now))
        return _token(row)

    def holds(self, identity: str) -> bool:
        """Whether a token is still valid."""
        query = select(api_tokens.c.id).where(
            api_tokens.c.id == identity, api_tokens.c.revoked.is_(None), api_tokens.c.ends > self._clock()
        )
        with self._database.reading() as connection:
            return connection.execute(query).one_or_none() is not None

    def of(self, user: str) -> Sequence[ApiToken]:
        """A user's tokens that are not revoked, newest first."""
        query = select(api_tokens).where(api_tokens.c.user_id == user, api_tokens.c.revoked.is_(None))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(api_tokens.c.created.desc())).all()
        return [_token(row) for row in rows]

    def revoke(self, user: User, name: str, *, by: Actor) -> None:
        """Revoke a token; it no longer gives access. `name`: the token's name, or its id.

        Raises:
            UsageError: the user has no such token.
        """
        with self._database.writing() as connection:
            row = self._named(connection, user.id, name)
            if row is None:
                raise UsageError(f"There is no token {name!r}. List the tokens with: iact token list.")
            connection.execute(
                update(api_tokens).where(api_tokens.c.id == row.id).values(revoked=self._clock())
            )
            self._audit.write(connection, "token.revoked", by, user=user.name, token=row.name)

    @staticmethod
    def _named(connection: Connection, user: str, name: str) -> Row[tuple[object, ...]] | None:
        """A user's token that is not revoked, by its name or its id."""
        mine = (api_tokens.c.user_id == user, api_tokens.c.revoked.is_(None))
        is_named_so = (api_tokens.c.name == name) | (api_tokens.c.id == name)
        return connection.execute(select(api_tokens).where(*mine, is_named_so)).first()


def _check(name: str, scopes: frozenset[Scope], days: float) -> None:
    """Raise UsageError if no token can be made of these."""
    if not name or len(name) > 64 or not name.isprintable():
        raise UsageError("A token needs a name of up to 64 letters that says what it is for.")

    unknown = scopes - frozenset(SCOPES)
    if unknown:
        raise UsageError(f"There is no scope {sorted(unknown)[0]!r}. Choose from {', '.join(SCOPES)}.")
    if not scopes:
        raise UsageError(f"A token needs at least one scope. Choose from {', '.join(SCOPES)}.")

    if not 0 < days <= LONGEST_DAYS:
        raise UsageError(f"A token can be valid for at most {LONGEST_DAYS:.0f} days.")


def _token(row: Row[tuple[object, ...]]) -> ApiToken:
    return ApiToken(
        id=row.id,
        user=row.user_id,
        name=row.name,
        scopes=frozenset(row.scopes),
        created=row.created,
        ends=row.ends,
        used=row.used,
        revoked=row.revoked,
        words=row.words or "newest",
    )
