"""Sessions on three nodes of a Ray cluster: a node is added, one freezes, one is lost; users only notice a pause.

The store records where the sessions are, so users do not wait until Ray notices that a node is gone. Short runs have a
dozen sessions, long runs sixty.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.crowd import Person, all_of, crowd
from tests.acceptance.product import NO_MODULES, Product, until
from tests.acceptance.test_cluster import Cluster
from tests.acceptance.test_crowd import seconds_until_elsewhere, slow_model, told
from tests.rounds import LONG

PEOPLE = 60 if LONG else 12
WITHIN = 15.0 if LONG else 60.0
"""Seconds until all sessions are elsewhere: the promise is for long runs, which have the machine to themselves."""


@dataclass
class Nodes:
    """A Ray cluster in its own process. `address`: as `iact serve --cluster` has it; `ids`: how the id of
    each node begins, by its number: a host's name ends in it."""

    address: str
    _says: IO[str]
    _hears: IO[str]
    ids: dict[int, str] = field(default_factory=dict)

    def do(self, command: str) -> str:
        """Send a command. Returns how its node's id begins."""
        self._hears.write(f"{command}\n")
        self._hears.flush()
        return self._says.readline().strip()[:8]

    def add(self) -> str:
        """Add a node. Returns how its id begins."""
        number = len(self.ids)
        self.ids[number] = self.do("add" if number else "thaw 0")  # the head has been there from the start
        return self.ids[number]


@contextmanager
def ray_nodes(count: int, environment: Mapping[str, str]) -> Iterator[Nodes]:
    """A cluster of so many nodes. `environment`: of what runs on them."""
    program = [sys.executable, "-m", "tests.ray_nodes"]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                program, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert process.stdin is not None
        assert process.stdout is not None
        made = Nodes(process.stdout.readline().strip(), process.stdout, process.stdin)
        assert made.address
        for _ in range(count):
            made.add()
        yield made


def running(product: Product) -> set[str]:
    """The ends of the names of the hosts that live, by which nodes can be known."""
    return {one["host"][-8:] for one in json.loads(product.run("cluster", "status", "--json").stdout)}


def busiest(people: Sequence[Person], hosts: Cluster, nodes: Mapping[int, str]) -> tuple[int, list[Person]]:
    """The number of the node that has most sessions, and whose sessions these are. A dozen are spread by chance."""
    had = {
        number: [one for one in people if hosts.holder(str(one.session)).endswith(node)]
        for number, node in nodes.items()
    }
    number = max(had, key=lambda one: len(had[one]))
    return number, had[number]


def journal(product: Product, hosts: Cluster, person: Person) -> Sequence[Record]:
    """The records of a session, which verifies, at the host that has it now."""
    session = str(person.session)
    holder = Product.at(product.data / "nodes" / hosts.holder(session), hosts.endpoint, **product.settings)
    assert holder.run("replay", "--verify", session).status == 0
    return read_journal(holder.data / "sessions" / session / "journal.md").records


@pytest.mark.no_prefix_law("many sessions of one model, which may be asked again by another host")
async def test_sessions_go_on_when_nodes_are_added_freeze_and_are_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        endpoint = stack.enter_context(slow_model())
        (tmp_path / "d").mkdir()
        product = Product.at(tmp_path / "d", endpoint, **NO_MODULES, IACT_STORE=f"file://{tmp_path}/shared")
        nodes = stack.enter_context(ray_nodes(3, product.environment))
        product = Product.at(product.data, endpoint, **product.settings, IACT_CLUSTER=nodes.address)
        server = stack.enter_context(product.serving())
        hosts = Cluster(tmp_path, endpoint, stack)
        await asyncio.to_thread(until, lambda: len(running(product)) == 3, "a host on each node")
        async with crowd([server], PEOPLE) as people:
            added = nodes.add()
            await asyncio.to_thread(
                until, lambda: added in running(product), "a host on the node that was added"
            )
            sound, failed = nodes.ids.keys() - {0}, dict[str, int]()
            for fault in ("freeze", "kill"):
                number, had = busiest(people, hosts, {one: nodes.ids[one] for one in sound})
                sound -= {number}
                assert len(had) >= PEOPLE // 8, "sessions are spread"
                began, moment = time.monotonic(), datetime.now(UTC)
                lost = nodes.do(f"{fault} {number}")
                await all_of(had, lambda one: not hosts.holder(str(one.session)).endswith(lost))  # noqa: B023 - in the round
                await all_of(people, lambda one: one.answered[-1] > began + 3)  # noqa: B023
                told(capsys, f"an answer again ({fault})", (one.pause_after(began) for one in had))
                records = [journal(product, hosts, one) for one in had]
                took = told(
                    capsys,
                    f"at another host ({fault})",
                    (seconds_until_elsewhere(one, moment) for one in records),
                )
                assert took < WITHIN
                failed[fault] = number
            nodes.do(f"thaw {failed['freeze']}")
            thawed = time.monotonic()
            await all_of(people, lambda one: one.answered[-1] > thawed + 6)
        for person in people:
            person.check(journal(product, hosts, person))
