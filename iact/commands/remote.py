"""Commands for a session running on a server, or in an `iact run`: `say`, `inject`, `pause`, `resume`, `cancel`, `clear`.

They use the page's websocket protocol, so a script can do from a shell what a person can do on the page, with the same
checks and acknowledgements. A command succeeds when its record is in the journal, and prints the number of that record.
"""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Final, TypeAlias

from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.sync.client import ClientConnection, connect

from iact import address, login
from iact.core.errors import IactError, UsageError
from iact.core.ports import JSON
from iact.core.records.control import Reword
from iact.core.records.record import Record
from iact.core.stored.journals import last_record, read_records
from iact.member_tls import member_tls
from iact.settings import Settings
from iact.web.limits import MAX_MESSAGE

Frame: TypeAlias = Mapping[str, JSON]
"""One message of the protocol."""

_PATIENCE: Final = 60.0
_WRONG: Final = ("usage", "invalid", "unknown")
_PIECE: Final = 128 * 1024
"""Bytes of a long message that are sent in one frame."""
_PING: Final = 5.0
"""Seconds between two questions whether the server is still there; `_PONG`: for its answer."""
_PONG: Final = 10.0
_RESTING: Final = ("idle", "done", "failed", "cancelled")


def control(settings: Settings, session: str, *messages: Frame, as_json: bool) -> int:
    """Send control messages to a session, one after another, and print the record number of the first.

    Raises:
        UsageError: the session, agent or argument is unknown or invalid.
        IactError: no server runs, or the server refuses; the message is the server's.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        n, *_ = [_number(wire.ask(message, answer.take)) for message in messages]
    print(json.dumps({"session": session, "n": n}) if as_json else n)
    return 0


def queued(settings: Settings, session: str, agent: str, *, as_json: bool) -> int:
    """Print the messages that wait for an agent, with their record numbers.

    Raises:
        UsageError: there is no such agent.
        IactError: as `control`.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        frame: Frame = {}
        while frame.get("type") != "tree":
            frame = wire.receive(_PATIENCE)
            answer.take(frame)

    texts = _texts(settings, session, _queued_for(agent, frame))
    if as_json:
        print(json.dumps([{"n": n, "text": text} for n, text in texts.items()], ensure_ascii=False))
        return 0

    for n, text in texts.items():
        print(f"{n}: {' '.join(text.split())}")
    return 0


def _queued_for(agent: str, tree: Frame) -> Sequence[JSON]:
    """The records of the messages that wait for an agent, by a frame with the tree.

    Raises:
        UsageError: there is no such agent.
    """
    nodes = tree["nodes"]
    for node in nodes if isinstance(nodes, list) else ():
        if isinstance(node, dict) and node.get("path") == agent:
            numbers = node.get("queued", [])
            return numbers if isinstance(numbers, list) else []
    raise UsageError(f"There is no agent {agent!r} in this session.")


def _texts(settings: Settings, session: str, numbers: Sequence[JSON]) -> dict[int, str]:
    """The texts of the messages at some records, as last edited."""
    records = _records(settings, session)
    texts = {n: records[n - 1].body for n in numbers if isinstance(n, int) and 0 < n <= len(records)}
    for record in records:
        if isinstance(record.content, Reword) and record.content.of in texts:
            texts[record.content.of] = record.body
    return texts


def _records(settings: Settings, session: str) -> list[Record]:
    """The records of a session of this data directory."""
    # Most commands read none, and this loads all rules of a session.
    from iact.core.stored.store import SessionStore

    return read_records(SessionStore(settings.data).path_of(session))


