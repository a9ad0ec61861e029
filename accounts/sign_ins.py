"""Where people are signed in: a cookie in a browser, and a row here. Deleting the row signs the browser out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Row, delete, insert, select, update

from iact.accounts.database import Database
from iact.accounts.digests import digest, mint, mint_id
from iact.accounts.people import Shown, SignIn
from iact.accounts.schema import sign_ins, users

_MINUTE: Final = 60.0
"""The precision in seconds with which the last use is stored, so that not every request writes."""


class SignIns:
    """The sign-ins of all users. `clock`: seconds since 1970; `life`: seconds that a sign-in lasts after its last
    use."""

    def __init__(self, database: Database, clock: Callable[[], float], life: float) -> None:
        self._database = database
        self._clock = clock
        self.life: Final = life

    def start(self, user: str, *, address: str = "", agent: str = "") -> Shown:
        """Sign a user in. The secret is always new; an earlier one is never reused."""
        shown = Shown(mint(), mint_id())
        now = self._clock()
        row = {
            "id": shown.id,
            "digest": digest(shown.secret),
            "user_id": user,
            "created": now,
            "seen": now,
            "ends": now + self.life,
            "address": address[:64],
            "agent": agent[:200],
        }

        with self._database.writing() as connection:
            connection.execute(delete(sign_ins).where(sign_ins.c.ends <= now))
            connection.execute(insert(sign_ins).values(**row))
            connection.execute(update(users).where(users.c.id == user).values(seen=now))
        return shown

    def find(self, secret: str) -> SignIn | None:
        """The sign-in of a cookie, if it is valid. Finding it extends its life."""
        now = self._clock()
        query = select(sign_ins).where(sign_ins.c.digest == digest(secret), sign_ins.c.ends > now)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None

        if now - row.seen >= _MINUTE:
            is_this = sign_ins.c.id == row.id
            with self._database.writing() as connection:
                connection.execute(update(sign_ins).where(is_this).values(seen=now, ends=now + self.life))
                connection.execute(update(users).where(users.c.id == row.user_id).values(seen=now))
        return _sign_in(row)

    def holds(self, identity: str) -> bool:
        """Whether a sign-in is still valid."""
        query = select(sign_ins.c.id).where(sign_ins.c.id == identity, sign_ins.c.ends > self._clock())
        with self._database.reading() as connection:
            return connection.execute(query).one_or_none() is not None

    def of(self, user: str) -> Sequence[SignIn]:
        """A user's sign-ins, the most recent first."""
        query = select(sign_ins).where(sign_ins.c.user_id == user, sign_ins.c.ends > self._clock())
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(sign_ins.c.seen.desc())).all()
        return [_sign_in(row) for row in rows]

    def end(self, user: str, identity: str | None = None) -> None:
        """Sign a user out: of one sign-in, or of all."""
        statement = delete(sign_ins).where(sign_ins.c.user_id == user)
        if identity is not None:
            statement = statement.where(sign_ins.c.id == identity)
        with self._database.writing() as connection:
            connection.execute(statement)


def _sign_in(row: Row[tuple[object, ...]]) -> SignIn:
    return SignIn(
        id=row.id,
        user=row.user_id,
        created=row.created,
        seen=row.seen,
        ends=row.ends,
        address=row.address,
        agent=row.agent,
    )
