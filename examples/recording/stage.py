"""Runs one session on the real product, as a person at the page would, with a scripted model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from websockets.sync.client import ClientConnection

from iact.core.records.calls import ClearanceAsk
from tests.acceptance.product import Product, Server, acknowledged, until
from tests.acceptance.test_scenes import Spoken, served
from tests.endpoint import Endpoint, Reply, Script

PATIENCE = 300.0
"""Seconds to wait for one answer. Containers must start, and packages may have to be downloaded."""

_CHUNK, _DELAY = 12, 0.015
"""Characters per event, and seconds between two events: about the pace of a model, so that a replay looks real."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person at the page of a server, with one session."""

    product: Product
    server: Server

    @property
    def folder(self) -> Path:
        """The session's directory. It exists after the first message."""
        (journal,) = self.product.journals()
        return journal.parent

    @property
    def spoken(self) -> Spoken:
        """The session on disk."""
        return Spoken(self.product, self.folder.name)

    @contextmanager
    def page(self) -> Iterator[ClientConnection]:
        """A page that shows the session, or no session yet. It is only open while it is read."""
        known = self.folder.name if self.product.journals() else None
        with self.server.connect() as socket:
            self._tell(socket, {"type": "hello", "session": known, "since": 0})
            yield socket

    def tell(self, message: Mapping[str, object]) -> None:
        """Send a message and wait for its `ok`."""
        with self.page() as socket:
            self._tell(socket, message)

    def say(self, text: str) -> None:
        """Send a message to the root, and do not wait."""
        self.tell({"type": "say", "text": text})

    def upload(self, name: str, media: str, content: bytes) -> None:
        """Drop a file on the page."""
        with self.page() as socket:
            self._tell(socket, {"type": "upload", "name": name, "media": media, "size": len(content)})
            socket.send(content)
            self._tell(socket, {"type": "upload.end"})

    def answered(self, count: int = 1) -> None:
        """Wait until the root has replied `count` times."""

        def replies() -> bool:
            found = [one for one in self.spoken.records() if one.kind == "reply" and one.agent == "/"]
            return len(found) >= count

        until(replies, f"answer {count}", within=PATIENCE)

    def asked(self) -> int:
        """Wait for a call that needs clearance. Returns the number with which it is cleared."""
        found: list[int] = []

        def there() -> bool:
            found[:] = [one.n for one in self.spoken.records() if isinstance(one.content, ClearanceAsk)]
            return bool(found)

        until(there, "a question to a person", within=PATIENCE)
        return found[0]

    @staticmethod
    def _tell(socket: ClientConnection, message: Mapping[str, object]) -> None:
        acknowledged(socket, dict(message), within=PATIENCE)


@contextmanager
def performed(
    data: Path, script: Script, *, policy: str = "", modules: Sequence[Path] = ()
) -> Iterator[Person]:
    """Yield a person at a new session. At the end, closes the server and checks that the whole script was used.

    `policy`: the content of `policy.toml`. `modules`: folders that the person has added and approved before.
    """
    if policy:
        (data / "policy.toml").write_text(policy, encoding="utf-8")
    with Endpoint(_paced(script)) as endpoint:
        product = Product.at(data, endpoint)
        for folder in modules:
            for ran in (
                product.run("module", "add", str(folder), seconds=PATIENCE),
                product.agree("module", "approve", folder.name, seconds=PATIENCE),
            ):
                assert ran.status == 0, ran
        with served(product) as server:
            yield Person(product, server)
    endpoint.conversation.check()
    endpoint.assert_used()


def _paced(script: Script) -> Script:
    """The same script, sent at the pace of a model."""
    if callable(script):
        return lambda request: _slow(script(request))
    return {path: [_slow(reply) for reply in replies] for path, replies in script.items()}


def _slow(reply: Reply | str) -> Reply:
    made = Reply(reply) if isinstance(reply, str) else reply
    return replace(made, chunk=_CHUNK, delay=_DELAY)
