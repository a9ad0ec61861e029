"""Sessions on several hosts, as users see them: through a gateway, moved, drained, and taken over from a dead host."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from iact.core.journal import read_journal
from iact.core.records.record import Record
from tests.acceptance.product import NO_MODULES, Product, Server, acknowledged, kill, until
from tests.acceptance.test_browser import page_of
from tests.endpoint import Endpoint, Gate, Reply


@dataclass
class Cluster:
    """Hosts, each with a data directory of its own, and a directory as their store."""

    folder: Path
    endpoint: Endpoint
    processes: ExitStack
    settings: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def product(self, name: str) -> Product:
        data, key = self.folder / name, self.folder / "seal.key"
        if not data.exists():
            data.mkdir()
            if key.exists():
                (data / "seal.key").write_bytes(key.read_bytes())
                (data / "seal.key").chmod(0o600)
        return Product.at(
            data, self.endpoint, **NO_MODULES,
            IACT_STORE=f"file://{self.folder}/shared", IACT_HOST=name, IACT_CLUSTER="static", **self.settings,
        )  # fmt: skip

    def start_host(self, name: str) -> None:
        product = self.product(name)
        process = self.processes.enter_context(product.started("cluster", "host"))
        assert process.stdout is not None
        assert process.stdout.readline().startswith(f"iact: host {name} ready at 127.0.0.1:")
        self.hosts[name] = process
        if not (self.folder / "seal.key").exists():
            (self.folder / "seal.key").write_bytes((product.data / "seal.key").read_bytes())

    @contextmanager
    def gateway(self, name: str = "gateway") -> Iterator[Server]:
        with self.product(name).serving() as server:
            yield server

    def run(self, *arguments: str) -> str:
        ran = self.product("desk").run("cluster", *arguments)
        assert ran.status == 0, ran
        return ran.stdout

    def holder(self, session: str) -> str:
        """The host that has begun the newest epoch of a session's journal."""
        newest = max((self.folder / "shared" / "leases" / session).iterdir())
        return newest.read_text().rpartition(".")[0]

    def verified(self, session: str) -> list[Record]:
        """The records of a session, which verify, where it was last."""
        product = self.product(self.holder(session))
        ran = product.run("replay", "--verify", session)
        assert ran.status == 0, ran
        return list(read_journal(product.data / "sessions" / session / "journal.md").records)


@contextmanager
def cluster(folder: Path, endpoint: Endpoint, *names: str, **settings: str) -> Iterator[Cluster]:
    with ExitStack() as processes:
        made = Cluster(folder, endpoint, processes, settings)
        for name in names:
            made.start_host(name)
        yield made


