"""The store is gone, slow, full, or loses answers: nothing acknowledged is lost, and users see what is wrong.

An S3 server, with a proxy in front of it that fails as networks and providers do.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from moto.server import ThreadedMotoServer

from iact.cluster.objects import open_objects
from tests.acceptance.conftest import Stage
from tests.acceptance.laws import journal_law
from tests.acceptance.product import NO_MODULES, Product
from tests.rounds import rounds

Fault = Literal["away", "slow", "lost answer", "full"]


@dataclass
class Proxy:
    """`fault`: what happens to each request that would write a segment, but for the first ones that are `spared`, `left`
    times, and then no more. `hit`: how often it did."""

    behind: str
    fault: Fault | None = None
    left: int = 0
    spared: int = 0
    hit: list[str] = field(default_factory=list)
    url: str = ""

    def take(self, method: str, path: str, body: bytes) -> Fault | None:
        """What happens to this request. A session that is only being opened has nobody yet who could be told."""
        segment = method == "PUT" and "/journal/" in path and b'"kind":"epoch"' not in body
        if self.fault is None or self.left <= 0 or not segment:
            return None
        if self.spared:
            self.spared -= 1
            return None
        self.left -= 1
        self.hit.append(path)
        return self.fault

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """What the server behind answers."""
        typed = {"Content-Type": "application/octet-stream", **headers}  # else it would be taken for a form
        asked = urllib.request.Request(self.behind + path, data=body or None, headers=typed, method=method)
        try:
            with urllib.request.urlopen(asked) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextmanager
def proxied(behind: str) -> Iterator[Proxy]:
    proxy = Proxy(behind)
    slow = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name != "Content-Length"}
            fault = proxy.take(self.command, self.path, body)
            if fault == "slow":
                slow.wait(1.5)
            if fault == "full":
                self._answer(
                    507, b"<Error><Code>InsufficientStorage</Code><Message>It is full.</Message></Error>"
                )
                return
            status, data = (
                (0, b"") if fault == "away" else proxy.forward(self.command, self.path, headers, body)
            )
            if fault in ("away", "lost answer"):
                self.close_connection = True
                self.connection.close()
                return
            self._answer(status, data)

        def _answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("ETag", '"0"')
            self.send_header("Last-Modified", "Sun, 22 Nov 2026 20:00:00 GMT")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield proxy
    finally:
        slow.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    try:
        # Servers of one process have their buckets in common: what an earlier test left is none of this one's.
        for method, path in (("POST", "moto-api/reset"), ("PUT", "faults")):
            request = urllib.request.Request(f"http://{host}:{port}/{path}", method=method)
            urllib.request.urlopen(request).close()
        with proxied(f"http://{host}:{port}") as made:
            yield made
    finally:
        moto.stop()


def _product(stage: Stage, proxy: Proxy, *replies: str) -> Product:
    endpoint = stage.endpoint({"*": [*replies]}, by_turn=True)
    given = {"AWS_ENDPOINT_URL": proxy.url, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "k"}
    return stage.product(endpoint, **NO_MODULES, **given, IACT_STORE="s3://faults/iact", IACT_HOST="a")


def test_whatever_the_store_does_nothing_acknowledged_is_lost(stage: Stage, proxy: Proxy) -> None:
    product = _product(stage, proxy, "One.", "Two.", "Three.", "Four.", "Five.")
    session = product.ask("Are you there?").session
    replies = ["One."]
    faults: list[tuple[Fault, int]] = [
        ("lost answer", 2), ("slow", 2), ("away", min(19, rounds(4))), ("full", 3),
    ]  # fmt: skip
    for fault, times in faults:
        proxy.fault, proxy.left = fault, times
        before = len(proxy.hit)
        ran = product.run("run", "--json", "--session", session, f"The store: {fault}.")
        assert ran.status == 0, ran
        replies.append(ran.answer().reply)
        assert len(proxy.hit) - before == times
        # People read it when something is wrong, and when it is over; slowness alone is no fault.
        told = "does not answer" in ran.stderr
        assert told == (fault != "slow"), ran.stderr
        assert ("answers again" in ran.stderr) == told
    assert replies == ["One.", "Two.", "Three.", "Four.", "Five."]
    exported = product.run("journal", "export", session)
    journal = product.data / "sessions" / session / "journal.md"
    assert exported.stdout.encode() == journal.read_bytes()
    said = [one.body for one in journal_law(journal) if one.kind == "say"]
    assert said == ["Are you there?", *(f"The store: {fault}." for fault, _ in faults)]
    assert json.loads(product.run("replay", session, "--verify", "--json").stdout)["verified"]


def test_a_purge_that_was_cut_off_is_ended_by_the_next_clean_up(
    stage: Stage, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store goes away before, at and after the tombstone. The session is either whole, or nobody has it any more."""
    product = _product(stage, proxy, "One.", "Two.", "Three.")
    session = product.ask("What is a kumquat?").session
    product.ask("And a quince?", session=session)
    assert product.run("session", "delete", session).status == 0

    def away(asked: int) -> None:
        """From this many requests on that would write a segment, for the rest of the command."""
        proxy.fault, proxy.left, proxy.spared = "away", 1_000_000, asked

    away(0)
    refused = product.run("session", "delete", "--now", session)
    assert refused.status == 2
    assert "gave no answer" in refused.sentence
    proxy.left = 0
    assert product.run("session", "restore", session).status == 0
    assert product.ask("Still there?", session=session).reply == "Three."
    assert product.run("session", "delete", session).status == 0
    away(3)  # the tombstone, and two of those that are to be emptied
    assert product.run("session", "delete", "--now", session).status == 2
    proxy.left = 0
    for command in (("session", "restore", session), ("run", "--session", session, "More")):
        assert f"The session {session} was deleted for good." in product.run(*command).sentence, command
    assert [one.parent.parent.name for one in product.data.glob("sessions/.trash/*/session/journal.md")] == [
        session
    ]
    assert product.run("session", "tidy").status == 0
    assert not list(product.data.glob("sessions/.trash/*"))
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, product.settings[name])
    objects = open_objects("s3://faults/iact")
    assert {objects.get(name) for name in objects.names(f"sessions/{session}/")} == {b"", b"iact 1 deleted\n"}
    assert not list(objects.names("purging/"))
