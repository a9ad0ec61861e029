"""Two hosts and one session: one host freezes in the middle of its work, the other takes over, and the first continues.

The server's process is stopped with SIGSTOP, like on a stalled machine or after a partition: it does not notice what
happens meanwhile, and its containers continue. Each call of a tool writes a line that names its container, so that a
call that was made twice, by either host, is detected.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from websockets.sync.client import ClientConnection

from iact.core.records.session import Epoch
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import Product, Server, acknowledged, containers_of, until
from tests.endpoint import Endpoint, Gate, Reply, Request
from tests.rounds import rounds

ROUNDS = 2
"""IACT_TEST_SCALE multiplies them: 100 rounds are IACT_TEST_SCALE=50."""

Aim = Literal["turn", "tool"]


@dataclass
class Model:
    """Acts, acts, answers, and so on for ever. `gates`: for the replies that come next; None: none."""

    gates: deque[Gate | None] = field(default_factory=deque)

    def __call__(self, request: Request) -> Reply:
        turn = request.turn
        gate = self.gates.popleft() if self.gates else None
        text = f"All of part {turn} is done, and this is what I have to say about it."
        if turn % 3 < 2:
            script = f"echo {turn} $(cat /etc/hostname) >> began; sleep 0.5; echo {turn} >> ended"
            text = f"This is what I do next, and why.\n\n```shell.run\n{script}\n```"
        return Reply(text, gates={20: gate} if gate is not None else {})


@dataclass
class Host:
    """One machine. `server`: its process."""

    product: Product
    server: Server

    def began(self, session: str) -> list[str]:
        """The lines that calls have written, in this host's copy of the workspace."""
        file = self.product.data / "sessions" / session / "workspace" / "began"
        return file.read_text().splitlines() if file.exists() else []

    @contextmanager
    def open(self, session: str | None) -> Iterator[ClientConnection]:
        """A person's connection, in a session, or in none yet."""
        with self.server.connect() as socket:
            acknowledged(socket, {"type": "hello", "session": session, "since": 0})
            yield socket


def _await(
    socket: ClientConnection, wanted: Callable[[dict[str, object]], bool], within: float = 120.0
) -> dict[str, object]:
    end = time.monotonic() + within
    seen = []
    while (left := end - time.monotonic()) > 0:
        try:
            frame = json.loads(socket.recv(timeout=left))
        except TimeoutError:
            break
        seen.append(frame.get("type"))
        assert frame["type"] != "error", frame
        if wanted(frame):
            return dict(frame)
    raise AssertionError(f"waited in vain; these came: {seen[-20:]}")


@contextmanager
def running(product: Product) -> Iterator[Host]:
    """A host, ended in order unless it was before."""
    with product.serving() as server:
        yield Host(product, server)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(300) == 0


def _say(socket: ClientConnection, text: str) -> None:
    assert acknowledged(socket, {"type": "say", "text": text})


def _rests(host: Host, session: str) -> bool:
    """Whether each message has its answer, so that nobody is at work."""
    written = (host.product.data / "sessions" / session / "journal.md").read_bytes()
    said, replied = (written.count(b'"kind":"%s","agent":"/"' % kind) for kind in (b"say", b"reply"))
    return said == replied


def _round(model: Model, loser: Host, winner: Host, session: str | None, aim: Aim, number: int) -> str:
    """`loser` is frozen at work, `winner` goes on, `loser` thaws."""
    gate = Gate()
    model.gates.extend([gate] if aim == "turn" else [None, gate])
    with loser.open(session) as frozen:
        before = len(loser.began(session)) if session else 0
        _say(frozen, f"Do part {number}.")
        [session] = [one.parent.name for one in loser.product.journals()]
        if aim == "turn":
            assert gate.wait()
        else:
            until(lambda: len(loser.began(session)) > before, "the tool")
        os.kill(loser.server.process.pid, signal.SIGSTOP)
        try:
            model.gates.clear()
            with winner.open(session) as socket:
                _say(socket, f"Go on with part {number}.")
                until(lambda: _rests(winner, session), "the answers", within=180)
        finally:
            os.kill(loser.server.process.pid, signal.SIGCONT)
            gate.release()
        told = _await(frozen, lambda one: one["type"] == "notice" and "Another host" in str(one["text"]))
        assert session in str(told["text"])
        until(lambda: not containers_of(loser.product.data), "the loser's containers to be gone")
    return session


def _effects(hosts: list[Product], session: str) -> dict[str, set[str]]:
    """The containers in which each call was made."""
    found = defaultdict[str, set[str]](set)
    for product in hosts:
        for line in (product.data / "sessions" / session / "workspace" / "began").read_text().splitlines():
            label, container = line.split()
            found[label].add(container)
    return found


