"""Commands on a session that a running server holds: `say`, `inject`, `pause`, `resume`, `cancel`, `clear`.

They speak the page's own websocket protocol, so what a person can do in the page a script can do from
a shell, with the same checks and the same acknowledgements: a command ends well when its record is in
the journal, and prints that record's number.
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
from iact.core.session.journals import read_records
from iact.core.session.store import SessionStore
from iact.member_tls import member_tls
from iact.settings import Settings
from iact.web.limits import MAX_MESSAGE

Frame: TypeAlias = Mapping[str, JSON]
"""One message of the protocol."""

_PATIENCE: Final = 60.0
_WRONG: Final = ("usage", "invalid", "unknown")
_RESTING: Final = ("idle", "done", "failed", "cancelled")


def control(settings: Settings, session: str, *messages: Frame, as_json: bool) -> int:
    """Send control messages to a session, one after the other, and print the number of the first one's record.

    Raises:
        UsageError: no such session, agent or argument.
        IactError: no server runs, or it refuses; the sentence is its own.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        n, *_ = [_number(wire.ask(message, answer.take)) for message in messages]
    print(json.dumps({"session": session, "n": n}) if as_json else n)
    return 0


def queued(settings: Settings, session: str, agent: str, *, as_json: bool) -> int:
    """Print what was said to an agent and waits, with the numbers of its records.

    Raises:
        UsageError: there is no such agent.
        IactError: as `control`.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        frame: Frame = {}
        while frame.get("type") != "tree":
            frame = wire.receive(_PATIENCE)
            answer.take(frame)
    listed = frame["nodes"]
    nodes = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    found = next((one for one in nodes if one.get("path") == agent), None)
    if found is None:
        raise UsageError(f"There is no agent {agent!r} in this session.")
    numbers = found.get("queued", [])
    texts = _texts(settings, session, numbers if isinstance(numbers, list) else [])
    if as_json:
        print(json.dumps([{"n": n, "text": text} for n, text in texts.items()], ensure_ascii=False))
    else:
        for n, text in texts.items():
            print(f"{n}: {' '.join(text.split())}")
    return 0


def _texts(settings: Settings, session: str, numbers: Sequence[JSON]) -> dict[int, str]:
    """What the messages of some records say, in the words that were chosen last."""
    records = read_records(SessionStore(settings.data).path_of(session))
    texts = {n: records[n - 1].body for n in numbers if isinstance(n, int) and 0 < n <= len(records)}
    for record in records:
        if isinstance(record.content, Reword) and record.content.of in texts:
            texts[record.content.of] = record.body
    return texts


def ask_session(settings: Settings, session: str, message: Frame) -> Frame:
    """Send one message about a session, and give the server's answer.

    Raises:
        UsageError, IactError: as `control`.
    """
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        return wire.ask(message, answer.take)


def ask_server(settings: Settings, message: Frame, *, patience: float | None = _PATIENCE) -> Frame | None:
    """Send one message that is about no session to the server of the data directory; None if none runs.

    `patience`: seconds to wait for the answer; None: as long as it takes.

    Raises:
        UsageError, IactError: it refuses; the sentence is its own.
    """
    try:
        there = address.find(settings.data)
    except address.NoServer:
        return None
    with _socket(there, _tls(settings, there)) as socket:
        return Wire(socket).ask(message, lambda frame: None, patience)


def ask_logged_in(settings: Settings, message: Frame) -> Frame:
    """Send one message that is about no session to the server that one is logged in to; gives its answer.

    Raises:
        UsageError, IactError: nobody is logged in, or it refuses; the sentence is its own.
    """
    logged_in = login.read(settings.data)
    if logged_in is None:
        raise UsageError("You are logged in to no server. Log in first: iact login ADDRESS")
    with _socket(logged_in.address) as socket:
        return Wire(socket).ask(message, lambda frame: None)


def new_address(settings: Settings, *, as_json: bool) -> int:
    """Print an address that lets one more browser in.

    Raises:
        IactError: no server runs.
    """
    address.find(settings.data)
    url = str((ask_server(settings, {"type": "address"}) or {}).get("url"))
    print(json.dumps({"url": url}) if as_json else url)
    return 0


def say(settings: Settings, session: str, message: Frame, *, wait: bool, as_json: bool) -> int:
    """Say something to the root, a `say` of the protocol; with `wait`, print what it answers, when it has come to rest.

    Raises:
        UsageError, IactError: as `control`; also if the root came to rest without success.
    """
    if not wait:
        return control(settings, session, message, as_json=as_json)
    with _connected(settings, session, WaitedAnswer()) as (wire, answer):
        n = _number(wire.ask(message, answer.take))
        print(f"record {n}", file=sys.stderr, flush=True)
        reply = _wait(wire, answer, n, session)
    body = _whole(settings, session, reply)
    if as_json:
        status = "done" if reply.status == "ok" else reply.status
        print(json.dumps({"session": session, "n": n, "reply": body, "status": status}, ensure_ascii=False))
        return 0 if reply.status == "ok" else 1
    if reply.status != "ok":
        raise IactError(body)
    print(body)
    return 0


def _wait(wire: Wire, answer: WaitedAnswer, n: int, session: str) -> WaitedReply:
    """Take frames until the root has answered record `n`; a root that is paused can't, which is told once."""
    told = False
    while (reply := answer.to(n)) is None:
        if answer.state == "paused" and not told:
            print(
                f"note: the root is paused; let it go on with: iact resume --session {session}",
                file=sys.stderr,
            )
            told = True
        answer.take(wire.receive(None))
        if answer.failure:
            raise IactError(answer.failure)
    return reply