def ask_session(settings: Settings, session: str, message: Frame) -> Frame:
    """Send one message about a session and return the server's answer.

    Raises:
        UsageError, IactError: as `control`.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        return wire.ask(message, answer.take)


def ask_server(settings: Settings, message: Frame, *, patience: float | None = _PATIENCE) -> Frame | None:
    """Send one message that concerns no session to the server of the data directory. Returns None if no server runs.

    `patience`: seconds to wait for the answer; None waits as long as it takes.

    Raises:
        UsageError, IactError: the server refuses; the message is the server's.
    """
    try:
        there = address.find(settings.data)
    except address.NoServer:
        return None
    with _socket(there, _tls(settings, there)) as socket:
        return Wire(socket).ask(message, lambda frame: None, patience)


def ask_logged_in(settings: Settings, message: Frame) -> Frame:
    """Send one message that concerns no session to the server that the user is logged in to. Returns its answer.

    Raises:
        UsageError, IactError: the user is not logged in, or the server refuses; the message is the server's.
    """
    logged_in = login.read(settings.data)
    if logged_in is None:
        raise UsageError("You are not logged in to a server. Log in first: iact login ADDRESS")
    with _socket(logged_in.address) as socket:
        return Wire(socket).ask(message, lambda frame: None)


def new_address(settings: Settings, *, as_json: bool) -> int:
    """Print an address that lets one more browser sign in.

    Raises:
        IactError: no server runs.
    """
    address.find(settings.data)
    url = str((ask_server(settings, {"type": "address"}) or {}).get("url"))
    print(json.dumps({"url": url}) if as_json else url)
    return 0


def say(settings: Settings, session: str, message: Frame, *, wait: bool, as_json: bool) -> int:
    """Send the root a message, a `say` of the protocol. With `wait`, wait for its answer and print it.

    Raises:
        UsageError, IactError: as `control`; also if the root stopped without success.
    """
    if not wait:
        return control(settings, session, message, as_json=as_json)

    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        n = _number(wire.ask(message, answer.take))
        print(f"record {n}", file=sys.stderr, flush=True)
        reply = _wait(wire, answer, n, session)

    body = _whole(settings, session, reply)
    is_ok = reply.status == "ok"
    if as_json:
        status = "done" if is_ok else reply.status
        print(json.dumps({"session": session, "n": n, "reply": body, "status": status}, ensure_ascii=False))
        return 0 if is_ok else 1

    if not is_ok:
        raise IactError(body)
    print(body)
    return 0


def _wait(wire: Wire, answer: WaitedAnswer, n: int, session: str) -> WaitedReply:
    """Take frames until the root has answered record `n`. If the root is paused and can't, that is printed once."""
    has_told = False
    while (reply := answer.to(n)) is None:
        if answer.state == "paused" and not has_told:
            print(
                f"note: the root is paused; resume it with: iact resume --session {session}",
                file=sys.stderr,
            )
            has_told = True

        answer.take(wire.receive(None))
        if answer.failure:
            raise IactError(answer.failure)

    return reply


@dataclass(frozen=True, slots=True)
class WaitedReply:
    """A message from the root to the user."""

    n: int
    body: str
    status: str
    whole: bool
    """Whether `body` is the complete text."""


@dataclass(slots=True)
class WaitedAnswer:
    """Watches the root in a stream of frames: its replies, and whether it is at rest. Takes frames in any order."""

    replies: list[WaitedReply] = field(default_factory=list)
    state: str = ""
    """The root's, in the newest tree."""
    record: int = 0
    """The record that tree is as of."""
    failure: str = ""
    """Why the session stopped, if it did."""

    def take(self, frame: Frame) -> None:
        """Process the next frame."""
        match frame:
            case {"type": "record", "kind": "reply", "agent": "/", "n": int(n), "body": str(body)}:
                status = frame.get("status")
                whole = "body_size" not in frame
                self.replies.append(WaitedReply(n, body, status if isinstance(status, str) else "ok", whole))
            case {"type": "tree", "nodes": [{"path": "/", "state": str(state), "record": int(n)}, *_]}:
                self.state = state
                self.record = n
            case {"type": "notice", "level": "error", "text": str(text)}:
                self.failure = text

    def to(self, n: int) -> WaitedReply | None:
        """The root's last reply after record `n`, or None until the root is at rest with that reply."""
        later = [reply for reply in self.replies if reply.n > n]
        if not later or self.state not in _RESTING:
            return None

        # A tree from before the reply says nothing about what the root does now.
        return later[-1] if self.record >= later[-1].n else None


