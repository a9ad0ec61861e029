"""Many active sessions on three hosts: one host is killed or freezes, all are restarted; users only notice a pause.

Short runs have a dozen sessions; long runs have sixty, and a host that freezes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iact.core.records.record import Record
from tests.acceptance.crowd import Person, all_of, crowd
from tests.acceptance.product import kill
from tests.acceptance.test_cluster import Cluster, cluster
from tests.endpoint import Endpoint, Reply
from tests.rounds import LONG, short

PEOPLE = 60 if LONG else 12
WITHIN = 15.0 if LONG else 60.0
"""Seconds until all sessions are elsewhere: the promise is for long runs, which have the machine to themselves."""

pytestmark = pytest.mark.no_prefix_law("many sessions of one model, which may be asked again by another host")


def slow_model() -> Endpoint:
    """Takes two seconds for an answer, so that most sessions are in the middle of a turn at any moment."""
    text = "This is my answer, and it takes a while until all of it is there."
    return Endpoint({"/": [Reply(text, delay=0.2, repeat=True)]}, crashes=True)


def journals(hosts: Cluster, people: Sequence[Person]) -> list[list[Record]]:
    """The records of every session, each of which verifies."""
    return [hosts.verified(str(one.session)) for one in people]


def seconds_until_elsewhere(records: Sequence[Record], moment: datetime) -> float:
    """From a moment until another host went on with a session, by its journal."""
    epochs = (datetime.fromisoformat(one.at) for one in records if one.kind == "epoch")
    return next((at - moment).total_seconds() for at in epochs if at > moment)


def told(capsys: pytest.CaptureFixture[str], what: str, seconds: Iterable[float]) -> float:
    """The longest of them; told to whoever runs this."""
    found = sorted(seconds)
    with capsys.disabled():
        print(
            f"\n{len(found)} sessions, {what}: {found[len(found) // 2]:.1f} s in the middle, {found[-1]:.1f} s at most"
        )
    return found[-1]


@pytest.mark.parametrize("fault", short(["killed"], of=["killed", "frozen"]))
async def test_the_sessions_of_a_host_that_fails_go_on_at_the_others(
    tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        slow_model() as endpoint,
        cluster(tmp_path, endpoint, "a", "b", "c") as hosts,
        hosts.gateway("left") as left,
        hosts.gateway("right") as right,
    ):
        async with crowd([left, right], PEOPLE) as people:
            had = [one for one in people if hosts.holder(str(one.session)) == "b"]
            assert len(had) >= PEOPLE // 4
            began, moment = time.monotonic(), datetime.now(UTC)
            if fault == "killed":
                assert kill(hosts.hosts["b"])
            else:
                os.kill(hosts.hosts["b"].pid, signal.SIGSTOP)
            await all_of(had, lambda one: hosts.holder(str(one.session)) != "b")
            await all_of(people, lambda one: one.answered[-1] > began + 3)
            told(capsys, f"an answer again after a host was {fault}", (one.pause_after(began) for one in had))
            if fault == "frozen":
                hosts.hosts["b"].send_signal(signal.SIGCONT)
                thawed = time.monotonic()
                await all_of(people, lambda one: one.answered[-1] > thawed + 6)
        elsewhere = []
        for person, records in zip(people, journals(hosts, people), strict=True):
            person.check(records)
            hosts_of = [one.fields["host"] for one in records if one.kind == "epoch"]
            assert hosts_of[:1] != ["b"]
            if person in had:
                elsewhere.append(seconds_until_elsewhere(records, moment))
            assert len(hosts_of) == (1 if person in had else 0), "a session moved that had no need to"
        assert told(capsys, "at another host", elsewhere) < WITHIN


async def test_all_hosts_are_restarted_one_after_the_other_and_nobody_notices_more_than_a_pause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        slow_model() as endpoint,
        cluster(tmp_path, endpoint, "a", "b", "c") as hosts,
        hosts.gateway("left") as left,
        hosts.gateway("right") as right,
    ):
        async with crowd([left, right], PEOPLE) as people:
            for name in "abc":
                hosts.hosts[name].terminate()
                assert await asyncio.to_thread(hosts.hosts[name].wait, 120) == 0
                await asyncio.to_thread(hosts.start_host, name)
            moment = time.monotonic()
            await all_of(people, lambda one: one.answered[-1] > moment)
        pauses = told(capsys, "the longest pause", (one.longest_pause() for one in people))
        assert pauses < WITHIN
        for person, records in zip(people, journals(hosts, people), strict=True):
            person.check(records)
            # What was under way came to its end before the session moved: nothing was said to have an unknown outcome.
            assert not [one for one in records if one.kind == "retry"], person.session