def closed(socket: ClientConnection) -> int | None:
    """Wait until a websocket is closed; with which code."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            socket.recv(timeout=300)
    return socket.close_code


def greeted(hosts: Cluster, server: Server, session: str | None) -> ClientConnection:
    socket = hosts.processes.enter_context(server.connect())
    acknowledged(socket, {"type": "hello", "session": session, "since": 0})
    return socket


def said(socket: ClientConnection, text: str) -> str:
    return str(acknowledged(socket, {"type": "say", "text": text})["session"])


def listed(socket: ClientConnection, right: Callable[[dict[str, str]], bool]) -> bool:
    """Whether the titles in the list at a connection are right; if not, it has looked for a second for what changes."""
    socket.send(json.dumps({"type": "sessions", "id": 99}))
    while (message := json.loads(socket.recv(timeout=300)))["type"] != "sessions":
        assert message["type"] != "error", message
    if right({str(one["id"]): str(one["title"]) for one in message["list"]}):
        return True
    with contextlib.suppress(TimeoutError):
        while True:
            socket.recv(timeout=1)
    return False


def lists(socket: ClientConnection, sessions: set[str]) -> bool:
    """Whether the list at a connection shows all of these; likewise."""
    return listed(socket, lambda found: sessions <= set(found))


def say(page: Page, text: str) -> None:
    page.locator("#composer-text").fill(text)
    page.locator("#composer-text").press("Enter")


def test_a_person_at_the_page_stays_with_their_session_wherever_it_goes(tmp_path: Path) -> None:
    """Moved while a model writes, and then taken from a host that is killed; each message is shown once."""
    gate = Gate()
    replies: list[Reply | str] = ["One.", Reply("Two is long in coming.", gates={3: gate}), "Three."]
    with (
        Endpoint({"/": replies}, by_turn=True) as endpoint,
        cluster(tmp_path, endpoint, "a", "b") as hosts,
        hosts.gateway() as server,
        page_of(server) as page,
    ):
        say(page, "First")
        expect(page.get_by_text("One.", exact=True)).to_have_count(1)
        found = re.search(r"\d{8}-\d{6}-[0-9a-f]{8}", page.url)
        assert found is not None, page.url
        session = found[0]
        here = hosts.holder(session)
        there = "b" if here == "a" else "a"
        say(page, "Second")
        assert gate.wait()
        with subprocess.Popen(
            [sys.executable, "-m", "iact", "cluster", "move", session, there],
            env=hosts.product("desk").environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        ) as moving:  # fmt: skip
            gate.release()  # it waits for what is under way; the person sees how that goes on
            told, _ = moving.communicate(timeout=300)
        assert told == f"The session {session} is now on the host {there} (epoch 2).\n"
        expect(page.get_by_text("Two is long in coming.", exact=True)).to_have_count(1)
        kill(hosts.hosts[there])
        until(lambda: hosts.holder(session) == here, "the other host to go on with it")
        expect(page.locator("[data-role=connection]")).to_have_attribute(
            "data-state", "open", timeout=300_000
        )
        say(page, "Third")
        expect(page.get_by_text("Three.", exact=True)).to_have_count(1, timeout=300_000)
        dialogue = page.locator("[data-role=dialogue]")
        for text in ("First", "One.", "Second", "Two is long in coming.", "Third"):
            expect(dialogue.get_by_text(text, exact=True)).to_have_count(1)
        records = hosts.verified(session)
        assert [one.fields["host"] for one in records if one.kind == "epoch"] == [there, here]
        assert [one.body for one in records if one.kind == "say"] == ["First", "Second", "Third"]


def test_hosts_are_drained_stopped_and_started_and_nobody_loses_anything(tmp_path: Path) -> None:
    """A rolling restart, with a client at each of six sessions, two gateways, and one host more than before at its end."""
    with (
        Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint,
        cluster(tmp_path, endpoint, "a", "b") as hosts,
        hosts.gateway("left") as left,
        hosts.gateway("right") as right,
    ):
        sockets = {said(one, "First"): one for one in [greeted(hosts, left, None) for _ in range(6)]}
        assert {hosts.holder(one) for one in sockets} == {"a", "b"}, "they are spread"
        # Whoever asks, and whichever host answers, the list has all six.
        for socket in sockets.values():
            until(partial(lists, socket, set(sockets)), "the list of all")
        for round_, name in enumerate(("a", "b"), 2):
            had = [one for one in sockets if hosts.holder(one) == name]
            assert hosts.run("drain", name).startswith(f"The host {name} handed over {len(had)} sessions")
            for one in had:
                assert closed(sockets[one]) == 4009
                sockets[one] = greeted(hosts, right, one)
            hosts.hosts[name].terminate()
            assert hosts.hosts[name].wait(300) == 0
            hosts.start_host(name)
            for one, socket in sockets.items():
                assert said(socket, f"Round {round_}") == one
        told = json.loads(hosts.run("status", "--json"))
        assert [(one["host"], one["draining"]) for one in told] == [("a", False), ("b", False)]
        # How many a host has is told with the next note of its lease.
        until(
            lambda: sum(one["sessions"] for one in json.loads(hosts.run("status", "--json"))) == 6,
            "the notes of both hosts",
        )
        for one in sockets:
            records = hosts.verified(one)
            assert [row.body for row in records if row.kind == "say"] == ["First", "Round 2", "Round 3"]


@pytest.mark.no_prefix_law("two sessions at one endpoint say different things at the same turn")
def test_texts_of_all_hosts_are_found_and_sessions_at_rest_are_closed_until_somebody_asks(
    tmp_path: Path,
) -> None:
    """What is found are words of an answer, which no title and no list has; nobody need be on the session's host."""
    script = {"/": [Reply("The anchor is weighed.", repeat=True)]}
    with (
        Endpoint(script) as endpoint,
        cluster(tmp_path, endpoint, "a", "b", IACT_SESSION_IDLE="1") as hosts,
        hosts.gateway() as server,
    ):

        def found(socket: ClientConnection) -> set[str]:
            answer = acknowledged(socket, {"type": "sessions.search", "query": "weighed"})
            assert isinstance(answer["list"], list)
            assert answer["behind"] == 0, "every host has answered"
            return {one["id"] for one in answer["list"] if one["hit"]["match"] == "weighed"}

        def opened() -> int:
            return sum(one["sessions"] for one in json.loads(hosts.run("status", "--json")))

        sockets = [greeted(hosts, server, None) for _ in range(2)]
        sessions = {said(one, "Hello") for one in sockets}
        assert {hosts.holder(one) for one in sessions} == {"a", "b"}, "they are spread"
        for socket in sockets:
            until(lambda: found(socket) == sessions, "both to be found", every=0.2)  # noqa: B023 - within the round
        ran = hosts.product("desk").run("session", "search", "weighed")
        assert ran.status == 0, ran
        assert all(f"{one}  " in ran.stdout for one in sessions), ran.stdout
        # A session that is watched stays open; one that nobody watches is closed, and is still found and listed.
        watched = said(sockets[0], "Are you there?")
        sockets[1].close()
        until(lambda: opened() == 1, "the session at rest to be closed")
        (closed,) = sessions - {watched}
        assert found(sockets[0]) == sessions
        again = greeted(hosts, server, closed)
        assert said(again, "And you?") == closed
        # Its list is one row for each session, however often something of them changed.
        until(lambda: lists(again, sessions), "the list of all")
        until(
            lambda: len([*(tmp_path / "shared" / "list").iterdir()]) == 2,
            "rows that count no more to be gone",
        )
        records = hosts.verified(closed)
        assert [one.body for one in records if one.kind == "say"] == ["Hello", "And you?"]
        # What is done with a session that one does not watch is done where it is, whichever host one speaks to.
        first = sockets[0]
        acknowledged(first, {"type": "session.rename", "session": closed, "title": "Anchors"})
        until(lambda: listed(first, lambda found: found[closed] == "Anchors"), "the new name")
        address = str(acknowledged(first, {"type": "session.archive", "session": closed})["href"])
        at_gateway = {"Authorization": f"Bearer {server.key}"}
        assert httpx.get(f"http://127.0.0.1:{server.port}{address}", headers=at_gateway).status_code == 200
        done = acknowledged(first, {"type": "session.delete", "sessions": [closed, "none"]})
        assert done["sessions"] == [closed]
        assert "There is no session" in str(done["refused"])
        until(lambda: listed(first, lambda found: set(found) == {watched}), "it to be gone from the list")
        deleted = acknowledged(first, {"type": "session.deleted"})["list"]
        assert isinstance(deleted, list)
        assert [(one["id"], one["title"]) for one in deleted] == [(closed, "Anchors")]
        assert acknowledged(first, {"type": "session.restore", "sessions": [closed]})["sessions"] == [closed]
        until(lambda: listed(first, lambda found: set(found) == sessions), "it to be there again")
        acknowledged(first, {"type": "session.delete", "sessions": [closed]})
        assert acknowledged(first, {"type": "session.purge", "sessions": [closed]})["sessions"] == [closed]
        assert acknowledged(first, {"type": "session.deleted"})["list"] == []


