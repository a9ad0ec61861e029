"""Quotas of users and groups: a fan-out stops at a quota without an extra call, on either database, concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.accounts.audit import AuditLog
from iact.accounts.database import Database, open_database
from iact.accounts.people import Actor
from iact.accounts.quotas import AccountQuota, CountedKind, Quotas, UserQuota
from iact.accounts.users import Users
from iact.core.errors import QuotaExceeded
from iact.core.ports import AtOnce, Price, Spending
from iact.core.records.dialogue import Reply
from iact.core.stored.replay import replay
from tests.core.session.fakes import Asked, ScriptedModel, replies, runtime

ADMIN = Actor("ada")
FAN = "\n".join(f"```CALL_ASYNC w{number}\nCount.\n```" for number in range(50)) + "\n```WAIT\n```"
DECEMBER = datetime(2026, 12, 31, 23, 59, tzinfo=UTC).timestamp()


class Kept:
    """Quotas over a database, at a time that a test sets."""

    def __init__(self, database: Database, now: float = DECEMBER) -> None:
        self.now = now
        audit = AuditLog(database, self.clock)
        self.users = Users(database, audit, self.clock)
        self.open: Callable[[str], Quotas] = lambda host: Quotas(database, audit, self.clock, host)
        self.quotas = self.open("")

    def clock(self) -> float:
        return self.now

    def user(self, name: str, *groups: str) -> str:
        """A user of a name that no other test's database has."""
        return self.users.add(f"{name} {id(self)}", by=ADMIN, groups=groups).id


@pytest.fixture
def kept(database: Database) -> Kept:
    return Kept(database)


def test_fifty_who_ask_at_once_take_no_more_than_there_is(kept: Kept) -> None:
    user = kept.user("eve")
    kept.quotas.set("user", user, AccountQuota(tokens=1000), by=ADMIN)
    hosts = [kept.open(f"host {number}") for number in range(5)]

    def ask(number: int) -> str | None:
        return hosts[number % 5].reserve(user, Spending(90))

    with ThreadPoolExecutor(16) as pool:
        made = [one for one in pool.map(ask, range(50)) if one is not None]
    assert len(made) == 11, "990 of 1,000 tokens are held"
    for one in made[:10]:
        kept.quotas.settle(one, user, Spending(85))
    assert kept.quotas.reserve(user, Spending(0)) is not None
    with pytest.raises(QuotaExceeded, match=r"1,000 tokens a month, of which 850 is used.*2027-01-01"):
        kept.quotas.reserve(user, Spending(151))
    (used,) = kept.quotas.used(user=user)
    assert (used.month, used.tokens, used.calls) == ("2026-12", 850, 10)

    # What a process held that is gone is given back when its host begins again; another's is not.
    assert kept.quotas.reserve(user, Spending(150)) is None
    hosts[0].release()
    for host in hosts[1:]:
        host.release()
    kept.quotas.release()
    assert kept.quotas.reserve(user, Spending(150)) is not None


def test_a_group_shares_its_quota_and_everybody_has_one_by_default(kept: Kept) -> None:
    group = f"staff {id(kept)}"
    eve, bob = kept.user("eve", group), kept.user("bob", group)
    kept.quotas.set("group", group, AccountQuota(money=1.0), by=ADMIN)
    kept.quotas.set("each", "", AccountQuota(tokens=500), by=ADMIN)
    kept.quotas.set("user", bob, AccountQuota(tokens=9000, containers=2), by=ADMIN)
    assert kept.quotas.bound("user", bob).containers == 2
    for user in (eve, bob):
        held = kept.quotas.reserve(user, Spending(100, 0.4))
        assert held is not None
        kept.quotas.settle(held, user, Spending(100, 0.4))
    with pytest.raises(
        QuotaExceeded, match=rf"quota of the group {group} is 1.00 a month, of which 0.80 is used"
    ):
        kept.quotas.reserve(bob, Spending(100, 0.3))
    with pytest.raises(QuotaExceeded, match="Your quota is 500 tokens"):
        kept.quotas.reserve(eve, Spending(450))
    kept.now += 120  # it is January
    held = kept.quotas.reserve(bob, Spending(100, 0.9))
    assert held is not None
    kept.quotas.set("each", "", AccountQuota(), by=ADMIN)
    kept.quotas.set("group", group, AccountQuota(), by=ADMIN)
    assert ("each", "") not in kept.quotas.all()
    assert kept.quotas.reserve(eve, Spending(10**9, 1e6)) is not None


async def test_who_waits_goes_on_when_there_is_room_and_who_leaves_holds_none(kept: Kept) -> None:
    user = kept.user("eve")
    kept.quotas.set("user", user, AccountQuota(tokens=100), by=ADMIN)
    quota = UserQuota(kept.quotas, user)
    first = await quota.reserve(Spending(80))
    second = asyncio.create_task(quota.reserve(Spending(60)))
    left = asyncio.create_task(quota.reserve(Spending(60)))
    await asyncio.sleep(0)
    left.cancel()
    await first.settle(Spending(30))
    held = await second
    with pytest.raises(asyncio.CancelledError):
        await left
    await held.settle(Spending())
    assert await quota.reserve(Spending(70))
    with pytest.raises(QuotaExceeded):
        await quota.reserve(Spending(71))


