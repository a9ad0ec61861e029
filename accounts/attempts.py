"""How often someone may try to sign in: token buckets that are stored, so that a restart does not reset them.

There is one for each name from each address, against guessing a password; one for each address, against guessing names;
and one for each name from all addresses, which is large enough that no single client can lock another user out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy import delete, insert, select

from iact.accounts.database import Database
from iact.accounts.schema import attempts
from iact.core.rates import Bucket


@dataclass(frozen=True, slots=True)
class _Limit:
    """Allows `most` attempts at once, and one more after each `seconds`."""

    most: float
    seconds: float


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
        now = self._clock()
        with self._database.writing() as connection:
            if self._database.dialect == "postgresql":  # SQLite lets one write at a time anyway
                connection.exec_driver_sql("LOCK TABLE attempts IN SHARE ROW EXCLUSIVE MODE")
            kept = {
                row.subject: Bucket(row.left, row.at)
                for row in connection.execute(
                    select(attempts).where(attempts.c.subject.in_([one for one, _ in _limits(name, address)]))
                )
            }
            buckets = {
                subject: kept.get(subject, Bucket(limit.most, now)).refilled(
                    now, tokens=1, per=limit.seconds, most=limit.most
                )
                for subject, limit in _limits(name, address)
            }
            waits = [
                (1 - buckets[subject].left) * limit.seconds
                for subject, limit in _limits(name, address)
                if buckets[subject].left < 1
            ]
            if waits:
                return max(1, math.ceil(max(waits)))
            # A full bucket needs no row; every bucket fills up within an hour.
            connection.execute(delete(attempts).where(attempts.c.at < now - 3600))
            connection.execute(delete(attempts).where(attempts.c.subject.in_(list(buckets))))
            for subject, bucket in buckets.items():
                connection.execute(
                    insert(attempts).values(subject=subject, left=bucket.left - 1, at=bucket.at)
                )
        return 0

    def forgive(self, name: str, address: str) -> None:
        """Forget the failed attempts of a user who has signed in."""
        with self._database.writing() as connection:
            connection.execute(
                delete(attempts).where(attempts.c.subject == f"{name[:64]} from {address[:64]}")
            )


def _limits(name: str, address: str) -> Iterator[tuple[str, _Limit]]:
    yield f"{name[:64]} from {address[:64]}", _PAIR
    yield f"from {address[:64]}", _ADDRESS
    yield f"{name[:64]} from everywhere", _NAME
