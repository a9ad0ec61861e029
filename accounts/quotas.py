"""How much of the models people may use in a month: for each user, for groups, and for users without their own quota.

Each model call first reserves what it may use, in one transaction with the check of what is left, and settles it
afterwards. So no number of concurrent calls, on any number of hosts, exceeds a quota. The members of a group share its
quota. A month is a calendar month, UTC.

Concurrent sessions and containers are counted on the host where they run. Where several hosts share a database, each
also writes its counts for each user there: before one more begins, in one transaction with the check of what the others
wrote.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias
from weakref import WeakValueDictionary

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, select, true, tuple_, update
from sqlalchemy.exc import SQLAlchemyError

from iact.accounts.audit import AuditLog
from iact.accounts.database import Database
from iact.accounts.digests import mint_id
from iact.accounts.people import Actor
from iact.accounts.schema import at_once, memberships, quotas, reservations, usage, users
from iact.core.errors import QuotaExceeded
from iact.core.ports import AtOnce, Spending

_LOG: Final = logging.getLogger(__name__)

QuotaKind: TypeAlias = Literal["user", "group", "each"]
"""Whose quota it is: a user's, a group's, or that of each user without a quota of their own."""

CountedKind: TypeAlias = Literal["sessions", "containers"]
"""What is limited by the number that run at once."""

_PATIENCE: Final = 0.5
"""Seconds until a check is repeated for whether calls on other hosts left room."""

_LONGEST: Final = 6 * 3600.0
"""Seconds after which a reservation is void: the process that made it is gone."""

_RESERVING: Final = 0x71756F74
"""The number of PostgreSQL's advisory lock, held while what is left is read and some of it is taken."""

_COUNTED: Final = 120.0
"""Seconds for which other hosts count what a host reported, unless it reports again."""
_RECOUNT: Final = 1.0
"""Seconds until other hosts know what has ended on a host."""
_TRIES: Final = 4
"""How often a refused request is repeated, `_PATIENCE` apart, when other hosts' counts refused it: theirs may have
ended."""

_DECEMBER: Final = 12


@dataclass(frozen=True, slots=True)
class AccountQuota:
    """What may be used in a month, and at once; None: no limit."""

    tokens: int | None = None
    money: float | None = None
    sessions: int | None = None
    """Sessions whose agents are working at once."""

    containers: int | None = None
    """Module containers that run at once."""


@dataclass(frozen=True, slots=True)
class MonthUsage:
    """How much of the models was used in a month. `subject`: a user's id, or the name of a group."""

    kind: QuotaKind
    subject: str
    month: str
    tokens: int
    money: float
    calls: int


@dataclass(frozen=True, slots=True)
class _Account:
    """One of the sums that a user's call counts towards."""

    kind: QuotaKind
    subject: str
    quota: AccountQuota


@dataclass(frozen=True, slots=True)
class SharedBound:
    """How much may run at once, for a user alone or for a group. `others`: the group's other members, by id."""

    quota: AccountQuota
    group: str = ""
    others: frozenset[str] = frozenset()