@pytest.mark.no_prefix_law(
    "a host that thaws may ask its model once more before it learns that it has lost the session"
)
def test_a_frozen_host_that_was_taken_over_does_nothing_twice(stage: Stage, tmp_path: Path) -> None:
    model = Model()
    endpoint = Endpoint(model, by_turn=True, crashes=True).start()
    products = [
        stage.product(
            endpoint,
            IACT_MODEL="scripted",
            IACT_STORE=f"file://{tmp_path}/store",
            IACT_HOST=name,
            IACT_CONTEXT="1000000",
        )
        for name in ("a", "b")
    ]
    for product in products:  # as many turns as the rounds take
        (product.data / "iact.toml").write_text("[bounds]\nturns = 10000\ntokens = 1000000000\n")
    key = products[1].data / "seal.key"
    count, session = rounds(ROUNDS, least=2), None
    with ExitStack() as everything:
        everything.callback(endpoint.stop)

        def start(number: int) -> tuple[ExitStack, Host]:
            stack = everything.enter_context(ExitStack())
            return stack, stack.enter_context(running(products[number % 2]))

        stack, loser = start(0)
        key.write_bytes((products[0].data / "seal.key").read_bytes())
        key.chmod(0o600)
        for number in range(1, count + 1):
            following, winner = start(number)
            aim: Aim = "turn" if number % 2 else "tool"
            session = _round(model, loser, winner, session, aim, number)
            stack.close()
            stack, loser = following, winner
    assert session is not None
    twice = {label: where for label, where in _effects(products, session).items() if len(where) > 1}
    assert not twice
    journal = products[count % 2].data / "sessions" / session / "journal.md"
    records = journal_law(journal)
    hosts = [one.content.host for one in records if isinstance(one.content, Epoch)]
    assert hosts == [("b", "a")[number % 2] for number in range(count)]
    said = [one.body for one in records if one.kind == "say"]
    wanted = [f"{what} part {number}." for number in range(1, count + 1) for what in ("Do", "Go on with")]
    assert said == wanted
    exported = products[0].run("journal", "export", session)
    assert exported.stdout.encode() == journal.read_bytes()


@pytest.mark.no_prefix_law(
    "a host that thaws may ask its model once more before it learns that it has lost the session"
)
def test_a_frozen_host_whose_session_was_deleted_for_good_writes_nothing_more(
    stage: Stage, tmp_path: Path
) -> None:
    """Once the other host had gone on with the session before, and once it was still this one's."""
    model = Model()
    endpoint = Endpoint(model, by_turn=True, crashes=True).start()
    loser, winner = (
        stage.product(
            endpoint, IACT_MODEL="scripted", IACT_STORE=f"file://{tmp_path}/store", IACT_HOST=name,
        )
        for name in ("a", "b")
    )  # fmt: skip
    shared = tmp_path / "store" / "sessions"

    def stored(session: str) -> dict[str, bytes]:
        files = [one for one in (shared / session).rglob("*") if one.is_file()]
        return {str(one.relative_to(shared)): one.read_bytes() for one in files}

    with ExitStack() as everything:
        everything.callback(endpoint.stop)
        frozen = everything.enter_context(running(loser))
        key = winner.data / "seal.key"
        key.write_bytes((loser.data / "seal.key").read_bytes())
        key.chmod(0o600)
        other = everything.enter_context(running(winner))
        for went_on in (True, False):
            socket = everything.enter_context(frozen.open(None))
            _say(socket, "Do it.")
            [journal] = loser.journals()
            session = journal.parent.name
            until(lambda: bool(frozen.began(session)), "the tool")  # noqa: B023 - within the round
            if not went_on:  # the other host has a copy of it, and has not taken it over since
                shutil.copytree(journal.parent, winner.data / "sessions" / session, symlinks=True)
            os.kill(frozen.server.process.pid, signal.SIGSTOP)
            try:
                with other.open(session if went_on else None) as there:
                    acknowledged(there, {"type": "session.delete", "sessions": [session]})
                    done = acknowledged(there, {"type": "session.purge", "sessions": [session]})
                    assert done["sessions"] == [session]
                left = stored(session)
                assert {*left.values()} == {b"", b"iact 1 deleted\n"}
            finally:
                os.kill(frozen.server.process.pid, signal.SIGCONT)
            told = _await(
                socket, lambda one: one["type"] == "notice" and "was deleted for good" in str(one["text"])
            )
            assert f"The session {session} was deleted for good by another host" in str(told["text"])
            until(lambda: not containers_of(loser.data), "the loser's containers to be gone")
            assert stored(session) == left
            socket.close()
            acknowledged(
                everything.enter_context(frozen.open(None)), {"type": "session.delete", "sessions": [session]}
            )
            with frozen.server.connect() as again:
                again.send(json.dumps({"type": "hello", "session": session, "since": 0, "id": 1}))
                answer = json.loads(again.recv(timeout=300))
                assert answer["type"] == "error"
            assert stored(session) == left
    refused = loser.run("run", "--session", session, "More")
    assert "deleted" in refused.sentence
    assert loser.run("session", "tidy").status == 0
    assert not loser.journals()