@pytest.mark.no_prefix_law("two sessions at one endpoint say different things at the same turn")
def test_the_audit_has_what_was_decided_on_every_host(tmp_path: Path) -> None:
    """Asked on a machine that has none of the sessions; also of one in the trash, and not of one that is gone for good."""
    with (
        Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint,
        cluster(tmp_path, endpoint, "a", "b") as hosts,
        hosts.gateway() as server,
    ):
        sockets = [greeted(hosts, server, None) for _ in range(2)]
        sessions = [said(one, "Hello") for one in sockets]
        assert {hosts.holder(one) for one in sessions} == {"a", "b"}, "they are spread"
        for socket in sockets:
            for value in (True, False):
                acknowledged(socket, {"type": "lockdown", "value": value})

        def audited(name: str) -> list[tuple[str, str]]:
            ran = hosts.product(name).run("audit", "--json")
            assert (ran.status, ran.stderr) == (0, "")
            return sorted((one["session"], one["what"]) for one in map(json.loads, ran.stdout.splitlines()))

        both = sorted((one, what) for one in sessions for what in ("lockdown.begun", "lockdown.ended"))
        # A session goes on at another host, so that the first one has an older copy of it.
        hosts.run("move", sessions[0], "b" if hosts.holder(sessions[0]) == "a" else "a")
        again = greeted(hosts, server, sessions[0])
        acknowledged(again, {"type": "lockdown", "value": True})
        both = sorted([*both, (sessions[0], "lockdown.begun")])
        for name in ("a", "b", "desk"):
            assert audited(name) == both, name
        acknowledged(again, {"type": "session.delete", "sessions": [sessions[0]]})
        assert audited("desk") == both
        acknowledged(sockets[1], {"type": "session.purge", "sessions": [sessions[0]]})
        assert {session for session, _ in audited("desk")} == {sessions[1]}


