"""`kill -9` at random moments: nothing acknowledged is lost, no call with an effect runs twice, and the work continues.

Each chain is one session that is killed again and again, and finally completed. The moments are chosen:
while a model writes, while a tool runs, or anywhere after the start of the process. Every tool call leaves
its own line in the workspace, at its beginning and at its end, so that a call that ran twice is detected.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.conftest import Stage
from tests.acceptance.product import Product, acknowledged, kill, until
from tests.endpoint import Endpoint, Reply, Request
from tests.rounds import LONG, rounds

_KILLS_OF_A_CHAIN = 5
_AT_ONCE = 4
_SEED = 20260504

Aim = Literal["generation", "tool", "anywhere"]


def _answer(request: Request) -> Reply:
    """An endless script: the root calls a worker, acts, acts twice and answers; the worker acts twice and answers."""
    path, turn = request.agent, request.turn
    name = path.strip("/") or "root"
    if path == "/":
        parts = [
            "```CALL worker\nDo your part.\n```",
            _act(name, turn, 0),
            _act(name, turn, 0) + "\n\n" + _act(name, turn, 1),
        ]
    else:
        parts = [_act(name, turn, 0), _act(name, turn, 0)]
    text = "I think about what is to be done, and then I do it, one thing after the other.\n\n"
    step = turn % (len(parts) + 1)
    return Reply(
        text + parts[step] if step < len(parts) else f"{name} has done its part {turn}.", delay=0.004
    )


def _act(name: str, turn: int, index: int) -> str:
    label = f"{name}-{turn}-{index}"
    return f"```shell.run\necho {label} >> began; sleep 0.06; echo {label} >> effects; sleep 0.06\n```"


@dataclass
class Chain:
    """One session and what is known of it. `acked`: texts by the number of the record that holds them."""

    product: Product
    endpoint: Endpoint
    rng: random.Random
    session: str | None = None
    known: list[Record] = field(default_factory=list)
    acked: dict[int, str] = field(default_factory=dict)
    hits: Counter[str] = field(default_factory=Counter)
    said: int = 0
    _looked: tuple[tuple[int, ...], bool] = ((), False)

    def next_text(self) -> str:
        self.said += 1
        return f"Go on, please: {self.said}."

    def lines(self, name: str) -> list[str]:
        """The lines of a file in the session's workspace."""
        found = list(self.product.data.glob(f"sessions/*/workspace/{name}"))
        return [line for path in found for line in path.read_text().splitlines()]

    def aim(self) -> Aim:
        return self.rng.choice(("generation", "tool", "anywhere"))

    def wait_for_moment(self, aim: Aim, process: subprocess.Popen[str]) -> None:
        """Wait until it is time to kill; comes back early if the process has ended."""
        ahead = self.rng.randint(1, 3)
        requests, began = len(self.endpoint.requests), len(self.lines("began"))

        def due() -> bool:
            if aim == "generation":
                return len(self.endpoint.requests) >= requests + ahead
            return aim == "anywhere" or len(self.lines("began")) >= began + ahead

        until(lambda: due() or process.poll() is not None or self.rests(), f"the moment {aim}")
        longest = {"generation": 0.1, "tool": 0.13, "anywhere": 1.0}[aim]
        time.sleep(self.rng.uniform(0, longest))  # the moment itself, not a wait for anything

    def rests(self) -> bool:
        """Whether all that was said is answered, so that nothing more will happen."""
        state = (len(self.acked), *(journal.stat().st_size for journal in self.product.journals()))
        if state != self._looked[0]:  # it is asked again and again, and to read a journal takes time
            self._looked = state, self._answered()
        return self._looked[1]

    def _answered(self) -> bool:
        records = [record for journal in self.product.journals() for record in read_journal(journal).records]
        told = [
            record.kind
            for record in records
            if record.agent == "/" and record.kind in ("say", "turn", "reply")
        ]
        return bool(self.acked) and len(records) >= max(self.acked) and told[-1:] == ["reply"]

    def take_stock(self) -> None:
        """After a kill: what stood in the journal still does, and what was acknowledged is there."""
        journals = self.product.journals()
        if not journals:
            return
        assert len(journals) == 1
        journal = next(iter(journals))
        now = read_journal(journal).records
        assert now[: len(self.known)] == self.known
        for n, text in self.acked.items():
            assert (now[n - 1].kind, now[n - 1].body) == ("say", text)
        if now:
            self.session, self.known = now[0].text("session"), now
        else:  # killed before the session had begun: nobody was told of it
            assert not self.acked
            _remove(journal.parent)

    def count_hit(self, journal_before: int) -> None:
        """Note what the kill interrupted."""
        self.hits["killed"] += 1
        open_calls = {
            record.n for record in self.known if record.kind == "call" and record.text("function") != "CALL"
        }
        ended = {record.number("call") for record in self.known if record.kind == "result"}
        self.hits["tool"] += bool(open_calls - ended)
        self.hits["generation"] += any(
            request.disconnected and request.sent > 0 for request in self.endpoint.requests[journal_before:]
        )
        self.hits["container"] += bool(self.product.containers())

    def finish(self) -> None:
        """Bring the session to its end and look at all that it did."""
        answer = self.product.ask(self.next_text(), session=self.session)
        assert answer.status == "done"
        assert answer.records[: len(self.known)] == self.known
        for n, text in self.acked.items():
            assert answer.records[n - 1].body == text

        began, effects = Counter(self.lines("began")), Counter(self.lines("effects"))
        assert set(began.values()) <= {1}, f"ran twice: {began - Counter(set(began))}"
        assert set(effects.values()) <= {1}
        assert effects.keys() <= began.keys()
        results = [
            record
            for record in answer.records
            if record.kind == "result" and record.text("function") == "shell.run"
        ]
        calls = [
            record
            for record in answer.records
            if record.kind == "call" and record.text("function") == "shell.run"
        ]
        assert len(results) == len(calls) >= len(began)
        assert Counter(record.text("status") for record in results)["ok"] <= len(effects)
        assert {record.text("status") for record in results} <= {"ok", "interrupted"}
        self.hits["interrupted"] += sum(record.text("status") == "interrupted" for record in results)
        assert not self.product.containers(), "containers of killed processes remain"


