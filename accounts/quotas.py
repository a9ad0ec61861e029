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
    """How much of the models was used in a month."""

    kind: QuotaKind
    subject: str
    """A user's id, or the name of a group."""
    month: str
    """`2026-11`, UTC."""
    tokens: int
    money: float
    calls: int


@dataclass(frozen=True, slots=True)
class _Account:
    """One of the sums that a user's call counts towards."""

    kind: QuotaKind
    subject: str
    """A user's id, or the name of a group."""
    quota: AccountQuota
    """How large it may become."""


@dataclass(frozen=True, slots=True)
class SharedBound:
    """How much may run at once, for a user alone or for a group."""

    quota: AccountQuota
    group: str = ""
    others: frozenset[str] = frozenset()
    """The group's other members, by id."""


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
        owner = host or self._host
        with self._database.writing() as connection:
            connection.execute(delete(reservations).where(reservations.c.host == owner))
            connection.execute(delete(at_once).where(at_once.c.host == owner))

    @property
    def among_hosts(self) -> bool:
        """Whether other hosts may share the database."""
        return self._database.dialect == "postgresql"

    def take(self, kind: CountedKind, taken: Mapping[str, int], user: str, more: int) -> AtOnce | None:
        """Announce that `more` will run for a user here, in addition to those that run, if their quotas allow it.

        Returns None if so, otherwise the quota that allows least, with the room that it leaves here. `taken`: how many
        run here, by user.
        """
        own = taken.get(user, 0)
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            elsewhere = self._elsewhere(connection, kind)

            least: AtOnce | None = None
            for account in _accounts(connection, user):
                most = _most(account.quota, kind)
                if most is None:
                    continue

                members = {user} if account.kind == "user" else _members(connection, account.subject)
                others = sum(count for member, count in elsewhere if member in members)
                others += sum(taken.get(member, 0) for member in members - {user})
                left = max(0, most - others)
                allows_least = left < own + more if least is None else left < least.most
                if allows_least:
                    group = account.subject if account.kind == "group" else ""
                    least = AtOnce(left, group, most)

            announced = own + more if least is None else own
            self._write(connection, user, kind, announced)
            return least

    def _elsewhere(self, connection: Connection, kind: CountedKind) -> list[tuple[str, int]]:
        """How many run on other hosts, as far as these still count: of each host and user."""
        others = and_(at_once.c.kind == kind, at_once.c.ends > self._clock(), at_once.c.host != self._host)
        rows = connection.execute(select(at_once).where(others)).all()
        return [(row.user_id, row.taken) for row in rows]

    def recount(self, counts: Mapping[tuple[str, CountedKind], int]) -> None:
        """Announce how many run here, by user and kind, where the number has changed or was written long ago."""
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            for (user, kind), count in counts.items():
                self._write(connection, user, kind, count)

    def _write(self, connection: Connection, user: str, kind: CountedKind, count: int) -> None:
        """Write how many run here for a user, in place of what was written."""
        mine = and_(at_once.c.host == self._host, at_once.c.user_id == user, at_once.c.kind == kind)
        connection.execute(delete(at_once).where(mine))
        if count <= 0:
            return

        row = {"host": self._host, "user_id": user, "kind": kind, "taken": count}
        connection.execute(insert(at_once).values(**row, ends=self._clock() + _COUNTED))

    async def tend(self) -> None:
        """Report to other hosts what has ended here, until cancelled. Returns at once if there are no other hosts."""
        while self.among_hosts:
            await asyncio.sleep(_RECOUNT)
            for quota in list(self.open.values()):
                try:
                    await quota.recount()
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
        keys: list[tuple[QuotaKind, str]] = [(kind, subject)]
        if kind == "user":
            keys.append(("each", ""))
        with self._database.reading() as connection:
            stored = _quotas(connection, tuple_(quotas.c.kind, quotas.c.subject).in_(keys))

        # Their own is used in place of everybody's, not in addition to it.
        return next((stored[key] for key in keys if key in stored), AccountQuota())

    def bounds_at_once(self, user: str) -> Sequence[SharedBound]:
        """The limits on what runs at once for a user: their own first, then those that their groups share."""
        bounds: list[SharedBound] = []
        with self._database.reading() as connection:
            for account in _accounts(connection, user):
                quota = account.quota
                if quota.sessions is None and quota.containers is None:
                    continue
                if account.kind == "user":
                    bounds.append(SharedBound(quota))
                else:
                    others = _members(connection, account.subject) - {user}
                    bounds.append(SharedBound(quota, account.subject, others))
        return bounds

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
        now = self._clock()
        month = self.month()
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            connection.execute(delete(reservations).where(reservations.c.ends <= now))

            # All are checked, even if one is busy: what exceeds another is refused at once.
            accounts = _accounts(connection, user)
            is_busy = False
            for account in accounts:
                used, reserved = _sums(connection, account, month)
                self._check(account, used, most)
                if not _fits(account.quota, used + reserved, most):
                    is_busy = True
            if is_busy:
                return None

            reservation = mint_id()
            for account in accounts:
                row = {
                    "id": reservation,
                    "kind": account.kind,
                    "subject": account.subject,
                    "month": month,
                    "tokens": most.tokens,
                    "money": most.money,
                    "host": self._host,
                    "ends": now + _LONGEST,
                }
                connection.execute(insert(reservations).values(**row))
            return reservation

    def settle(self, reservation: str, user: str, used: Spending) -> None:
        """Settle a call that is over. `used`: nothing, if it was not made."""
        is_this = reservations.c.id == reservation
        with self._database.writing() as connection:
            self._database.alone(connection, _RESERVING)
            rows = connection.execute(select(reservations).where(is_this)).all()
            connection.execute(delete(reservations).where(is_this))
            if not used.tokens and not used.money:
                return

            for row in rows:
                _count(connection, row.kind, row.subject, row.month, used)
            if not rows:
                # A reservation that expired in the meantime is still charged, to the current month.
                for account in _accounts(connection, user):
                    _count(connection, account.kind, account.subject, self.month(), used)

    def _check(self, account: _Account, used: Spending, most: Spending) -> None:
        """Refuse what can't fit even if no call is running, and name the first limit that it exceeds."""
        quota = account.quota
        if quota.tokens is not None and used.tokens + most.tokens > quota.tokens:
            limit = f"{quota.tokens:,} tokens"
            sentence = self._refusal(account, limit, f"{used.tokens:,}", f"{most.tokens:,}")
            raise QuotaExceeded(sentence, bound="quota")

        if quota.money is not None and used.money + most.money > quota.money:
            limit = Spending(money=quota.money).price
            raise QuotaExceeded(self._refusal(account, limit, used.price, most.price), bound="quota")

    def _refusal(self, account: _Account, limit: str, used: str, most: str) -> str:
        renewed = f"{self._next_month():%Y-%m-%d}"
        if account.kind == "group":
            return (
                f"The quota of the group {account.subject} is {limit} a month, of which {used} is "
                f"used. The next model call could take {most}, so it was not made. The quota is "
                f"renewed at {renewed} (UTC). For more before that, ask an administrator."
            )
        return (
            f"Your quota is {limit} a month, of which {used} is used. The next model call could take "
            f"{most}, so it was not made. The quota is renewed at {renewed} (UTC). For more "
            "before that, ask an administrator."
        )

    def _next_month(self) -> datetime:
        """When the next month begins."""
        first = self._now().replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        if first.month == _DECEMBER:
            return first.replace(year=first.year + 1, month=1)
        return first.replace(month=first.month + 1)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