def holding(folder: Path, word: bytes) -> list[str]:
    """The files below a folder that hold a word."""
    files = (one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    return [str(one.relative_to(folder)) for one in files if word in one.read_bytes()]


def test_what_is_deleted_for_good_at_the_page_is_gone_from_store_and_hosts(tmp_path: Path) -> None:
    """A session that both hosts have had: of what was said in it, nothing is left anywhere, and its id opens nothing."""
    replies: list[Reply | str] = ["A kumquat.", "Another kumquat.", "Hello."]
    with (
        Endpoint({"/": replies}, by_turn=True) as endpoint,
        cluster(tmp_path, endpoint, "a", "b") as hosts,
        hosts.gateway() as server,
        page_of(server) as page,
    ):
        say(page, "What is a kumquat?")
        expect(page.get_by_text("A kumquat.", exact=True)).to_have_count(1)
        session = re.findall(r"\d{8}-\d{6}-[0-9a-f]{8}", page.url)[0]
        here = hosts.holder(session)
        there = "b" if here == "a" else "a"
        hosts.run("move", session, there)
        said(greeted(hosts, server, session), "And now?")
        expect(page.get_by_text("Another kumquat.", exact=True)).to_have_count(1, timeout=30_000)
        assert holding(tmp_path / "shared", b"kumquat")
        page.get_by_role("tab", name="Sessions").click()
        row = page.locator(".session-row", has_text="What is a kumquat?")
        row.locator(".session-open").focus()
        page.keyboard.press("Delete")
        expect(row).to_have_count(0)
        page.get_by_text("Deleted (1)").click()
        page.get_by_role("button", name="Delete for good").click()
        page.locator(".session-actions .sure").click()
        expect(page.get_by_text("Deleted (1)")).to_be_hidden(timeout=20_000)
        until(lambda: not holding(tmp_path / "shared", b"kumquat"), "it to be gone from the store")
        journal = {
            one.name: one.read_bytes()
            for one in (tmp_path / "shared/sessions" / session / "journal").iterdir()
        }
        first, *between, last = [journal[name] for name in sorted(journal)]
        assert (first, {*between}, last) == (b"iact 1 deleted\n", {b""}, b"iact 1 deleted\n")
        assert {
            one.name for one in (tmp_path / "shared/sessions" / session).iterdir() if any(one.iterdir())
        } == {"journal"}
        other = hosts.processes.enter_context(server.connect())
        other.send(json.dumps({"type": "hello", "session": session, "since": 0, "id": 1}))
        frame = json.loads(other.recv(timeout=300))
        assert (frame["type"], frame["id"]) == ("error", 1)
        assert frame["message"] == (
            f"The session {session} was deleted for good. Nothing of it is left, and its id will not be used again."
        )
        assert not list((tmp_path / "shared" / "open").glob(f"*/{session}")), "no note says that it is open"
        # The host that had it before has a copy of what it had, until it tidies up.
        assert not holding(tmp_path / there / "sessions", b"kumquat")
        assert hosts.product(here).run("session", "tidy").status == 0
        for name in (here, there):
            assert not holding(tmp_path / name / "sessions", b"kumquat"), name
            assert not (tmp_path / name / "sessions" / session).exists()


def test_the_way_in_is_guarded_and_says_what_is_wrong(tmp_path: Path) -> None:
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint, cluster(tmp_path, endpoint, "a") as hosts:
        with hosts.gateway() as server:
            socket = greeted(hosts, server, None)
            session = said(socket, "First")
            link = str(acknowledged(socket, {"type": "address"})["url"])
            assert f":{server.port}/" in link, "it is the gateway that a browser signs in at"
            # What is to be downloaded waits at the host.
            path = str(acknowledged(socket, {"type": "export"})["href"])
            address = f"http://127.0.0.1:{server.port}{path}"
            assert httpx.get(address).status_code == 401
            got = httpx.get(address, headers={"Authorization": f"Bearer {server.key}"})
            assert got.status_code == 200
            assert "First" in got.text
            assert httpx.get(address, headers={"Authorization": f"Bearer {server.key}"}).status_code == 404
            told = json.loads(hosts.run("status", "--json"))[0]
            for place in (told["page"], told["control"]):
                assert httpx.get(f"http://{place}/").status_code == 401
                assert (
                    httpx.get(
                        f"http://{place}/", headers={"Authorization": f"Bearer {server.key}"}
                    ).status_code
                    == 401
                ), "what lets people in at a gateway lets nobody in at a host"
            other = hosts.processes.enter_context(server.connect())
            other.send(json.dumps({"type": "hello", "session": "none", "since": 0, "id": 1}))
            frame = json.loads(other.recv(timeout=300))
            assert (frame["type"], frame["id"]) == ("error", 1)
            assert "There is no session" in frame["message"]
            acknowledged(other, {"type": "hello", "session": session, "since": 0})
            refused = hosts.product("desk").run("cluster", "move", session, "nowhere")
            assert refused.sentence == "No host called nowhere is running. See: iact cluster status."
            refused = hosts.product("desk").run("cluster", "drain", "nowhere")
            assert refused.sentence == "No host called nowhere is running. See: iact cluster status."
        alone = Product(tmp_path / "alone", {})
        assert alone.run("cluster", "status").sentence.startswith("Several machines need a store")


@pytest.mark.parametrize("engine", ["ray", "static"])
def test_a_whole_cluster_on_one_machine_starts_hosts_again_that_are_killed(
    tmp_path: Path, engine: str
) -> None:
    """One command; a session goes on at another host when the process of its own is killed, and that comes back."""
    with Endpoint({"/": [Reply("Yes.", repeat=True)]}) as endpoint, ExitStack() as processes:
        (tmp_path / "d").mkdir()
        product = Product.at(
            tmp_path / "d",
            endpoint,
            **NO_MODULES,
            IACT_STORE=f"file://{tmp_path}/shared",
            IACT_CLUSTER="static",
        )
        arguments = ("cluster", "up", "--nodes", "3", "--engine", engine)
        server = processes.enter_context(product.serving(*arguments))
        hosts = Cluster(tmp_path, endpoint, processes)

        def running() -> list[str]:
            told = json.loads(product.run("cluster", "status", "--json").stdout)
            return [one["host"] for one in told]

        until(lambda: len(running()) == 3, "three hosts")
        socket = greeted(hosts, server, None)
        session = said(socket, "First")
        first = hosts.holder(session)
        found = json.loads((product.data / "nodes" / first / "server.json").read_text(encoding="utf-8"))
        os.kill(found["pid"], signal.SIGKILL)
        assert closed(socket) == 1013
        socket = greeted(hosts, server, session)
        assert said(socket, "Second") == session
        until(lambda: sorted(running()).count(first) == 1 and len(running()) == 3, "the host to come back")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(120) == 0
        holder = Product.at(product.data / "nodes" / hosts.holder(session), endpoint, **product.settings)
        assert holder.run("replay", "--verify", session).status == 0
        records = read_journal(holder.data / "sessions" / session / "journal.md").records
        assert [one.body for one in records if one.kind == "say"] == ["First", "Second"]