def _remove(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    directory.rmdir()


def _kill_a_command(chain: Chain) -> bool:
    """Start or resume the session with `iact run`, and kill that; whether it was still at work."""
    options = ["--session", chain.session] if chain.session else []
    with chain.product.started("run", "--json", *options, chain.next_text()) as process:
        chain.wait_for_moment(chain.aim(), process)
        return kill(process)


def _kill_a_server(chain: Chain) -> bool:
    """Start or resume the session on a server, speak to it over the websocket, and kill the server."""
    with chain.product.serving() as server, server.connect() as socket:
        acknowledged(socket, {"type": "hello", "session": chain.session, "since": 0})
        for _ in range(chain.rng.randint(1, 2)):
            text = chain.next_text()
            reply = acknowledged(socket, {"type": "say", "text": text})
            assert isinstance(reply["n"], int)
            chain.acked[reply["n"]] = text
            chain.session = str(reply["session"])
        chain.wait_for_moment(chain.aim(), server.process)
        return kill(server.process)


def _play(chain: Chain, kills: int, *, serve: bool) -> Chain:
    while chain.hits["killed"] < kills:
        requests = len(chain.endpoint.requests)
        killed = _kill_a_server(chain) if serve else _kill_a_command(chain)
        chain.take_stock()
        if killed:
            chain.count_hit(requests)
    chain.finish()
    return chain


def _chains(stage: Stage, name: str, kills: int, *, serve: bool) -> Counter[str]:
    """Play chains of `kills` kills in all, some at a time; gives what was hit, over all of them."""
    lengths = [min(_KILLS_OF_A_CHAIN, kills - start) for start in range(0, kills, _KILLS_OF_A_CHAIN)]
    chains = []
    for number in range(len(lengths)):
        endpoint = stage.endpoint(_answer, crashes=True)
        chains.append(Chain(stage.product(endpoint), endpoint, random.Random(f"{_SEED} {name} {number}")))
    hits: Counter[str] = Counter()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for chain in pool.map(lambda one, length: _play(one, length, serve=serve), chains, lengths):
            hits += chain.hits
    assert hits["killed"] == kills
    return hits


def test_killed_commands(stage: Stage) -> None:
    hits = _chains(stage, "run", rounds(12, least=12), serve=False)
    assert hits["generation"] > 0, hits
    assert hits["tool"] > 0, hits
    assert hits["interrupted"] > 0, hits
    assert hits["container"] > 0, "no kill left a container behind, so nothing was reaped"


def test_killed_servers(stage: Stage) -> None:
    hits = _chains(stage, "serve", rounds(4, least=4), serve=True)
    assert hits["generation"] + hits["tool"] > 0, hits


def test_a_journal_that_never_began_is_no_session(stage: Stage) -> None:
    """A kill before the first record was durable leaves an empty file; it is told of, and harms nothing."""
    product = stage.product("http://127.0.0.1:9/v1")
    empty = product.data / "sessions" / "20260504-030201-00000000"
    empty.mkdir(parents=True)
    (empty / "journal.md").touch()
    ran = product.run("run", "--session", empty.name, "Go on.")
    assert ran.status == 1
    assert ran.sentence.startswith(f"The session {empty.name} can't be opened: its journal is empty")
    assert str(empty) in ran.sentence
    _remove(empty)


_SESSIONS = 10 if LONG else 4


@pytest.mark.no_prefix_law("many sessions of one model, each at its first turn")
def test_nothing_is_left_of_many_sessions_that_were_killed(stage: Stage) -> None:
    """The next start of anything on the data directory removes their containers, sockets and mounts."""
    busy = Reply("I wait.\n\n```shell.run\ntouch here; sleep 3600\n```", repeat=True)
    product = stage.product(stage.endpoint({"/": [busy]}, crashes=True))
    with product.serving() as server:
        for _ in range(_SESSIONS):
            with server.connect() as socket:
                acknowledged(socket, {"type": "hello", "session": None, "since": 0})
                acknowledged(socket, {"type": "say", "text": "Wait."})
        at_work = "sessions/*/workspace/here"
        until(lambda: len(list(product.data.glob(at_work))) == _SESSIONS, "their tools at work", within=300)
        assert kill(server.process)
    assert len(product.containers()) == _SESSIONS
    assert product.run("module", "list", seconds=300).status == 0
    assert product.containers() == []
    assert list((product.data / "run").glob("*")) == []
    assert str(product.data / "run") not in Path("/proc/mounts").read_text(encoding="utf-8")