class Wire:
    """The client's side of one websocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def ask(
        self, message: Frame, other: Callable[[Frame], None], patience: float | None = _PATIENCE
    ) -> Frame:
        """Send a message and return its `ok`, within `patience` seconds. Other frames are passed to `other`.

        Raises:
            UsageError: the server reports that the message is invalid.
            IactError: the server refuses for another reason, or is gone.
        """
        identity = f"iact-{next(self._numbers)}"
        text = json.dumps({**message, "id": identity}, ensure_ascii=False)
        size = len(text.encode("utf-8", "replace"))

        if size > MAX_MESSAGE and message.get("type") == "say":
            return self.ask(self._handed_over(message, other), other, patience)
        if size > MAX_MESSAGE:
            raise UsageError(
                f"The message has {size // 1024:,} kB; the server accepts {MAX_MESSAGE // 1024} kB. Hand it to the root "
                "with iact say, which sends a long message as a file."
            )

        try:
            self._socket.send(text)
        except ConnectionClosed as error:
            raise _gone(error) from error
        frame = self._answer_to(identity, other, patience)
        if frame.get("type") == "ok":
            return frame

        sentence = str(frame.get("message"))
        raise UsageError(sentence) if frame.get("code") in _WRONG else IactError(sentence)

    def _answer_to(self, identity: str, other: Callable[[Frame], None], patience: float | None) -> Frame:
        """The frame that answers a message, within `patience` seconds. Other frames are passed to `other`."""
        end = None if patience is None else time.monotonic() + patience
        while True:
            seconds = None if end is None else max(0.0, end - time.monotonic())
            frame = self.receive(seconds)
            if frame.get("id") == identity:
                return frame
            other(frame)

    def _handed_over(self, message: Frame, other: Callable[[Frame], None]) -> Frame:
        """Send the text of a message like a file. Returns the message that refers to it."""
        content = str(message["text"]).encode("utf-8", "replace")
        self.ask(
            {"type": "upload", "name": "message.md", "media": "text/markdown", "size": len(content)}, other
        )
        try:
            for start in range(0, len(content), _PIECE):
                self._socket.send(content[start : start + _PIECE])
        except ConnectionClosed as error:
            raise _gone(error) from error

        rest = {name: value for name, value in message.items() if name != "text"}
        return {**rest, "uploaded": True}

    def receive(self, seconds: float | None) -> Frame:
        """The next frame.

        Raises:
            IactError: the server is gone, or sends no frame within `seconds`.
        """
        try:
            frame = json.loads(self._socket.recv(timeout=seconds))
        except TimeoutError as error:
            raise IactError(f"The server did not answer within {_PATIENCE:.0f} seconds.") from error
        except ConnectionClosed as error:
            raise _gone(error) from error
        except ValueError as error:
            raise IactError("The server sent something that is not a message of iact's protocol.") from error
        return frame if isinstance(frame, dict) else {}


def _gone(error: ConnectionClosed) -> IactError:
    reason = error.rcvd.reason if error.rcvd is not None else ""
    said = f" ({reason})" if reason else ""
    return IactError(
        f"The server closed the connection{said}. Everything that it had acknowledged is in the session's journal."
    )


@contextmanager
def _connected(settings: Settings, session: str, answer: WaitedAnswer) -> Iterator[tuple[Wire, WaitedAnswer]]:
    """Open a connection that watches `session`.

    It leads to the server that the user is logged in to, or else to the `iact run` that runs the session, or else to
    the local server.
    """
    logged_in = login.read(settings.data)
    if logged_in is not None:
        there = logged_in.address
    else:
        there = address.find_run(settings.data, session) or address.find(settings.data)
    with _socket(there, _tls(settings, there)) as socket:
        wire = Wire(socket)
        since = last_record(settings.data / "sessions" / session) if logged_in is None else 0
        wire.ask({"type": "hello", "session": session, "since": since}, answer.take)
        yield wire, answer


def _tls(settings: Settings, there: address.Address) -> SSLContext | None:
    """The client certificate that the data directory's server requires, if it is a host that uses TLS."""
    if not there.pid or not there.url.startswith("https://"):
        return None
    tls = member_tls(settings)
    return tls.client if tls else None


@contextmanager
def _socket(there: address.Address, tls: SSLContext | None = None) -> Iterator[ClientConnection]:
    try:
        socket = connect(
            there.socket,
            ssl=tls,
            additional_headers={"Authorization": f"Bearer {there.key}"},
            proxy=None,
            compression=None,
            max_size=None,
            ping_interval=_PING,
            ping_timeout=_PONG,
        )
    except (OSError, WebSocketException) as error:
        process = f" (process {there.pid})" if there.pid else ""
        raise IactError(f"The server at {there.page}{process} can't be reached: {error}.") from error
    with socket:
        yield socket


def _number(frame: Frame) -> int:
    n = frame.get("n")
    if not isinstance(n, int):
        raise IactError("The server acknowledged the message without a record number.")
    return n


def _whole(settings: Settings, session: str, reply: WaitedReply) -> str:
    """The complete text of a reply. The server sends only the beginning of very long ones."""
    if reply.whole or login.read(settings.data) is not None:
        return reply.body
    return _records(settings, session)[reply.n - 1].body
