"""Hosts that a module wants to reach: asked about in place, allowed by whom, followed while sessions run, verified."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from iact.core import Session
from iact.core.errors import UsageError
from iact.core.journal import read_journal
from iact.core.records.record import Record
from iact.core.session.hosts import keep_hosts, kept_hosts
from iact.core.session.monitor import Authorities
from iact.core.stored.replay import replay
from iact.core.views.questions import undecided_since
from tests.core.session.fakes import FakeHost, World, replies, runtime
from tests.core.session.test_control import until

LISTED = """
[scope.default]
functions = ["*"]
[scope.default.egress]
web = ["docs.example", "*.listed.example", "odd.example:8443"]
"""


def fetch(*targets: str) -> str:
    return f"```web.fetch\nreach {' '.join(targets)}\n```"


def hosts(records: Sequence[Record], op: str) -> list[Record]:
    return [one for one in records if one.kind == "host" and one.text("op") == op]


async def question(session: Session, known: int = 0) -> int:
    """The number of a question that stands open, behind record `known`."""
    await until(lambda: bool(hosts(session.records(known), "ask")))
    return hosts(session.records(known), "ask")[0].n


def play(
    data: Path,
    script: Sequence[str],
    act: Callable[[Session], Awaitable[None]] | None = None,
    *,
    policy: str = "",
    authorities: Authorities | None = None,
) -> tuple[list[str], list[Record]]:
    """Say something, and meanwhile act; gives what calls came to, and the journal, verified."""
    world = World()

    async def main() -> Path:
        made = runtime(
            data, replies({"/": [*script, "Done."]}), world=world, policy=policy, host=FakeHost(more=True),
            authorities=authorities,
        )  # fmt: skip
        async with made as opened:
            session = await opened.open(intent=1)
            said = await session.say("Go")
            if act is not None:
                await act(session)
            await session.answer(said.n)
            return session.journal

    journal = asyncio.run(main())
    return [text for _, _, text in world.done], list(replay(journal, verify=True).records)


def test_a_host_of_the_policys_is_reached_without_a_question_and_the_journal_says_so(tmp_path: Path) -> None:
    targets = ("docs.example:443", "docs.example:80", "a.b.listed.example:443", "odd.example:8443")
    done, records = play(tmp_path, [fetch(*targets), fetch(*targets)], policy=LISTED)
    assert done == [" ".join(f"{one}=yes" for one in targets)] * 2
    assert not hosts(records, "ask")
    assert {(one.text("host"), one.text("by")) for one in hosts(records, "reach")} == {
        ("docs.example", "policy"), ("a.b.listed.example", "policy"), ("odd.example", "policy"),
    }  # fmt: skip
    assert len(hosts(records, "reach")) == 4  # each target once, however often it is reached


@pytest.mark.parametrize("lasts", ["once", "session", "always"])
def test_an_unknown_host_is_asked_about_in_place_and_a_yes_lasts_as_long_as_was_said(
    tmp_path: Path, lasts: str
) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        assert session.asks_host(asked)
        await session.clear_host(
            asked, True, "once" if lasts == "once" else "session" if lasts == "session" else "always"
        )
        if lasts == "once":  # good for the call that waited, and for no other
            await session.clear_host(await question(session, asked), False)

    script = [fetch("new.example:443", "new.example:443"), fetch("new.example:443")]
    done, records = play(tmp_path, script, act)
    second = "no" if lasts == "once" else "yes"
    assert done == ["new.example:443=yes new.example:443=yes", f"new.example:443={second}"]
    (first, *_) = hosts(records, "ask")
    assert first.fields["calls"]
    assert first.text("host") == "new.example"
    assert {one.text("by") for one in hosts(records, "reach")} == {lasts}
    assert kept_hosts(tmp_path) == ([("web", "new.example")] if lasts == "always" else [])


def test_a_no_holds_and_is_not_asked_again_until_a_command_allows_the_host(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        await session.clear_host(await question(session), False)
        await until(lambda: len(hosts(session.records(), "answer")) == 1)

    done, records = play(tmp_path, [fetch("no.example:443"), fetch("no.example:443")], act)
    assert done == ["no.example:443=no"] * 2
    assert len(hosts(records, "ask")) == 1

    keep_hosts(tmp_path, "web", ["no.example"])
    done, records = play(tmp_path, [fetch("no.example:443")])
    assert done == ["no.example:443=yes"]
    assert [one.text("by") for one in hosts(records, "reach")] == ["always"]


def test_each_question_is_about_the_agent_whose_call_names_the_host(tmp_path: Path) -> None:
    """Two agents fetch at the same time through one module; a third host is named by the user."""
    world = World()
    children = "".join(f"```CALL_ASYNC {name}\nFetch.\n```\n" for name in "ab")
    script = {
        "/": [f"{children}```WAIT\n```", fetch("c.example:443"), "Done."],
        "/a": [fetch("a.example:443"), "Done."],
        "/b": [fetch("b.example:443"), "Done."],
    }

    async def main() -> Path:
        async with runtime(tmp_path, replies(script), world=world, host=FakeHost(more=True)) as opened:
            session = await opened.open(intent=1)
            said = await session.say("Look at https://c.example/x, too; not at a.example.org")
            known = 0
            for _ in range(3):
                known = await question(session, known)
                await session.clear_host(known, False)
            await session.answer(said.n)
            return session.journal

    records = list(replay(asyncio.run(main()), verify=True).records)
    asked = {one.text("host"): one for one in hosts(records, "ask")}
    for host, agent, origins in (
        ("a.example", "/a", ["model"]), ("b.example", "/b", ["model"]), ("c.example", "/", ["user"]),
    ):  # fmt: skip
        assert asked[host].agent == agent
        assert asked[host].fields["agents"] == [agent]
        assert asked[host].fields["origins"] == origins
        assert isinstance(calls := asked[host].fields["calls"], list)
        assert len(calls) == 1


def test_a_host_that_no_call_names_may_be_any_of_them_and_an_instance_of_its_own_is_its_agents(
    tmp_path: Path,
) -> None:
    """As when a page leads elsewhere, or a program in a shell connects."""

    async def act(session: Session) -> None:
        ask = asyncio.ensure_future(session._hosts.permits("web", "/x", "elsewhere.example", 443))
        asked = await question(session)
        await session.clear_host(asked, False)
        assert not await ask

    _, records = play(tmp_path, ["Hello."], act)
    (asked,) = hosts(records, "ask")
    assert asked.fields.get("agents", []) == []
    assert asked.fields["owner"] == "/x"
    assert "addresses" not in asked.fields


def test_a_command_answers_a_connection_that_waits(tmp_path: Path) -> None:
    """Another process writes the file; the session follows it while it runs."""

    async def act(session: Session) -> None:
        await question(session)
        keep_hosts(session.journal.parent, "web", ["*.example"])

    done, records = play(tmp_path, [fetch("late.example:443")], act)
    assert done == ["late.example:443=yes"]
    assert hosts(records, "answer")[0].text("by") == "core"
    assert hosts(records, "reach")[0].text("by") == "session"


def test_what_is_taken_back_is_asked_about_again(tmp_path: Path) -> None:
    keep_hosts(tmp_path, "web", ["x.example"])

    async def act(session: Session) -> None:
        await until(lambda: len(hosts(session.records(), "reach")) == 1)
        await session.allow_hosts("web", ["x.example"], always=True, remove=True)
        await session.clear_host(await question(session), False)

    done, _ = play(tmp_path, [fetch("x.example:443"), "```t.read\nrest\n```", fetch("x.example:443")], act)
    assert done == ["x.example:443=yes", "rest", "x.example:443=no"]


def test_who_says_nothing_in_time_allows_nothing(tmp_path: Path) -> None:
    done, records = play(tmp_path, [fetch("x.example:443")], authorities=Authorities(seconds=0.05))
    assert done == ["x.example:443=no"]
    assert hosts(records, "answer")[0].text("by") == "time"


def test_a_module_that_says_nothing_of_hosts_is_not_asked_about(tmp_path: Path) -> None:
    done, records = play(tmp_path, ["```t.read\nreach x.example:443\n```"], policy=LISTED)
    assert done == ["x.example:443=no"]
    assert not hosts(records, "ask")


async def test_a_fork_does_not_have_what_was_allowed_for_the_session(tmp_path: Path) -> None:
    script = replies({"/": [fetch("x.example:443"), "Done.", fetch("x.example:443"), "Done."]})
    async with runtime(tmp_path, script, host=FakeHost(more=True)) as opened:
        session = await opened.open(intent=1)
        said = await session.say("Go")
        await session.clear_host(await question(session), True, "session")
        end = await session.answer(said.n)
        other = await opened.open(await opened.fork(session.id, end.n))
        said = await other.say("Again")
        asked = await question(other, said.n)
        await other.clear_host(asked, False)
        await other.answer(said.n)
        assert [one["by"] for one in session.hosts] == ["session"]
        assert other.hosts == []
        replay(other.journal, verify=True)


def test_a_question_that_a_crash_left_is_closed_when_the_session_is_opened_again(tmp_path: Path) -> None:
    identity = ""

    async def first() -> None:
        nonlocal identity
        async with runtime(
            tmp_path, replies({"/": [fetch("x.example:443"), "Done."]}), host=FakeHost(more=True)
        ) as opened:
            session = await opened.open(intent=1)
            identity = session.id
            await session.say("Go")
            await question(session)

    asyncio.run(first())
    records = read_journal(tmp_path / "sessions" / identity).records
    assert hosts(records, "answer")[0].text("by") == "core"
    replay(tmp_path / "sessions" / identity / "journal.md", verify=True)


def test_only_what_is_asked_can_be_answered(tmp_path: Path) -> None:
    async def act(session: Session) -> None:
        asked = await question(session)
        with pytest.raises(UsageError, match="No connection waits"):
            await session.clear_host(asked + 1, True)
        with pytest.raises(UsageError, match="is not a host"):
            await session.allow_hosts("web", ["http://x/"])
        with pytest.raises(UsageError, match="There is no module 'nobody'"):
            await session.allow_hosts("nobody", ["x.example"])
        await session.clear_host(asked, True)

    play(tmp_path, [fetch("x.example:443")], act)


def everything(data: Path) -> Path:
    """A session with every kind of record about hosts; its folder."""

    async def act(session: Session) -> None:
        asked = await question(session)
        await session.clear_host(asked, True)
        await session.clear_host(await question(session, asked), False)
        await session.allow_hosts("web", ["third.example"])

    keep_hosts(data, "web", ["kept.example"])
    script = [
        fetch("a.example:443", "kept.example:443"),
        fetch("b.example:8443"),
        fetch("docs.example:443", "third.example:443"),
    ]
    _, records = play(data, script, act, policy=LISTED)
    return data / "sessions" / records[0].text("session")


def test_with_nobody_to_ask_a_host_is_refused_at_once_and_named_once(tmp_path: Path) -> None:
    script = [fetch("new.example:443", "new.example:443"), fetch("new.example:443")]
    came, records = play(tmp_path, script, policy=LISTED, authorities=Authorities(attended=False))
    assert came == ["new.example:443=no new.example:443=no", "new.example:443=no"]
    (answered,) = hosts(records, "answer")
    assert (answered.fields["allow"], answered.text("by")) == (False, "policy")
    assert [one.question for one in undecided_since(records, 0)] == hosts(records, "ask")