class UserQuota:
    """Implements `core.ports.ModelQuota` and `core.ports.ConcurrencyLimits` for one user. `user`: their id."""

    def __init__(self, quotas: Quotas, user: str) -> None:
        self._quotas = quotas
        self._user = user
        self._settled = asyncio.Event()
        """Set when a call here is settled, so that there may be room."""
        self._counters: dict[CountedKind, Callable[[], int]] = {}
        """Say how many run for them now."""
        self._written: dict[CountedKind, tuple[int, float]] = {}
        """What was written for other hosts, and when."""
        quotas.open[user] = self

    async def reserve(self, most: Spending) -> _Reserved:
        while True:
            self._settled.clear()
            reserving = asyncio.ensure_future(asyncio.to_thread(self._quotas.reserve, self._user, most))
            try:
                reservation = await asyncio.shield(reserving)
            except asyncio.CancelledError:
                # The thread goes on, and may reserve something that nobody would settle.
                reserving.add_done_callback(self._unwanted)
                raise
            if reservation is not None:
                return _Reserved(self, reservation)

            # Until a call here is settled. Nobody tells of those on other hosts, so look again from time to time.
            await asyncio.wait({asyncio.ensure_future(self._settled.wait())}, timeout=_PATIENCE)

    async def settle(self, reservation: str, used: Spending) -> None:
        """Settle a call that is over."""
        await asyncio.to_thread(self._quotas.settle, reservation, self._user, used)
        self._settled.set()

    async def sessions(self, *, begun: bool = False) -> AtOnce | None:
        """How many of their sessions may be working at once."""
        more = 0 if begun else 1
        return await self._at_once("sessions", more=more)

    async def containers(self) -> AtOnce | None:
        """How many module containers may run for them at once."""
        return await self._at_once("containers", more=1)

    def count(self, kind: CountedKind, taken: Callable[[], int]) -> None:
        """See `core.ports.ConcurrencyLimits`."""
        self._counters[kind] = taken

    def taken(self, kind: CountedKind) -> int:
        """How many run for them now."""
        counter = self._counters.get(kind)
        return counter() if counter is not None else 0

    async def _at_once(self, kind: CountedKind, *, more: int) -> AtOnce | None:
        """The limit that allows least; None: there is none. `more`: how many are to run in addition."""
        for tries_left in reversed(range(_TRIES)):
            # One caller at a time, until it has taken what it asked for, so that the written count is never too low.
            async with self._quotas.taking:
                bounds = await asyncio.to_thread(self._quotas.bounds_at_once, self._user)
                bound = self._least(kind, bounds)
                taken = self.taken(kind)
                if bound is None or not self._quotas.among_hosts:
                    return bound

                is_refused_here = taken + more > bound.most
                if is_refused_here or (not more and self._is_known(kind, taken)):
                    return bound

                here = {user: quota.taken(kind) for user, quota in self._quotas.open.items()}
                refused = await asyncio.to_thread(self._quotas.take, kind, here, self._user, more)
                written = taken if refused is not None else taken + more
                self._written[kind] = written, time.monotonic()

                if refused is None:
                    return self._least(kind, bounds)
                if tries_left == 0:
                    return refused
            await asyncio.sleep(_PATIENCE)
        raise AssertionError("the last try gives an answer")

    def _is_known(self, kind: CountedKind, taken: int) -> bool:
        """Whether other hosts already count at least so many."""
        written, _ = self._written.get(kind, (0, 0.0))
        return taken <= written

    async def recount(self) -> None:
        """Report to other hosts how many run now."""
        async with self._quotas.taking:
            counts: dict[tuple[str, CountedKind], int] = {}
            for kind, (written, at) in self._written.items():
                taken = self.taken(kind)
                is_fading = taken > 0 and time.monotonic() - at > _COUNTED / 4
                if taken != written or is_fading:
                    counts[self._user, kind] = taken
            if not counts:
                return

            await asyncio.to_thread(self._quotas.recount, counts)
            now = time.monotonic()
            self._written |= {kind: (count, now) for (_, kind), count in counts.items()}

    def _least(self, kind: CountedKind, bounds: Sequence[SharedBound]) -> AtOnce | None:
        """The limit that leaves least. Reads what others have, and awaits nothing afterwards."""
        limits: list[AtOnce] = []
        for bound in bounds:
            most = _most(bound.quota, kind)
            if most is None:
                continue

            others = [self._quotas.open[user] for user in bound.others if user in self._quotas.open]
            left = max(0, most - sum(other.taken(kind) for other in others))
            shared = most if bound.group else 0
            limits.append(AtOnce(left, bound.group, shared))
        return min(limits, key=lambda limit: limit.most, default=None)

    def _unwanted(self, reserving: asyncio.Future[str | None]) -> None:
        """Release the reservation of a caller that is gone, in the next free thread."""
        if reserving.cancelled() or reserving.exception() is not None:
            return
        reservation = reserving.result()
        if reservation is not None:
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, self._quotas.settle, reservation, self._user, Spending())