async def test_what_goes_on_at_once_is_counted_over_the_members_of_a_group(kept: Kept) -> None:
    group = f"staff {id(kept)}"
    eve, bob, cy = kept.user("eve", group), kept.user("bob", group), kept.user("cy")
    kept.quotas.set("group", group, AccountQuota(sessions=3, containers=5), by=ADMIN)
    kept.quotas.set("each", "", AccountQuota(sessions=2), by=ADMIN)
    hers, his, other = (UserQuota(kept.quotas, one) for one in (eve, bob, cy))
    his.count("sessions", lambda: 2)
    his.count("containers", lambda: 1)
    other.count("sessions", lambda: 2)
    assert await hers.sessions() == AtOnce(1, group, 3), "her own are 2, and Bob left 1 of the group's 3"
    assert await hers.containers() == AtOnce(4, group, 5)
    assert await other.sessions() == AtOnce(2), "who is in no group has their own alone"
    assert await other.containers() is None
    del his
    assert await hers.sessions() == AtOnce(2), "nothing of Bob's is open any more"


async def test_a_group_has_no_more_sessions_at_work_than_it_may(kept: Kept, tmp_path: Path) -> None:
    group = f"staff {id(kept)}"
    kept.quotas.set("group", group, AccountQuota(sessions=1), by=ADMIN)
    hold = asyncio.Event()
    models = [
        ScriptedModel(lambda asked: "It is done.", holds={"/": hold}),
        ScriptedModel(lambda asked: "It is done."),
    ]
    async with AsyncExitStack() as stack:
        eve, bob = [
            await stack.enter_async_context(
                runtime(
                    tmp_path / name,
                    replies({}),
                    model=model,
                    limits=UserQuota(kept.quotas, kept.user(name, group)),
                )
            )
            for name, model in zip(("eve", "bob"), models, strict=True)
        ]
        hers, his = await eve.open(), await bob.open()
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(hers.ask("Work."))
            while not models[0].asked:  # noqa: ASYNC110 - it is asked in a task of the session
                await asyncio.sleep(0)
            refused = await his.ask("Work.")
            assert f"No more than 1 sessions of the group {group} may work at once" in refused.body
            hold.set()
        assert first.result().body == "It is done."
        assert (await his.ask("And now?")).body == "It is done."


async def test_a_fan_out_ends_at_the_quota_without_a_call_too_many(kept: Kept, tmp_path: Path) -> None:
    user = kept.user("eve")
    limit = 60_000
    kept.quotas.set("user", user, AccountQuota(tokens=limit, money=1e6), by=ADMIN)

    def works(asked: Asked) -> str:
        if asked.path != "/":
            return f"Counted. {'word ' * 100}"
        return FAN if asked.turn == 0 else "All is counted."

    model = ScriptedModel(works, price=Price(1.0, 1.0, 1.0))
    async with runtime(tmp_path, replies({}), model=model, quotas=[UserQuota(kept.quotas, user)]) as opened:
        session = await opened.open()
        await session.ask("Count.")
        ended = [
            one
            for one in session.records()
            if isinstance(one.content, Reply) and one.content.bound == "quota"
        ]
        (used,) = kept.quotas.used(user=user)
        assert used.tokens <= limit
        assert used.calls == len(model.asked) < 52
        assert ended
        assert "Your quota is 60,000 tokens a month" in ended[0].body
        assert "2027-01-01" in ended[0].body
        usage = session.view.usage
        assert used.tokens == usage.prompt_tokens + usage.completion_tokens
        assert used.money == pytest.approx(used.tokens / 1e6)
        journal = session.journal
    replay(journal, verify=True)


@pytest.mark.parametrize("kind", ["sessions", "containers"])
async def test_what_goes_on_at_once_is_counted_over_all_hosts(
    tmp_path: Path, postgres: str, kind: CountedKind
) -> None:
    """Fifty who begin at once, on five hosts of two members of a group: not one too many, and none too few."""
    opened = open_database(tmp_path, postgres)
    kept = Kept(opened)
    group = f"staff {id(kept)}"
    users = [kept.user("eve", group), kept.user("bob", group)]
    quota = AccountQuota(sessions=7) if kind == "sessions" else AccountQuota(containers=7)
    kept.quotas.set("group", group, quota, by=ADMIN)
    for user in users:  # in place of what everybody has, which other tests set
        kept.quotas.set("user", user, AccountQuota(sessions=100, containers=100), by=ADMIN)
    hosts = [kept.open(f"{kind} host {number}") for number in range(5)]
    having = {(host, user): UserQuota(host, user) for host in hosts for user in users}
    begun = dict.fromkeys(having, 0)
    for one, limits in having.items():
        limits.count(kind, lambda one=one: begun[one])  # type: ignore[misc]

    async def begin(one: tuple[Quotas, str]) -> AtOnce | None:
        limits = having[one]
        bound = await (limits.sessions() if kind == "sessions" else limits.containers())
        assert bound is not None
        if begun[one] >= bound.most:
            return bound
        begun[one] += 1
        return None

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(begin(one)) for one in list(having) * 5]
    assert sum(begun.values()) == 7
    refused = [bound for one in asked if (bound := one.result()) is not None]
    assert len(refused) == 43
    assert {(one.group, one.shared) for one in refused} == {(group, 7)}
    # What ends on one host makes room on every other, as soon as that is told.
    done = next(one for one, count in begun.items() if count)
    begun[done] -= 1
    await having[done].recount()
    assert await begin((hosts[4], users[0])) is None
    assert sum(begun.values()) == 7
    # One that goes on needs no room, and a host that is gone holds none.
    if kind == "sessions":
        goes_on = next(one for one, count in begun.items() if count)
        bound = await having[goes_on].sessions(begun=True)
        assert bound is not None
        assert begun[goes_on] <= bound.most
    gone = max(hosts, key=lambda host: sum(begun[host, user] for user in users))
    free = sum(begun[gone, user] for user in users)
    other = next(host for host in hosts if host is not gone)
    other.release(f"{kind} host {hosts.index(gone)}")
    for user in users:
        begun[gone, user] = 0
    got = [await begin((other, users[0])) for _ in range(free + 1)]
    assert [one is None for one in got] == [True] * free + [False]
    opened.close()
