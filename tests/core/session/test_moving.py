"""Sessions that several hosts can reach: one goes on where the other is no more, and never both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from iact.core.errors import Superseded
from iact.core.journal.file import FILE, read_journal
from iact.core.journal.stores import SharedJournals
from iact.core.session.runtime import Runtime
from iact.core.session.session import Session
from iact.core.stored.replay import replay
from tests.core.session.fakes import TickingClock, World, replies, runtime
from tests.core.session.test_control import until
from tests.objects import Objects


class Hosts:
    """Machines with a directory each, one store, and one world in which their modules do things."""

    def __init__(self, folder: Path, *texts: str) -> None:
        self.folder, self.store = folder, Objects()
        self.texts = texts
        self.world = World()
        self.journals: dict[str, SharedJournals] = {}

    def host(self, name: str, world: World | None = None) -> Runtime:
        self.journals[name] = SharedJournals(self.store, name, TickingClock())
        return runtime(
            self.folder / name,
            replies({"/": self.texts}),
            world=world or self.world,
            journals=self.journals[name],
        )

    def file(self, name: str, session: Session) -> Path:
        return self.folder / name / "sessions" / session.id / FILE

    def export(self, session: Session) -> bytes:
        return next(iter(self.journals.values())).export(session.id)


def kinds(file: Path) -> Sequence[str]:
    return [one.kind for one in read_journal(file).records]


def moved(hosts: Hosts) -> Path:
    """The journal of a session that was on one host, on another, and on the first again."""

    async def main() -> Session:
        async with hosts.host("a") as a:
            session = await a.open()
            assert (await session.ask("First")).body == "One."
        async with hosts.host("b") as b:
            session = await b.open(session.id)  # of which there is nothing on this host yet
            assert (await session.ask("Second")).body == "Two."
        async with hosts.host("a") as a:
            session = await a.open(session.id)
            assert (await session.ask("Third")).body == "Three."
        return session

    return hosts.file("a", asyncio.run(main()))


def test_a_session_goes_on_elsewhere(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, "One.", "Two.", "Three.")
    file = moved(hosts)
    assert hosts.journals["b"].export(file.parent.name) == file.read_bytes()
    assert [one for one in kinds(file) if one in ("say", "epoch", "close")] == [
        "say", "close", "epoch", "say", "close", "epoch", "say", "close",
    ]  # fmt: skip
    replay(file, verify=True)
    told = [one.fields for one in read_journal(file).records if one.kind == "epoch"]
    assert [(one["epoch"], one["host"]) for one in told] == [(2, "b"), (3, "a")]
    assert hosts.journals["b"].sessions() == [file.parent.name]


def test_a_host_that_was_frozen_in_the_middle_of_a_call_finds_that_it_has_lost(tmp_path: Path) -> None:
    """What it was about to do had its intent on disk; what comes of it is nobody's. It says so, and does nothing more."""
    hosts = Hosts(tmp_path, "```READ\nheld\n```", "```WRITE\nmore\n```", "Done.", "Again.")
    frozen = World(hold={"held": asyncio.Event()})

    async def main() -> Session:
        async with hosts.host("a", frozen) as a:
            mine = await a.open()
            said = await mine.say("Go")
            await until(lambda: bool(frozen.running))
            async with hosts.host("b") as b:
                theirs = await b.open(mine.id)
                await until(lambda: any(one.kind == "reply" for one in theirs.records()))
                assert (await theirs.ask("And?")).body == "Again."
                frozen.hold["held"].set()  # the first host thaws
                with pytest.raises(Superseded, match="Another host has taken over"):
                    await mine.answer(said.n)
                with pytest.raises(Superseded):
                    await mine.say("Are you there?")
                assert not frozen.running
                assert await a.open(mine.id) is mine  # it is not fetched back by being looked at
        return mine

    session = asyncio.run(main())
    file = hosts.file("b", session)
    assert hosts.export(session) == file.read_bytes()
    replay(file, verify=True)
    assert [text for _, _, text in frozen.done] == ["held"]
    assert [text for _, _, text in hosts.world.done].count("more") == 1
    # What the first host has is the beginning of what there is.
    assert file.read_bytes().startswith(hosts.file("a", session).read_bytes())


def test_a_session_of_before_there_was_a_store_goes_on_and_is_put_there(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, "One.", "Two.")

    async def main() -> Session:
        async with runtime(tmp_path / "a", replies({"/": hosts.texts})) as alone:
            session = await alone.open()
            await session.ask("First")
        half = session.journal.read_bytes()[:30]  # as a crash leaves a record: its beginning
        with session.journal.open("ab") as torn:
            torn.write(half)
        async with hosts.host("a") as a:
            session = await a.open(session.id)
            assert (await session.ask("Second")).body == "Two."
        return session

    session = asyncio.run(main())
    file = hosts.file("a", session)
    assert hosts.export(session) == file.read_bytes()
    assert [one.body for one in read_journal(file).records if one.kind == "say"] == ["First", "Second"]
    replay(file, verify=True)


def test_a_fork_is_in_the_store_and_goes_on_elsewhere(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, "One.", "Two.", "Three.")

    async def main() -> tuple[Session, str]:
        async with hosts.host("a") as a:
            session = await a.open()
            await session.ask("First")
            await a.close(session.id)
            session = await a.open(session.id)
            last = read_journal(session.journal).records[-1].n
            fork = await a.fork(session.id, last)
        async with hosts.host("b") as b:
            copy = await b.open(fork)
            assert (await copy.ask("Second")).body == "Two."
        return copy, session.id

    copy, source = asyncio.run(main())
    file = hosts.file("b", copy)
    assert hosts.export(copy) == file.read_bytes()
    epochs = [one.fields["epoch"] for one in read_journal(file).records if one.kind == "epoch"]
    assert epochs == [2, 3]
    replay(file, verify=True)
    assert hosts.journals["a"].sessions() == sorted([source, copy.id])


def test_before_it_moves_a_call_comes_to_its_end_and_nothing_else_begins(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path, "```WRITE\nheld\n```\n\n```WRITE\nlater\n```", "Done.")
    world = World(hold={"held": asyncio.Event()})

    async def main() -> Session:
        async with hosts.host("a", world) as a:
            session = await a.open()
            await session.say("Go")
            await until(lambda: bool(world.running))
            assert not await session.rest(0.0)  # a call that takes too long is not waited for
            resting = asyncio.ensure_future(session.rest(60))
            await session.inject("/", "And hurry.", "queue")  # what is said meanwhile is kept
            world.hold["held"].set()
            assert await resting
            await a.close(session.id)
        assert [text for _, _, text in world.done] == ["held"]
        async with hosts.host("b") as b:
            moved = await b.open(session.id)
            await until(lambda: any(one.kind == "reply" for one in moved.records()))
        return session

    session = asyncio.run(main())
    records = read_journal(hosts.file("b", session)).records
    assert [one.text("status") for one in records if one.kind == "result"] == ["ok", "ok"]
    assert [text for _, _, text in hosts.world.done] == ["later"]
    replay(hosts.file("b", session), verify=True)