@dataclass(frozen=True, slots=True)
class _Reserved:
    """Implements `core.ports.Reservation`."""

    quota: UserQuota
    reservation: str

    async def settle(self, used: Spending) -> None:
        await self.quota.settle(self.reservation, used)


def _most(quota: AccountQuota, kind: CountedKind) -> int | None:
    """How many may run at once; None: no limit."""
    return quota.sessions if kind == "sessions" else quota.containers


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
    query = select(memberships.c.group_name).where(memberships.c.user_id == user)
    groups = connection.execute(query.order_by(memberships.c.group_name)).scalars()
    subjects: list[tuple[QuotaKind, str]] = [("user", user)]
    subjects += [("group", group) for group in groups]

    keys: list[tuple[QuotaKind, str]] = [("each", ""), *subjects]
    stored = _quotas(connection, tuple_(quotas.c.kind, quotas.c.subject).in_(keys))
    unbounded = AccountQuota()
    accounts: list[_Account] = []
    for kind, subject in subjects:
        default = stored.get(("each", ""), unbounded) if kind == "user" else unbounded
        accounts.append(_Account(kind, subject, stored.get((kind, subject), default)))
    return accounts


def _sums(connection: Connection, account: _Account, month: str) -> tuple[Spending, Spending]:
    """What was used, and what is reserved for running calls."""
    of_usage = and_(usage.c.kind == account.kind, usage.c.subject == account.subject, usage.c.month == month)
    used = connection.execute(select(usage.c.tokens, usage.c.money).where(of_usage)).one_or_none()

    of_reservations = and_(
        reservations.c.kind == account.kind,
        reservations.c.subject == account.subject,
        reservations.c.month == month,
    )
    sums = select(func.sum(reservations.c.tokens), func.sum(reservations.c.money)).where(of_reservations)
    tokens, money = connection.execute(sums).one()

    # The sum of no rows is NULL.
    reserved = Spending(int(tokens or 0), float(money or 0.0))
    return Spending() if used is None else Spending(used.tokens, used.money), reserved


def _fits(quota: AccountQuota, taken: Spending, most: Spending) -> bool:
    """Whether a call that uses `most` fits beside what is taken."""
    whole = taken + most
    if quota.tokens is not None and whole.tokens > quota.tokens:
        return False
    return quota.money is None or whole.money <= quota.money


def _count(connection: Connection, kind: str, subject: str, month: str, used: Spending) -> None:
    """Add a call to a sum."""
    is_this = and_(usage.c.kind == kind, usage.c.subject == subject, usage.c.month == month)
    grown = {
        "tokens": usage.c.tokens + used.tokens,
        "money": usage.c.money + used.money,
        "calls": usage.c.calls + 1,
    }
    updated = connection.execute(update(usage).where(is_this).values(**grown))
    if updated.rowcount:
        return

    row = {"kind": kind, "subject": subject, "month": month, "tokens": used.tokens, "money": used.money}
    connection.execute(insert(usage).values(**row, calls=1))
