"""How often someone may try to sign in: token buckets that are stored, so that a restart does not reset them.

There is one for each name from each address, against guessing a password; one for each address, against guessing names;
and one for each name from all addresses, which is large enough that no single client can lock another user out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, select

from iact.accounts.database import Database
from iact.accounts.schema import attempts
from iact.core.rates import Bucket


@dataclass(frozen=True, slots=True)
class _Limit:
    """A bucket of attempts."""

    most: float
    """How many may be made at once."""
    seconds: float
    """After how many one more may be made."""


_PAIR: Final = _Limit(5, 30)
_ADDRESS: Final = _Limit(30, 5)
_NAME: Final = _Limit(100, 10)


class Attempts:
    """Counts attempts to sign in. `clock`: seconds since 1970."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def take(self, name: str, address: str) -> int:
        """Count an attempt. Returns 0 if it may be made, otherwise the seconds until one may."""
        limits = dict(_limits(name, address))
        now = self._clock()
        with self._database.writing() as connection:
            if self._database.dialect == "postgresql":  # SQLite lets one write at a time anyway
                connection.exec_driver_sql("LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE")

            buckets = _buckets(connection, limits, now)
            waits = [
                (1 - bucket.left) * limits[subject].seconds
                for subject, bucket in buckets.items()
                if bucket.left < 1
            ]
            if waits:
                return max(1, math.ceil(max(waits)))

            # A full bucket needs no row; every bucket fills up within an hour.
            connection.execute(delete(attempts).where(attempts.c.at < now - 3600))
            connection.execute(delete(attempts).where(attempts.c.subject.in_(list(buckets))))
            for subject, bucket in buckets.items():
                row = {"subject": subject, "left": bucket.left - 1, "at": bucket.at}
                connection.execute(insert(attempts).values(**row))
        return 0

    def forgive(self, name: str, address: str) -> None:
        """Forget the failed attempts of a user who has signed in."""
        pair = _pair(name, address)
        with self._database.writing() as connection:
            connection.execute(delete(attempts).where(attempts.c.subject == pair))


def _buckets(connection: Connection, limits: Mapping[str, _Limit], now: float) -> dict[str, Bucket]:
    """The bucket of each subject, as full as it is now."""
    rows = connection.execute(select(attempts).where(attempts.c.subject.in_(list(limits))))
    stored = {row.subject: Bucket(row.left, row.at) for row in rows}
    return {
        subject: stored.get(subject, Bucket(limit.most, now)).refilled(
            now, tokens=1, per=limit.seconds, most=limit.most
        )
        for subject, limit in limits.items()
    }


def _limits(name: str, address: str) -> Iterator[tuple[str, _Limit]]:
    """The buckets that an attempt is taken from, each by the subject under which it is stored."""
    yield _pair(name, address), _PAIR
    yield f"from {address[:64]}", _ADDRESS
    yield f"{name[:64]} from everywhere", _NAME


def _pair(name: str, address: str) -> str:
    return f"{name[:64]} from {address[:64]}"