@dataclass(frozen=True, slots=True)
class WaitedReply:
    """A message of the root to the user. `whole`: `body` is all of it."""

    n: int
    body: str
    status: str
    whole: bool


@dataclass(slots=True)
class WaitedAnswer:
    """Watches the root in a stream of frames: its replies, and whether it rests. Takes frames in any order.

    `failure`: why the session has stopped, if it has.
    """

    replies: list[WaitedReply] = field(default_factory=list)
    state: str = ""
    record: int = 0
    failure: str = ""

    def take(self, frame: Frame) -> None:
        """The next frame."""
        match frame:
            case {"type": "record", "kind": "reply", "agent": "/", "n": int(n), "body": str(body)}:
                status = frame.get("status")
                whole = "body_size" not in frame
                self.replies.append(WaitedReply(n, body, status if isinstance(status, str) else "ok", whole))
            case {"type": "tree", "nodes": [{"path": "/", "state": str(state), "record": int(n)}, *_]}:
                self.state, self.record = state, n
            case {"type": "notice", "level": "error", "text": str(text)}:
                self.failure = text

    def to(self, n: int) -> WaitedReply | None:
        """The root's last reply behind record `n`, once it rests with that; None before."""
        late = [reply for reply in self.replies if reply.n > n]
        rests = self.state in _RESTING
        return late[-1] if late and rests and self.record >= late[-1].n else None


class Wire:
    """The client's side of one websocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def ask(
        self, message: Frame, other: Callable[[Frame], None], patience: float | None = _PATIENCE
    ) -> Frame:
        """Send a message and give its `ok`, within `patience` seconds; what comes in between goes to `other`.

        Raises:
            UsageError: the server says that the message is wrong.
            IactError: it refuses for another reason, or is gone.
        """
        identity = f"iact-{next(self._numbers)}"
        text = json.dumps({**message, "id": identity}, ensure_ascii=False)
        if len(text.encode("utf-8", "replace")) > MAX_MESSAGE:
            raise UsageError(
                f"The message is longer than the {MAX_MESSAGE // 1024} kB that the server takes."
            )
        try:
            self._socket.send(text)
        except ConnectionClosed as error:
            raise _gone(error) from error
        end = None if patience is None else time.monotonic() + patience
        while True:
            frame = self.receive(None if end is None else max(0.0, end - time.monotonic()))
            if frame.get("id") != identity:
                other(frame)
            elif frame.get("type") == "ok":
                return frame
            else:
                wrong = frame.get("code") in _WRONG
                raise (UsageError if wrong else IactError)(str(frame.get("message")))

    def receive(self, seconds: float | None) -> Frame:
        """The next frame.

        Raises:
            IactError: the server is gone, or sends none within `seconds`.
        """
        try:
            frame = json.loads(self._socket.recv(timeout=seconds))
        except TimeoutError as error:
            raise IactError(f"The server did not answer within {_PATIENCE:.0f} seconds.") from error
        except ConnectionClosed as error:
            raise _gone(error) from error
        except ValueError as error:
            raise IactError("The server sent something that is not a message of ours.") from error
        return frame if isinstance(frame, dict) else {}


def _gone(error: ConnectionClosed) -> IactError:
    said = f" ({error.rcvd.reason})" if error.rcvd is not None and error.rcvd.reason else ""
    return IactError(
        f"The server closed the connection{said}; what it had acknowledged is in the session's journal."
    )


@contextmanager
def _connected(settings: Settings, session: str, answer: WaitedAnswer) -> Iterator[tuple[Wire, WaitedAnswer]]:
    """A connection that watches `session` from here on: to where one is logged in, or to the data directory's server."""
    logged_in = login.read(settings.data)
    there = address.find(settings.data) if logged_in is None else logged_in.address
    with _socket(there, _tls(settings, there)) as socket:
        wire = Wire(socket)
        since = SessionStore(settings.data).last_record(session) if logged_in is None else 0
        wire.ask({"type": "hello", "session": session, "since": since}, answer.take)
        yield wire, answer


def _tls(settings: Settings, there: address.Address) -> SSLContext | None:
    """What the server of the data directory wants to be shown, where it is a host that speaks encrypted."""
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
        )
    except (OSError, WebSocketException) as error:
        process = f" (process {there.pid})" if there.pid else ""
        raise IactError(f"The server at {there.page}{process} can't be reached: {error}.") from error
    with socket:
        yield socket


def _number(frame: Frame) -> int:
    n = frame.get("n")
    if not isinstance(n, int):
        raise IactError("The server acknowledged without saying at which record.")
    return n


def _whole(settings: Settings, session: str, reply: WaitedReply) -> str:
    """The whole text of a reply; the server sends only the beginning of very long ones."""
    if reply.whole or login.read(settings.data) is not None:
        return reply.body
    return read_records(SessionStore(settings.data).path_of(session))[reply.n - 1].body