class Quotas:
    """The quotas of all users and groups. `clock`: seconds since 1970; `host`: the host whose reservations these
    are."""

    def __init__(
        self, database: Database, audit: AuditLog, clock: Callable[[], float], host: str = ""
    ) -> None:
        self._database = database
        self._audit = audit
        self._clock = clock
        self._host = host
        self.open: Final[WeakValueDictionary[str, UserQuota]] = WeakValueDictionary()
        """The quotas in use in this process, by user. Concurrent use is counted among them."""
        self.taking: Final = asyncio.Lock()
        """Held while a caller asks whether one more may run."""

    def release(self, host: str | None = None) -> None:
        """Release what a host's calls hold and no one will settle. None: this host's, from an earlier process."""
        with self._database.writing() as connection:
            for one in (reservations, at_once):
                connection.execute(delete(one).where(one.c.host == (host or self._host)))

    @property
    def among_hosts(self) -> bool:
        """Whether other hosts may share the database."""
        return self._database.dialect == "postgresql"

    def take(self, kind: CountedKind, taken: Mapping[str, int], user: str, more: int) -> AtOnce | None:
        """Announce that `more` will run for a user here, in addition to those that run, if their quotas allow it.

        Returns None if so, otherwise the quota that allows least, with the room that it leaves here. `taken`: how many
        run here, by user.
        """
        now, own = self._clock(), taken.get(user, 0)
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            elsewhere = connection.execute(
                select(at_once).where(
                    at_once.c.kind == kind, at_once.c.ends > now, at_once.c.host != self._host
                )
            ).all()
            least: AtOnce | None = None
            for one in _accounts(connection, user):
                most = one.quota.sessions if kind == "sessions" else one.quota.containers
                if most is not None:
                    whose = {user} if one.kind == "user" else _members(connection, one.subject)
                    others = sum(row.taken for row in elsewhere if row.user_id in whose)
                    others += sum(taken.get(member, 0) for member in whose - {user})
                    left = max(0, most - others)
                    if left < (own + more if least is None else least.most):
                        least = AtOnce(left, one.subject if one.kind == "group" else "", most)
            self._write(connection, user, kind, own if least is not None else own + more)
            return least

    def recount(self, counts: Mapping[tuple[str, CountedKind], int]) -> None:
        """Announce how many run here, by user and kind, where the number has changed or was written long ago."""
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            for (user, kind), count in counts.items():
                self._write(connection, user, kind, count)

    def _write(self, connection: Connection, user: str, kind: CountedKind, count: int) -> None:
        row = {"host": self._host, "user_id": user, "kind": kind}
        mine = and_(at_once.c.host == self._host, at_once.c.user_id == user, at_once.c.kind == kind)
        connection.execute(delete(at_once).where(mine))
        if count > 0:
            connection.execute(insert(at_once).values(**row, taken=count, ends=self._clock() + _COUNTED))

    async def tend(self) -> None:
        """Report to other hosts what has ended here, until cancelled. Returns at once if there are no other hosts."""
        while self.among_hosts:
            await asyncio.sleep(_RECOUNT)
            for one in list(self.open.values()):
                try:
                    await one.recount()
                except (SQLAlchemyError, OSError) as error:
                    _LOG.warning("Other hosts can't be told what goes on here: %s", error)

    def set(self, kind: QuotaKind, subject: str, quota: AccountQuota, *, by: Actor) -> None:
        """Set a quota in place of the current one. `subject`: a user's id, a group's name, or empty."""
        with self._database.writing() as connection:
            connection.execute(delete(quotas).where(quotas.c.kind == kind, quotas.c.subject == subject))
            if quota != AccountQuota():
                values = {name: getattr(quota, name) for name in AccountQuota.__slots__}
                connection.execute(insert(quotas).values(kind=kind, subject=subject, **values))
            name = connection.execute(select(users.c.name).where(users.c.id == subject)).scalar()
            self._audit.write(connection, "quota.changed", by, of=f"{kind} {name or subject}".strip())

    def all(self) -> Mapping[tuple[QuotaKind, str], AccountQuota]:
        """Every quota, by its kind and subject."""
        with self._database.reading() as connection:
            return _quotas(connection, true())

    def bound(self, kind: QuotaKind, subject: str) -> AccountQuota:
        """What a user (regardless of their groups), or a group, may use."""
        wanted = [(kind, subject), *([("each", "")] if kind == "user" else [])]
        with self._database.reading() as connection:
            found = _quotas(connection, tuple_(quotas.c.kind, quotas.c.subject).in_(wanted))
        return next((found[one] for one in wanted if one in found), AccountQuota())

    def bounds_at_once(self, user: str) -> Sequence[SharedBound]:
        """The limits on what runs at once for a user: their own first, then those that their groups share."""
        with self._database.reading() as connection:
            found = _accounts(connection, user)
            return [
                SharedBound(one.quota)
                if one.kind == "user"
                else SharedBound(one.quota, one.subject, _members(connection, one.subject) - {user})
                for one in found
                if one.quota.sessions is not None or one.quota.containers is not None
            ]

    def used(self, month: str | None = None, *, user: str | None = None) -> Sequence[MonthUsage]:
        """What was used in a month (`2026-11`; None: this one): by a user, or by all users and groups."""
        query = select(usage).where(usage.c.month == (month or self.month()))
        if user is not None:
            query = query.where(usage.c.kind == "user", usage.c.subject == user)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(usage.c.kind, usage.c.subject)).all()
        return [
            MonthUsage(row.kind, row.subject, row.month, row.tokens, row.money, row.calls) for row in rows
        ]

    def month(self) -> str:
        """The current month."""
        return f"{self._now():%Y-%m}"

    def reserve(self, user: str, most: Spending) -> str | None:
        """Reserve what a user's call may use, at most `most`. Returns None if running calls hold what it needs.

        Raises:
            QuotaExceeded: it would be too much even if the running calls used nothing.
        """
        now, month = self._clock(), self.month()
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            connection.execute(delete(reservations).where(reservations.c.ends <= now))
            counted = _accounts(connection, user)
            busy = False
            for one in counted:
                used, held = _sums(connection, one, month)
                self._check(one, used, most)
                busy = busy or not _fits(one.quota, used + held, most)
            if busy:
                return None
            made = mint_id()
            for one in counted:
                connection.execute(
                    insert(reservations).values(
                        id=made, kind=one.kind, subject=one.subject, month=month, tokens=most.tokens,
                        money=most.money, host=self._host, ends=now + _LONGEST,
                    )
                )  # fmt: skip
            return made

    def settle(self, reservation: str, user: str, used: Spending) -> None:
        """Settle a call that is over. `used`: nothing, if it was not made."""
        with self._database.writing() as connection:
            mine = reservations.c.id == reservation
            self._database.alone(connection, _RESERVING)
            held = connection.execute(select(reservations).where(mine)).all()
            connection.execute(delete(reservations).where(mine))
            if not used.tokens and not used.money:
                return
            # A reservation that expired in the meantime is still charged, to the current month.
            rows = [(row.kind, row.subject, row.month) for row in held] or [
                (one.kind, one.subject, self.month()) for one in _accounts(connection, user)
            ]
            for kind, subject, month in rows:
                _count(connection, kind, subject, month, used)

    def _check(self, account: _Account, used: Spending, most: Spending) -> None:
        """Refuse what can't fit even if no call is running, and name the first limit that it exceeds."""
        quota = account.quota
        if quota.tokens is not None and used.tokens + most.tokens > quota.tokens:
            parts = f"{quota.tokens:,} tokens", f"{used.tokens:,}", f"{most.tokens:,}"
        elif quota.money is not None and used.money + most.money > quota.money:
            parts = Spending(money=quota.money).price, used.price, most.price
        else:
            return
        raise QuotaExceeded(self._refusal(account, *parts), bound="quota")

    def _refusal(self, account: _Account, limit: str, used: str, most: str) -> str:
        now = self._now()
        first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        then = (
            first.replace(year=first.year + 1, month=1)
            if first.month == _DECEMBER
            else first.replace(month=first.month + 1)
        )
        if account.kind == "group":
            return (
                f"The quota of the group {account.subject} is {limit} a month, of which {used} is "
                f"used. The next model call could take {most}, so it was not made. The quota is "
                f"renewed at {then:%Y-%m-%d} (UTC). For more before that, ask an administrator."
            )
        return (
            f"Your quota is {limit} a month, of which {used} is used. The next model call could take "
            f"{most}, so it was not made. The quota is renewed at {then:%Y-%m-%d} (UTC). For more "
            "before that, ask an administrator."
        )

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


