"""The placement of sessions: several hosts in one process, with a store in memory and no network between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from iact.cluster.host import HostTiming, OpenSession, SessionHost
from iact.cluster.leases import HostLease, OwnLease, incarnation_of, open_at
from iact.cluster.placement import HostUnavailable, Moved, NoHost, StaticPlacement, chosen
from iact.cluster.search import HostSearch
from iact.core.errors import IactError, StoreUnavailable, Superseded, UsageError
from iact.core.ports import JSON
from iact.core.stored.index import SearchHit, TextHits
from tests.core.session.test_control import until
from tests.objects import Objects


@dataclass
class FakeSession:
    """A session that is open. `busy`: what is under way, until it is set."""

    epoch: int
    failure: IactError | None = None
    busy: asyncio.Event | None = None
    needed: bool = False

    async def rest(self, seconds: float) -> bool:
        if self.busy is not None:
            await self.busy.wait()
        return True


@dataclass
class Machine:
    """A host, with what it would have around it. `away`: who watched is told so."""

    world: World
    lease: OwnLease
    opened: dict[str, FakeSession] = field(default_factory=dict)
    away: list[str | None] = field(default_factory=list)
    frozen: bool = False
    unavailable: str = ""
    watched: set[str] = field(default_factory=set)
    found: dict[str, TextHits] = field(default_factory=dict)

    def __post_init__(self) -> None:
        placement = self.world.placement()
        self.host = SessionHost(
            self, self, self.world.store, self.lease, placement, self.world,
            timing=HostTiming(wall=self.world.wall, now=self.world.wall, idle=60.0),
        )  # fmt: skip
        self.search = HostSearch(placement, self.world, self.lease.incarnation)
        self.placement = placement

    async def open(self, session_id: str | None = None) -> FakeSession:
        assert session_id is not None
        if session_id == "broken":
            raise UsageError("The journal is damaged.")
        if session_id == "halfway":
            self.lease.claimed(session_id, 1)
            raise UsageError("It can't be read.")
        if session_id not in self.opened:
            epoch = self.world.epochs[session_id] = self.world.epochs.get(session_id, 0) + 1
            self.lease.claimed(session_id, epoch)
            for other in self.world.machines:
                if session_id in other.opened:
                    other.opened[session_id].failure = Superseded(session_id, epoch)
            self.opened[session_id] = FakeSession(epoch)
        return self.opened[session_id]

    async def close(self, session_id: str) -> None:
        del self.opened[session_id]

    async def close_unless(self, session_id: str, needed: Callable[[OpenSession], bool]) -> None:
        if not needed(self.opened[session_id]):
            await self.close(session_id)

    @asynccontextmanager
    async def texts_of(self, user: str) -> AsyncIterator[Callable[[str, int], TextHits]]:
        yield lambda query, limit: self.found[query]

    def watches(self, session: str) -> bool:
        return session in self.watched

    async def send_away(self, session: str | None) -> None:
        self.away.append(session)


class World:
    """Hosts, one store and one clock."""

    def __init__(self) -> None:
        self.store = Objects()
        self.time = 1000.0
        self.epochs: dict[str, int] = {}
        self.machines: list[Machine] = []

    def wall(self) -> float:
        return self.time

    def placement(self, patience: float = 30.0) -> StaticPlacement:
        return StaticPlacement(self.store, self, now=self.wall, wall=self.wall, patience=patience)

    async def machine(self, name: str, before: str = "") -> Machine:
        lease = OwnLease(self.store, incarnation_of(name))
        lease.serves(page=f"{name}:1", control=f"{name}:2")
        made = Machine(self, lease)
        self.machines.append(made)
        await made.host.start(before)
        for one in self.machines:
            await one.placement.refresh()
        return made

    async def ask(self, lease: HostLease, message: Mapping[str, JSON]) -> Mapping[str, JSON]:
        machine = next(one for one in self.machines if one.lease.incarnation == lease.incarnation)
        self.time += 0.01
        if machine.frozen:
            self.time += 3.0
            raise HostUnavailable("It does not answer.")
        return await machine.host.act(message)

    async def rounds(self, count: int) -> None:
        """Time goes by, and hosts do what they do then."""
        for _ in range(count):
            self.time += 2.0
            for one in self.machines:
                if not one.frozen:
                    await one.host.look()

    def at(self, session: str) -> list[str]:
        """Who has a session open and may write it."""
        return [
            one.lease.host
            for one in self.machines
            if session in one.opened and one.opened[session].failure is None
        ]


def run(scene: Callable[[World], Coroutine[None, None, None]]) -> None:
    asyncio.run(scene(World()))


def test_a_host_that_is_refused_a_session_takes_back_what_it_noted() -> None:
    async def main() -> None:
        world = World()
        for one in [await world.machine("a"), await world.machine("b")]:
            # The second one is not kept from trying by the first one's note.
            with pytest.raises(UsageError, match="It can't be read"):
                await one.host.open("halfway")
            assert not list(world.store.names("open/"))

    asyncio.run(main())


def test_a_session_is_placed_once_and_found_again_by_whoever_asks() -> None:
    async def scene(world: World) -> None:
        for name in "abc":
            await world.machine(name)
        first, second = world.placement(), world.placement()
        assert await first.locate("s") is None
        at = await first.place("s")
        assert world.at("s") == [at.lease.host]
        assert await second.place("s") == at
        assert await second.locate("s") == at
        assert world.epochs["s"] == 1
        # New ones begin where least is, and all of many are spread.
        await world.rounds(1)
        await first.refresh()
        assert (await first.place(None)).lease.host != at.lease.host
        for number in range(60):
            await first.place(f"s{number}")
        assert all(len(one.opened) >= 10 for one in world.machines)

    run(scene)


def test_what_a_dead_host_had_is_shared_out_by_the_others_and_nothing_is_left_of_it() -> None:
    async def scene(world: World) -> None:
        a, b, c = [await world.machine(name) for name in "abc"]
        for number in range(12):
            await a.host.open(f"s{number}")
        await a.open("broken-not")
        world.store.create(f"open/{a.lease.incarnation}/broken", b"")
        world.store.create("leases/broken/0000000001", a.lease.incarnation.encode())
        a.frozen = True
        await world.rounds(2)
        assert len(a.opened) == 13
        assert not b.opened, "it is not taken for dead too early"
        await world.rounds(3)
        assert len(b.opened) + len(c.opened) == 13
        assert b.opened
        assert c.opened
        assert [one for one in world.store.content if a.lease.incarnation in one] == [
            "leases/broken/0000000001"
        ] or open_at(world.store, a.lease.incarnation) == []
        # When it thaws it has lost them all, and sends those away that watch them.
        a.frozen = False
        await world.rounds(1)
        assert a.opened == {}
        assert sorted(map(str, a.away)) == sorted([*(f"s{n}" for n in range(12)), "broken-not"])
        assert [one.host for one in await world.placement().hosts()] == ["a", "b", "c"]
        with pytest.raises(Moved):
            await a.host.give("s1")

    run(scene)


def test_a_host_that_is_started_again_has_its_sessions_back_at_once_but_those_that_went_elsewhere() -> None:
    async def scene(world: World) -> None:
        a, b = [await world.machine(name) for name in "ab"]
        for session in ("mine", "gone"):
            await a.host.open(session)
        await b.open("gone")
        a.frozen = True  # for good
        again = await world.machine("a", a.lease.incarnation)
        assert set(again.opened) == {"mine"}
        assert world.epochs == {"mine": 2, "gone": 2}
        assert not [one for one in world.store.content if a.lease.incarnation in one]
        assert (await world.placement().place("gone")).lease.host == "b"

    run(scene)


def test_a_session_is_moved_when_what_it_does_has_ended_and_whoever_asks_meanwhile_is_led_after_it() -> None:
    async def scene(world: World) -> None:
        a, b = [await world.machine(name) for name in "ab"]
        await a.host.open("s")
        busy = a.opened["s"].busy = asyncio.Event()
        placement = world.placement()
        moving = asyncio.ensure_future(placement.place("s", host="b"))
        await until(lambda: "s" in a.host.leaving)
        meanwhile = asyncio.ensure_future(world.placement().place("s"))
        await asyncio.sleep(0)
        assert world.at("s") == ["a"]
        busy.set()
        at = await moving
        assert (at.lease.host, at.epoch) == ("b", 2)
        assert (await meanwhile).lease.host == "b"
        assert world.at("s") == ["b"]
        assert a.away == ["s"]
        assert (await placement.place("s", host="b")).epoch == 2, "it is there already"
        with pytest.raises(UsageError, match="No host called nowhere"):
            await placement.place("s", host="nowhere")
        assert b.away == []

    run(scene)


def test_a_host_that_is_drained_passes_all_on_and_takes_no_more() -> None:
    async def scene(world: World) -> None:
        a, b, c = [await world.machine(name) for name in "abc"]
        for number in range(20):
            await a.host.open(f"s{number}")
        placement = world.placement()
        assert await placement.drain("a") == 20
        assert a.opened == {}
        assert None in a.away
        assert len(b.opened) + len(c.opened) == 20
        assert min(len(b.opened), len(c.opened)) > 2
        assert all(len(world.at(f"s{number}")) == 1 for number in range(20))
        assert (await placement.place("new")).lease.host in "bc"
        with pytest.raises(Moved):
            await a.host.open("other")
        await a.host.leave()
        assert [one.host for one in await placement.hosts()] == ["b", "c"]
        # The last ones have nobody to pass them on to: they are closed, and wait.
        await placement.drain("b")
        await placement.drain("c")
        assert b.opened == c.opened == {}
        with pytest.raises(NoHost, match="No host is running that takes sessions"):
            await world.placement(patience=-1.0).place(None)
        d = await world.machine("d")
        assert (await world.placement().place("s1")).lease == chosen("s1", await placement.hosts())
        assert set(d.opened) == {"s1"}

    run(scene)


def test_a_host_that_looks_around_while_it_is_drained_gives_each_session_away_once() -> None:
    async def scene(world: World) -> None:
        a, b = [await world.machine(name) for name in "ab"]
        for number in range(20):
            await a.host.open(f"s{number}")
        async with asyncio.TaskGroup() as group:
            group.create_task(a.host.drain())
            group.create_task(a.host.look())
            group.create_task(a.host.drain())
        assert a.opened == {}
        assert a.host.leaving == {}
        assert len(b.opened) == 20
        assert sorted(one for one in a.away if one is not None) == sorted(
            f"s{number}" for number in range(20)
        )
        assert set(world.epochs.values()) == {2}

    run(scene)


def test_while_the_store_is_away_nobody_is_taken_for_dead() -> None:
    async def scene(world: World) -> None:
        a, b = [await world.machine(name) for name in "ab"]
        await a.host.open("s")

        def away(what: str, name: str) -> None:
            raise StoreUnavailable("The store gave no answer.")

        world.store.before = away
        await world.rounds(20)
        world.store.before = lambda what, name: None
        await b.host.look()
        await world.rounds(3)
        assert world.at("s") == ["a"]
        assert world.epochs["s"] == 1

    run(scene)


def test_a_session_at_rest_that_nobody_watches_is_closed_and_opened_when_somebody_asks() -> None:
    async def scene(world: World) -> None:
        a = await world.machine("a")
        for one in ("idle", "watched", "busy"):
            await world.placement().place(one)
        a.watched.add("watched")
        a.opened["busy"].needed = True
        await world.rounds(29)
        assert a.opened.keys() == {"idle", "watched", "busy"}, "not before its time"
        await world.rounds(3)
        assert a.opened.keys() == {"watched", "busy"}
        await world.rounds(1)
        assert sorted(open_at(world.store, a.lease.incarnation)) == ["busy", "watched"]
        # Time begins anew with the end of what kept it.
        a.opened["busy"].needed = False
        await world.rounds(29)
        assert "busy" in a.opened
        assert (await world.placement().place("idle")).epoch == 2
        await world.rounds(1)
        assert sorted(open_at(world.store, a.lease.incarnation)) == ["busy", "idle", "watched"]

    run(scene)


def test_a_note_that_was_taken_back_while_its_session_was_opened_again_is_written_again() -> None:
    async def scene(world: World) -> None:
        a = await world.machine("a")
        await world.placement().place("s")
        a.lease.closed("s")
        a.host._noted.discard("s")
        await world.rounds(1)
        assert open_at(world.store, a.lease.incarnation) == ["s"]

    run(scene)


def test_a_search_asks_all_hosts_and_one_that_does_not_answer_is_still_to_be_read() -> None:
    async def scene(world: World) -> None:
        a, b, c = [await world.machine(name) for name in "abc"]
        hit = SearchHit("s", 7, "/", "say", "a ", "word", " here", 2)
        b.found["word"] = TextHits((hit,), 3)
        c.found["word"] = TextHits()
        assert await a.search.search("word", 10) == [TextHits((hit,), 3), TextHits()]
        c.frozen = True
        assert await a.search.search("word", 10) == [TextHits((hit,), 3), TextHits(behind=1)]

    run(scene)


@pytest.mark.parametrize("lost", range(12))
def test_whichever_answer_of_the_store_is_lost_one_host_has_the_session_in_the_end(lost: int) -> None:
    """What was created is there, but who created it is told nothing; then the host that has the session dies."""

    async def scene(world: World) -> None:
        machines = {name: await world.machine(name) for name in "ab"}
        created = 0

        def answer_lost(what: str, name: str) -> bool:
            nonlocal created
            created += what == "create"
            return what == "create" and created == lost + 1

        world.store.lost = answer_lost
        first = (await world.placement().place("s")).lease.host
        await world.rounds(2)
        assert world.at("s") == [first]
        machines[first].frozen = True
        await world.rounds(10)  # who had no answer does not know who was silent meanwhile, and looks longer
        other = machines["b" if first == "a" else "a"]
        assert world.at("s") == [other.lease.host]
        assert created > lost, "the answer was lost on the way"
        assert (await world.placement().place("s")).lease.host == other.lease.host
        await world.rounds(2)
        # Nothing is left twice, and nothing of the dead host.
        assert open_at(world.store, other.lease.incarnation) == ["s"]
        assert [one.split("/")[1] for one in world.store.names("hosts/")] == [other.lease.incarnation]
        assert len([*world.store.names("leases/s/")]) == 1

    run(scene)