class UserQuota:
    """Implements `core.ports.ModelQuota` and `core.ports.ConcurrencyLimits` for one user. `user`: their id."""

    def __init__(self, kept: Quotas, user: str) -> None:
        self._kept = kept
        self._user = user
        self._settled = asyncio.Event()
        self._taken: dict[CountedKind, Callable[[], int]] = {}
        self._written: dict[CountedKind, tuple[int, float]] = {}
        """What was written for other hosts, and when."""
        kept.open[user] = self

    async def reserve(self, most: Spending) -> _Reserved:
        while True:
            self._settled.clear()
            asked = asyncio.ensure_future(asyncio.to_thread(self._kept.reserve, self._user, most))
            try:
                made = await asyncio.shield(asked)
            except asyncio.CancelledError:
                asked.add_done_callback(self._unwanted)
                raise
            if made is not None:
                return _Reserved(self, made)
            await asyncio.wait({asyncio.ensure_future(self._settled.wait())}, timeout=_PATIENCE)

    async def settle(self, reservation: str, used: Spending) -> None:
        """Settle a call that is over."""
        await asyncio.to_thread(self._kept.settle, reservation, self._user, used)
        self._settled.set()

    async def sessions(self, *, begun: bool = False) -> AtOnce | None:
        """How many of their sessions may be working at once."""
        return await self._at_once("sessions", more=0 if begun else 1)

    async def containers(self) -> AtOnce | None:
        """How many module containers may run for them at once."""
        return await self._at_once("containers", more=1)

    def count(self, kind: CountedKind, taken: Callable[[], int]) -> None:
        """See `core.ports.ConcurrencyLimits`."""
        self._taken[kind] = taken

    def taken(self, kind: CountedKind) -> int:
        """How many run for them now."""
        counted = self._taken.get(kind)
        return counted() if counted is not None else 0

    async def _at_once(self, kind: CountedKind, *, more: int) -> AtOnce | None:
        kept = self._kept
        for left in reversed(range(_TRIES)):
            # One caller at a time, until it has taken what it asked for, so that the written count is never too low.
            async with kept.taking:
                bounds = await asyncio.to_thread(kept.bounds_at_once, self._user)
                bound, taken = self._least(kind, bounds), self.taken(kind)
                if bound is None or not kept.among_hosts:
                    return bound
                if taken + more > bound.most or (not more and taken <= self._written.get(kind, (0, 0.0))[0]):
                    return bound  # too much because of what runs here alone, or known already
                here = {user: one.taken(kind) for user, one in kept.open.items()}
                refused = await asyncio.to_thread(kept.take, kind, here, self._user, more)
                self._written[kind] = taken + (more if refused is None else 0), time.monotonic()
                if refused is None or not left:
                    return refused or self._least(kind, bounds)
            await asyncio.sleep(_PATIENCE)
        raise AssertionError("the last try gives an answer")

    async def recount(self) -> None:
        """Report to other hosts how many run now."""
        async with self._kept.taking:
            counts = dict[tuple[str, CountedKind], int]()
            for kind, (count, at) in self._written.items():
                taken, now = self.taken(kind), time.monotonic()
                if taken != count or (taken and now - at > _COUNTED / 4):
                    counts[self._user, kind] = taken
            if counts:
                await asyncio.to_thread(self._kept.recount, counts)
                now = time.monotonic()
                self._written |= {kind: (count, now) for (_, kind), count in counts.items()}

    def _least(self, kind: CountedKind, bounds: Sequence[SharedBound]) -> AtOnce | None:
        """The limit that leaves least. Reads what others have, and awaits nothing afterwards."""
        found: list[AtOnce] = []
        for one in bounds:
            most = one.quota.sessions if kind == "sessions" else one.quota.containers
            if most is not None:
                others = [self._kept.open[user] for user in one.others if user in self._kept.open]
                left = max(0, most - sum(other.taken(kind) for other in others))
                found.append(AtOnce(left, one.group, most if one.group else 0))
        return min(found, key=lambda one: one.most, default=None)

    def _unwanted(self, asked: asyncio.Future[str | None]) -> None:
        """Release the reservation of a caller that is gone, in the next free thread."""
        if not asked.cancelled() and asked.exception() is None and (made := asked.result()) is not None:
            asyncio.get_running_loop().run_in_executor(None, self._kept.settle, made, self._user, Spending())


@dataclass(frozen=True, slots=True)
class _Reserved:
    quota: UserQuota
    reservation: str

    async def settle(self, used: Spending) -> None:
        await self.quota.settle(self.reservation, used)


def _quotas(connection: Connection, which: ColumnElement[bool]) -> dict[tuple[QuotaKind, str], AccountQuota]:
    rows = connection.execute(select(quotas).where(which).order_by(quotas.c.kind, quotas.c.subject))
    return {
        (row.kind, row.subject): AccountQuota(row.tokens, row.money, row.sessions, row.containers)
        for row in rows
    }


def _members(connection: Connection, group: str) -> frozenset[str]:
    query = select(memberships.c.user_id).where(memberships.c.group_name == group)
    return frozenset(connection.execute(query).scalars())


def _accounts(connection: Connection, user: str) -> list[_Account]:
    """The sums that a user's call counts towards: their own first, then those of their groups."""
    groups = connection.execute(
        select(memberships.c.group_name)
        .where(memberships.c.user_id == user)
        .order_by(memberships.c.group_name)
    ).scalars()
    subjects: list[tuple[QuotaKind, str]] = [("user", user), *(("group", one) for one in groups)]
    rows = _quotas(connection, tuple_(quotas.c.kind, quotas.c.subject).in_([("each", ""), *subjects]))
    unbounded = AccountQuota()
    return [
        _Account(
            kind,
            name,
            rows.get((kind, name), rows.get(("each", ""), unbounded) if kind == "user" else unbounded),
        )
        for kind, name in subjects
    ]


def _sums(connection: Connection, account: _Account, month: str) -> tuple[Spending, Spending]:
    """What was used, and what is held for running calls."""
    counted = connection.execute(
        select(usage.c.tokens, usage.c.money).where(
            usage.c.kind == account.kind, usage.c.subject == account.subject, usage.c.month == month
        )
    ).one_or_none()
    used = Spending() if counted is None else Spending(counted.tokens, counted.money)
    held = connection.execute(
        select(func.sum(reservations.c.tokens), func.sum(reservations.c.money)).where(
            reservations.c.kind == account.kind,
            reservations.c.subject == account.subject,
            reservations.c.month == month,
        )
    ).one()
    return used, Spending(int(held[0] or 0), float(held[1] or 0.0))


def _fits(quota: AccountQuota, taken: Spending, most: Spending) -> bool:
    whole = taken + most
    return (quota.tokens is None or whole.tokens <= quota.tokens) and (
        quota.money is None or whole.money <= quota.money
    )


def _count(connection: Connection, kind: str, subject: str, month: str, used: Spending) -> None:
    mine = and_(usage.c.kind == kind, usage.c.subject == subject, usage.c.month == month)
    added = connection.execute(
        update(usage)
        .where(mine)
        .values(
            tokens=usage.c.tokens + used.tokens, money=usage.c.money + used.money, calls=usage.c.calls + 1
        )
    )
    if not added.rowcount:
        values = {"kind": kind, "subject": subject, "month": month}
        connection.execute(insert(usage).values(**values, tokens=used.tokens, money=used.money, calls=1))
