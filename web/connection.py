"""One websocket from its opening to its end: checked commands in, answers and a session's news out.

A client that floods is refused and then disconnected; a client that doesn't read is disconnected, too. Either resumes
by record number when it reconnects, and neither slows down the session.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import from_json
from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed

from iact.accounts.people import AuditKind
from iact.accounts.rights import LOCAL, RULES, Forbidden, LinkView, Principal, Right, Role, may, refusal
from iact.core.errors import (
    ForeignSession,
    IactError,
    JournalError,
    JournalLocked,
    JournalUnwritable,
    UsageError,
)
from iact.core.rates import Rate, TokenBucket
from iact.core.records.record import Record
from iact.core.session.person import acting
from iact.core.stored.store import SessionStore
from iact.core.views.view import NodeView
from iact.web.commands import COMMANDS
from iact.web.downloads import Content, Downloads, View
from iact.web.files import FileMessages
from iact.web.follower import Cursor, Follower, node_fields, show_end
from iact.web.history import RecordHistory
from iact.web.outbox import Outbox, SlowReader
from iact.web.ports import (
    Board,
    BoardState,
    People,
    PeopleRegister,
    Product,
    Runtime,
    Session,
    SharedSetup,
    Tenant,
    Tenants,
)
from iact.web.records import Fields
from iact.web.render_cache import RenderCache, html_of
from iact.web.render_tasks import blob_text
from iact.web.safe_text import visible, without_escapes
from iact.web.said_once import AnsweredMessages
from iact.web.sessions import standing_fields
from iact.web.shared_view import SharedHistory, SharedView
from iact.web.stored_session import StoredSession, StoredSessions
from iact.web.uploads import IncomingFile, Uploads
from iact.web.wire import answers
from iact.web.wire.news import BoardNews, News

_log = logging.getLogger("iact.web")

MESSAGES_PER_SECOND: Final = 30.0
BURST: Final = 60
_WHOLE: Final = 2_000_000
"""The most characters of one record that are sent for display."""
REFUSALS_BEFORE_CLOSE: Final = 120
_HEAD_START: Final = 0.3
"""Seconds between showing the end of a long session and reading all of it."""

MOVED: Final = 4009
"""The code with which a websocket is closed when its session moves to another server."""

ENDED: Final = 4003
"""The code with which it is closed when its client lost access, or has another role on the session now."""

_NONE_WATCHED: Final = "This connection watches no session. Send hello with a session, or open one, first."

_CODES: Final[tuple[tuple[type[IactError], str], ...]] = (
    (Forbidden, "forbidden"),
    (UsageError, "usage"),
    (JournalLocked, "locked"),
    (ForeignSession, "foreign"),
    (JournalUnwritable, "unwritable"),
    (JournalError, "journal"),
    (IactError, "failed"),
)


@dataclass(frozen=True, slots=True)
class Shared:
    """State that all connections of one server share."""

    new_url: Callable[[], str] | None = None
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many requests were refused, by channel (websocket or HTTP) and the answer's code."""
    rendered: RenderCache = field(default_factory=RenderCache)
    stored: StoredSessions = field(default_factory=StoredSessions)
    uploads: Uploads = field(default_factory=Uploads)
    downloads: Downloads = field(default_factory=Downloads)
    said: AnsweredMessages[answers.InSession] = field(default_factory=AnsweredMessages)
    injected: AnsweredMessages[answers.Recorded] = field(default_factory=AnsweredMessages)
    """What clients may send again, because the line lost the answer."""
    tenants: Tenants | None = None
    people: People | None = None
    register: PeopleRegister | None = None
    setup: SharedSetup | None = None
    """For several users: what each has, what was granted to whom, and what is set for all users."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where a session is: which tenant has it, and the client's role in it. `owner`: the owner's name, if it is another
    user."""

    tenant: Tenant
    role: Role = "owner"
    owner: str = ""
    shows: LinkView | None = None
    """What the link leaves out, if the client came by a link."""

    @property
    def shows_a_part(self) -> bool:
        """Whether the client came by a link that leaves something out."""
        return self.shows is not None and self.shows != LinkView()

    def permits(self, right: Right) -> bool:
        """Whether what a link shows is enough for a right. It never is for more than seeing the session."""
        rule = RULES[right]
        return self.shows is None or rule.links or rule.roles is None


_LOOKS: Final = 2.0
"""Seconds between two checks whether a client still has access."""
_BOARD_SECONDS: Final = 0.25
"""Seconds between two reports of a download: more often, nobody sees a difference."""
_WAITING: Final = 100
"""How many messages may wait for a session to open."""
_ARRIVED: Final = 32
"""How many messages are read ahead while one is carried out."""


@dataclass(slots=True)
class Opening:
    """A session that is being read. Its newest `records` are shown, and requests wait until it is open."""

    records: Mapping[int, Record]
    folder: Path
    early: dict[int, Fields]
    """How they were rendered before more was known."""
    waiting: list[tuple[str, str | int | None, Mapping[str, object]]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None


_ID: Final = re.compile(r'(?<!\\)"id"\s*:\s*("(?:[^"\\]|\\.){0,600}"|-?\d{1,18})')
_PING_WITHIN: Final = 400
"""How many characters a ping may have."""
_ID_WITHIN: Final = 1 << 16
"""How many characters of an unreadable message are searched for its id."""


class Connection:
    """Serves one open websocket until it closes. Times are in seconds. `own`: what `who` owns, or None.

    It has one place in a session at a time: it watches none, waits for one that is being read (`_opening`), or watches
    one (`_session`, with its follower, history and files, which change together).
    """

    def __init__(
        self,
        socket: ServerConnection,
        who: Principal,
        own: Tenant | None,
        shared: Shared,
        *,
        send_timeout: float = 10.0,
        hello_timeout: float = 10.0,
    ) -> None:
        self._socket = socket
        self._outbox = Outbox(socket, timeout=send_timeout)
        self.who: Final = who
        self._own = own
        self._place: Whereabouts | None = None if own is None else Whereabouts(own)
        self._guest = AsyncExitStack()
        """Keeps open what the owner of the watched session has, if that is another user."""
        self._shared = shared

        self._asked: str | int | None = None
        """The id of the message that is being answered."""
        self._arrived = asyncio.Queue[str | bytes | None](_ARRIVED)
        """What came and is not carried out yet; None: nothing more comes."""
        self._bucket = TokenBucket(Rate(MESSAGES_PER_SECOND, BURST))
        self._refused = 0
        """How many messages were refused because too many came at once."""
        self._hello_timeout = hello_timeout

        self._incoming: IncomingFile | None = None
        """The announced file."""
        self._upload: str | int | None = None
        """The id of the message that announced it."""

        self._session: Session | None = None
        """The watched session, and below what follows from it; None: none is watched, or it is being read."""
        self._history: RecordHistory | None = None
        self._files: FileMessages | None = None
        self._follower: asyncio.Task[None] | None = None
        self._opening: Opening | None = None
        """The session that is being read, to be watched then."""
        self._cursor = Cursor()
        self._turn = asyncio.Lock()
        """The client's place in the queue for rendering."""

        self._standings: asyncio.Task[None] | None = None
        """Reports the sessions that change, once the client has asked for that."""
        self._board: asyncio.Task[None] | None = None
        """Reports how far the model on board is."""

    async def serve(self) -> None:
        """Run until the client leaves or is disconnected."""
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                access_check = tasks.create_task(self._look_again())
                try:
                    await self._read()
                finally:
                    access_check.cancel()
                    await self._let_go()
        except* (ConnectionClosed, SlowReader):
            pass
        except* Exception as group:
            _log.error("A websocket connection ended by an error.", exc_info=group, extra=self._about)
            await self._outbox.cut(1011, "internal error; see the server's log")

    async def _let_go(self) -> None:
        """End everything that this client alone needed."""
        self._no_upload()

        reports = (self._standings, self._board)
        for report in reports:
            if report is not None:
                report.cancel()

        if self._opening is not None and self._opening.task is not None:
            self._opening.task.cancel()
        await self._unfollow()
        await self._guest.aclose()

    @property
    def _about(self) -> Mapping[str, str]:
        """The user and the watched session, for the log."""
        return {"user": self.who.user, "session": self.watches}

    @property
    def watches(self) -> str:
        """The session that the client watches, or will when it has been read; empty if none."""
        if self._opening is not None:
            return self._opening.folder.name
        return self._session.id if self._session is not None else ""

    async def send_away(self) -> None:
        """Close, so that the client reconnects and is led to its session's new host."""
        await self._outbox.cut(MOVED, "the session is served elsewhere now")

    async def _look_again(self) -> None:
        """Disconnect the client when its credential or its grant is no longer valid."""
        people = self._shared.people
        while people is not None and self.who != LOCAL:
            await asyncio.sleep(_LOOKS)
            if not await asyncio.to_thread(self._holds, people):
                await self._outbox.cut(ENDED, "you are signed out, or may not see this session any more")

    def _holds(self, people: People) -> bool:
        """Whether the client may still do what it was let in for."""
        if not people.holds(self.who):
            return False

        place = self._place
        session = self.watches
        if place is None or place.tenant is self._own or not session:
            return True

        # With another role, or another view, it has to begin again: what it was shown may be too much.
        grant = people.grant(self.who, session)
        return grant is not None and (grant.role, grant.view) == (place.role, place.shows)

    async def _read(self) -> None:
        try:
            async with asyncio.timeout(self._hello_timeout):
                first = await self._socket.recv()
        except TimeoutError:
            await self._outbox.cut(1008, "no message came in time")
            return

        if self._shared.people is not None and self.who != LOCAL:
            await self._outbox.send(
                {"type": "you", "name": self.who.name, "admin": self.who.admin, "guest": bool(self.who.link)}
            )

        carrying_out = self._tasks.create_task(self._carry_out())
        await self._arrived.put(first)
        try:
            async for frame in self._socket:
                await self._arrive(frame)
        except ConnectionClosed:
            pass  # what has arrived is still carried out

        await self._arrived.put(None)
        await carrying_out

    async def _arrive(self, frame: str | bytes) -> None:
        """Take in a message. A ping is answered at once, even while a request takes long."""
        if isinstance(frame, bytes) and self._incoming is not None:
            # Told before they wait behind other requests: on a slow line, nothing else tells that the line is alive.
            self._incoming.arrived += len(frame)
            await self._tell_upload(self._incoming)

        ping = _ping(frame)
        if ping is None:
            await self._arrived.put(frame)
        elif self._bucket.take(time.monotonic()) > 0:
            await self._refuse_flood(frame)
        else:
            await self._outbox.ok(_id(ping), {})

    async def _carry_out(self) -> None:
        """Carry out what arrives, one message after the other."""
        product = None if self._own is None else self._own.product
        is_first = True
        while (frame := await self._arrived.get()) is not None:
            await self._take(frame)

            # Not before the first message is answered, which says what the client watches.
            if is_first and product is not None:
                self._board = self._tasks.create_task(self._tell_board(product.board))
            is_first = False

    async def _take(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes) and self._incoming is not None:
            # Uploads are bounded by the announced size, not by a rate.
            await self._feed(self._incoming, frame)
            return

        if self._bucket.take(time.monotonic()) > 0:
            await self._refuse_flood(frame)
            return

        raw = _parse(frame)
        if raw is None:
            sentence = "A message must be a JSON object in a text frame; this one can't be read."
            await self._outbox.error(_id_in(frame), "invalid", sentence)
            return

        await self._dispatch(raw)

    async def _feed(self, incoming: IncomingFile, data: bytes) -> None:
        try:
            if incoming.file is None:
                incoming.feed(data)
            else:
                await asyncio.to_thread(incoming.feed, data)
        except UsageError as error:
            self._no_upload()
            await self._outbox.error(self._upload, "usage", str(error))
        else:
            await self._tell_upload(incoming)

    async def _tell_upload(self, incoming: IncomingFile) -> None:
        """Report how much of the announced file is here."""
        # What came before its announcement was answered is counted when it is stored.
        arrived = max(incoming.arrived, incoming.came)
        await self._outbox.send({"type": "uploading", "arrived": arrived, "taken": incoming.came})

    async def _refuse_flood(self, frame: str | bytes) -> None:
        self._refused += 1
        if self._refused > REFUSALS_BEFORE_CLOSE:
            await self._outbox.cut(1008, "too many messages")
            return

        raw = _parse(frame)
        identity = _id(raw) if raw is not None else _id_in(frame)
        await self._outbox.error(
            identity, "rate", "Too many messages at once; wait a second and send it again."
        )

    async def _dispatch(self, raw: Mapping[str, object]) -> None:
        """Carry out a message, or have it wait until the watched session is open."""
        name = raw.get("type")
        identity = _id(raw)
        if not isinstance(name, str):
            await self._outbox.error(identity, "invalid", "A message needs a field 'type' that is a string.")
            return

        if name not in COMMANDS:
            known = ", ".join(COMMANDS)
            sentence = f"There is no message type {name[:40]!r}; there are: {known}."
            await self._outbox.error(identity, "unknown", sentence)
            return

        if self._opening is None or COMMANDS[name].while_opening:
            await self._perform(name, identity, raw)
        elif len(self._opening.waiting) < _WAITING:
            self._opening.waiting.append((name, identity, raw))
        else:
            sentence = "Too many messages are waiting for this session to open."
            await self._outbox.error(identity, "rate", sentence)

    async def _perform(self, name: str, identity: str | int | None, raw: Mapping[str, object]) -> None:
        """Carry out a message, and answer it. `identity`: the client's own id of it."""
        command = COMMANDS[name]
        self._asked = identity
        try:
            self.demand(command.right)
            with acting(self.who.name):
                answer = await command.run(self, raw)
        except ValidationError as error:
            await self._outbox.error(identity, "invalid", _sentence(error))
        except IactError as error:
            if isinstance(error, Forbidden):
                self._shared.refused["websocket", "forbidden"] += 1
                _log.info("message refused", extra={"message_type": name, **self._about})
            await self._outbox.error(identity, _code(error), str(error))
        except (ConnectionClosed, SlowReader):
            raise
        except Exception:
            _log.exception("The message %s failed.", name, extra={"message_type": name, **self._about})
            sentence = "An error in the server stopped this; its log has the details."
            await self._outbox.error(identity, "internal", sentence)
        else:
            await self._outbox.ok(identity, answer)

    # --- what commands act on (web.commands.Client)

    @property
    def runtime(self) -> Runtime:
        """The runtime of the client's own sessions.

        Raises:
            Forbidden: the client has none.
        """
        return self._mine().runtime

    def demand(self, right: Right) -> None:
        """Check that the client has a right, given its role on the watched session.

        Raises:
            Forbidden: the client lacks it.
        """
        role: Role = "reader"
        is_shown = True
        if self._place is not None:
            role = self._place.role
            is_shown = self._place.permits(right)

        if not may(self.who, right, role) or not is_shown:
            raise Forbidden(refusal(right))

    def _mine(self) -> Tenant:
        if self._own is None:
            raise Forbidden(refusal("list"))
        return self._own

    def _there(self) -> Whereabouts:
        """Where the watched session is."""
        if self._place is None:
            raise UsageError(_NONE_WATCHED)
        return self._place

    async def _find(self, session: str | None) -> tuple[str | None, Whereabouts]:
        """Where a session is: among the client's own, or with another user who granted access.

        Without a grant, the answer is the same as for a session that does not exist.
        """
        if self._own is not None and (session is None or self._own.runtime.store.holds(session)):
            return session, Whereabouts(self._own)

        people = self._shared.people
        tenants = self._shared.tenants
        if people is None or tenants is None:
            return session, Whereabouts(self._mine())

        grant = await asyncio.to_thread(people.grant, self.who, session)
        if grant is None:
            if self._own is None:
                raise UsageError(f"There is no session {session!r} here.")
            return session, Whereabouts(self._own)

        tenant = await self._guest.enter_async_context(tenants.lease(grant.owner))
        if await asyncio.to_thread(_is_gone, tenant.runtime.store, grant.session):
            # Only the owner may learn more about it, such as that it is in the trash.
            raise UsageError(f"There is no session {grant.session!r} here.")

        return grant.session, Whereabouts(tenant, grant.role, grant.owner_name, grant.view)

    async def greet(self, session_id: str | None, cursor: Cursor) -> None:
        """Watch another session from now on; None: none until the first message to one."""
        await self._leave()
        self._cursor = cursor
        session_id, place = await self._find(session_id)
        self._place = place
        runtime = place.tenant.runtime
        if session_id is None:
            await self._greet_without_session(runtime)
            return

        if place.shows_a_part:
            await self._follow_part(session_id, place)
            return

        is_open = runtime.is_open(session_id)

        async def opened() -> Session:
            if place.role == "reader" and not is_open:  # viewing must not start anything
                return await asyncio.to_thread(self._shared.stored.read, runtime, session_id)
            try:
                return await runtime.open(session_id)
            except ForeignSession:
                return await asyncio.to_thread(self._shared.stored.read, runtime, session_id)

        await self._begin(session_id, cursor, opened, at_once=is_open, readonly=False)

    async def _greet_without_session(self, runtime: Runtime) -> None:
        """Tell what a session that began now would be like."""
        model = runtime.model_label
        small = sorted(runtime.small_models)
        await self._outbox.send({"type": "session", "id": None, "since": 0, "model": model, "small": small})
        await self._outbox.send({"type": "tree", "nodes": []})

    async def _follow_part(self, session: str, place: Whereabouts) -> None:
        """Watch the part of a session that a link shows. It is read as it is on disk, whole, before any of it is
        shown."""
        assert place.shows is not None
        view = await asyncio.to_thread(_shared, place.tenant.runtime, session, place.shows)
        self._follow(view, Cursor())

    @property
    def said(self) -> AnsweredMessages[answers.InSession]:
        """The last messages of all clients, and `injected` likewise."""
        return self._shared.said

    @property
    def injected(self) -> AnsweredMessages[answers.Recorded]:
        """The last messages to agents."""
        return self._shared.injected

    async def session(self) -> Session:
        """The watched session; opens a new one if there is none."""
        if self._session is None:
            self._place = Whereabouts(self._mine())
            self._follow(await self.runtime.open(None), self._cursor_of_new())
        assert self._session is not None
        return self._session

    async def find_begun_with(self, once: str) -> None:
        """Watch the session that this user began with the message of this name, if a server that ended meanwhile said it
        and the client was not told."""
        begun = await self._mine().runtime.begun_with(once)
        if begun is not None:
            await self.greet(begun, Cursor())

    @property
    def has_session(self) -> bool:
        """Whether a session is watched."""
        return self._session is not None

    def watched(self) -> Session:
        """The watched session. Unlike `session`, this never opens one: reading must not start a session.

        Raises:
            UsageError: none is watched.
        """
        if self._session is None:
            raise UsageError(_NONE_WATCHED)
        return self._session

    async def open(self, journal: str, cursor: Cursor) -> None:
        """View a stored session from now on."""
        product = self._own.product if self._own is not None else None
        examples = () if product is None else product.examples()

        # Only an id may be that of another user's session: an example, or a path, is among what is the client's own.
        name = Path(journal).name
        is_example = any(example.id == journal for example in examples)
        is_own = is_example or name != journal
        if is_own:
            place = Whereabouts(self._mine())
        else:
            await self._leave()
            _, place = await self._find(name)

        runtime = place.tenant.runtime
        if place.shows_a_part:
            self._place = place
            await self._follow_part(name, place)
            return

        async def opened() -> Session:
            return await asyncio.to_thread(self._shared.stored.read, runtime, journal, examples)

        at_once = is_own or await asyncio.to_thread(self._shared.stored.kept, runtime, journal)
        if not at_once:
            self._cursor = cursor
            self._place = place
            await self._begin(name, cursor, opened, at_once=False, readonly=True)
            return

        # Read first: if that fails, the client still watches what it watched before.
        stored = await opened()
        if place.tenant is self._own:
            await self._leave()
        self._cursor = cursor
        self._place = place
        self._follow(stored, cursor)

    async def _begin(
        self,
        name: str,
        cursor: Cursor,
        opened: Callable[[], Awaitable[Session]],
        *,
        at_once: bool,
        readonly: bool,
    ) -> None:
        """Watch a session. If reading it takes a while, its end is shown in the meantime.

        `at_once`: it does not take a while.
        """
        store = self._there().tenant.runtime.store
        newest: Sequence[Record] = ()
        if cursor.lazy and not cursor.since and not at_once:
            newest = await asyncio.to_thread(store.end, name)
        if not newest:
            self._follow(await opened(), cursor)
            return

        folder = store.path_of(name)
        rendered = self._shared.rendered
        shown = await show_end(
            self._outbox, name, newest, cursor, rendered, folder, self._turn, readonly=readonly
        )

        self._opening = Opening({record.n: record for record in newest}, folder, shown.early)
        self._opening.task = self._tasks.create_task(self._finish(self._opening, opened, shown))

    async def _finish(
        self, opening: Opening, opened: Callable[[], Awaitable[Session]], cursor: Cursor
    ) -> None:
        """Finish opening a session, then answer the requests that have waited for it."""
        # Reading everything keeps the processor busy; first answer what the page requests for the part it shows.
        await asyncio.sleep(_HEAD_START)

        failure: IactError | None = None
        try:
            self._follow(await opened(), cursor)
        except IactError as error:
            failure = error
            await self._outbox.send({"type": "refused", "code": _code(error), "message": str(error)})

        # One at a time from the front: while one is carried out, more may come.
        while opening.waiting:
            name, identity, raw = opening.waiting.pop(0)
            if failure is not None:
                await self._outbox.error(identity, _code(failure), str(failure))
            else:
                await self._perform(name, identity, raw)

        # One of them may have led to another session.
        if self._opening is opening:
            self._opening = None

    def history(self) -> RecordHistory:
        """The state of the watched session at any record.

        Raises:
            UsageError: none is watched.
        """
        if self._history is None:
            raise UsageError(_NONE_WATCHED)
        return self._history

    def source(self, n: int) -> str:
        """The text of a record of the watched session, as it was written.

        Raises:
            UsageError: there is none.
        """
        records = self._session.records() if self._session is not None else ()
        if n > len(records):
            raise UsageError(f"There is no record {n} here.")
        return records[n - 1].body

    async def whole(self, n: int) -> tuple[str, int]:
        """The complete content of a record, ready for display, and how many characters did not fit.

        Raises:
            UsageError: there is none.
        """
        body = self.source(n)
        session = await self.session()
        stored = await asyncio.to_thread(blob_text, session.records(n - 1)[0], session.journal.parent)

        text = visible(without_escapes(body if stored is None else stored))
        return text[:_WHOLE], max(0, len(text) - _WHOLE)

    async def render(self, numbers: Sequence[int]) -> list[answers.Html]:
        """The HTML of records of the watched session; empty if none is watched."""
        rendered = self._shared.rendered
        if self._session is not None:
            return await rendered.several(self._session, numbers, self._turn)

        opening = self._opening
        if opening is None:
            return []

        records = [opening.records[n] for n in numbers if n in opening.records]
        for record in records:
            opening.early[record.n] = await rendered.early(record, opening.folder, self._turn)
        return [html_of(opening.early[record.n]) for record in records]

    async def format(self, agent: str, text: str) -> answers.Formatted:
        """The HTML of what an agent of the watched session is writing.

        Raises:
            UsageError: no session is watched, or a stored one, in which nobody writes.
        """
        session = self.watched()
        if isinstance(session, StoredSession):
            raise UsageError("This session is stored, so no agent is writing in it.")

        draft = await self._shared.rendered.draft(session, agent, text, self._turn)
        return {"closed": draft.closed, "html": draft.html, "open": draft.open}

    def begin_upload(self, name: str, media: str, size: int, *, archive: bool) -> None:
        """Announce a file, dropping an incomplete one. `archive`: it is a session's archive, which is imported from
        disk."""
        self._no_upload()
        folder = self.runtime.store.folder if archive else None
        self._incoming = self._shared.uploads.begin(name, media, size, folder)
        self._upload = self._asked

    async def end_upload(self) -> Record:
        """Complete the announced file.

        Raises:
            UsageError: none was announced, or a part of it is missing.
        """
        if self._incoming is None:
            raise UsageError("No file was announced; send an upload message first.")

        incoming = self._incoming
        try:
            content = incoming.whole()
            session = await self.session()
            return await session.upload(incoming.name, incoming.media, content)
        finally:
            self._no_upload()

    def uploaded_text(self) -> str:
        """The announced file, which is a message.

        Raises:
            UsageError: none was announced, a part of it is missing, or it is no text.
        """
        if self._incoming is None or self._incoming.file is not None:
            raise UsageError("No message was announced; send an upload message first.")

        try:
            return self._incoming.whole().decode()
        except UnicodeDecodeError as error:
            raise UsageError("The uploaded message is not text in UTF-8.") from error
        finally:
            self._no_upload()

    @contextmanager
    def uploaded(self) -> Iterator[Path]:
        """The uploaded archive on disk, until the context exits.

        Raises:
            UsageError: none was announced, or a part of it is missing.
        """
        if self._incoming is None or self._incoming.file is None:
            raise UsageError("No archive was announced; send an upload message first.")

        incoming = self._incoming
        self._incoming = None
        try:
            yield incoming.stored()
        finally:
            incoming.close()
            self._shared.uploads.end()

    def _no_upload(self) -> None:
        if self._incoming is not None:
            self._incoming.close()
            self._incoming = None
            self._shared.uploads.end()

    def files(self) -> FileMessages:
        """The files of the watched session.

        Raises:
            UsageError: none is watched.
        """
        if self._files is None:
            raise UsageError(_NONE_WATCHED)

        shows = None if self._place is None else self._place.shows
        if shows is not None and "files" in shows.hides:
            raise Forbidden("This link does not show the files of the session.")

        return self._files

    def offer(self, name: str, content: Content, *, view: View | None = None) -> str:
        """Offer a file for download, or to be looked at. Returns its address."""
        return self._shared.downloads.put(name, content, self.who.whose, view=view)

    def product(self) -> Product:
        """What the rest of the product provides.

        Raises:
            UsageError: the server runs without it.
        """
        product = self._mine().product
        if product is None:
            raise UsageError(
                "This server was started without a part that this request needs. Start it with: iact serve."
            )
        return product

    def register(self) -> PeopleRegister:
        """The register of people.

        Raises:
            UsageError: this server has one user.
        """
        if self._shared.register is None:
            raise UsageError("This server has only one user, so there are no accounts.")
        return self._shared.register

    def setup(self) -> SharedSetup:
        """What is set for all users.

        Raises:
            UsageError: this server has one user.
        """
        if self._shared.setup is None:
            raise UsageError("This server has only one user, so nothing is set for all users.")
        return self._shared.setup

    async def audit(self, kind: AuditKind, **about: str) -> None:
        """Record in the audit what this user did outside of sessions. Does nothing on a server with one user."""
        register = self._shared.register
        if register is not None:
            await asyncio.to_thread(register.tell, self.who, kind, about)

    def lease(self, user: str) -> AbstractAsyncContextManager[Tenant]:
        """What another user has, for as long as it is needed."""
        assert self._shared.tenants is not None
        return self._shared.tenants.lease(user)

    def new_url(self) -> str:
        """An address for one more browser."""
        assert self._shared.new_url is not None
        return self._shared.new_url()

    async def seek(self, at: int | None) -> None:
        """Send the tree as it was after record `at`, or as it is now."""
        history = self.history()
        session = await self.session()

        is_end_of_stored = isinstance(session, StoredSession) and at == len(session.records())
        if at is None or is_end_of_stored:
            nodes: Sequence[NodeView] = session.tree()
        else:
            nodes = await history.nodes(at)

        await self._outbox.send({"type": "tree", "at": at, "nodes": [node_fields(node) for node in nodes]})

    async def fork(self, at: int, text: str, *, run: bool) -> tuple[str, int]:
        """Fork the watched session, send `text` to the new one and watch that. Returns its id and the record's number.

        `run`: work in progress continues there. Examples and other users' sessions are adopted instead.
        """
        self.history()
        source = await self.session()
        folder = source.journal.parent

        is_example = isinstance(source, StoredSession) and source.example
        if is_example or self._there().tenant is not self._own:
            identity = await self.runtime.adopt(folder, at)
        else:
            identity = await self.runtime.fork(folder, at, run=run)

        session = await self.runtime.open(identity)
        # Await nothing in between: unfinished work of the shared records, if it may continue, would come first.
        record = await session.say(text)

        await self._watch_own(session)
        return session.id, record.n

    async def adopt(self, at: int | None) -> str:
        """Make the user's own session from the watched one, up to record `at`, and watch that. Returns its id."""
        self.history()
        source = await self.session()
        identity = await self.runtime.adopt(source.journal.parent, at)
        session = await self.runtime.open(identity)

        await self._watch_own(session)
        return session.id

    async def _watch_own(self, session: Session) -> None:
        """Watch a session of the client's own, which was just made, instead of the one that it watches."""
        await self._leave()
        self._place = Whereabouts(self._mine())
        self._follow(session, self._cursor_of_new())

    async def send(self, message: News) -> None:
        """Send a message that is not an answer."""
        await self._outbox.send(message)

    def watch_sessions(self) -> None:
        """Report each session that changes from now on. Calling it again has no effect."""
        if self._standings is None:
            self._standings = self._tasks.create_task(self._tell_standings())

    async def _tell_standings(self) -> None:
        async with self.runtime.watch_sessions() as changes:
            async for session, status in changes:
                await self._outbox.send(standing_fields(session, status))

    async def _tell_board(self, board: Board) -> None:
        """Report how far the model on board is, from now on."""
        async with board.watch() as states:
            async for state in states:
                await self._outbox.send(_board_news(state))
                await asyncio.sleep(_BOARD_SECONDS)

    def _cursor_of_new(self) -> Cursor:
        """A cursor for a new session, with the client's preferences."""
        return Cursor(lazy=self._cursor.lazy)

    def _follow(self, session: Session, cursor: Cursor) -> None:
        """Watch a session from now on. Everything that belongs to it changes without a break in between."""
        place = self._there()
        self._session = session
        self._history = SharedHistory(session) if isinstance(session, SharedView) else RecordHistory(session)
        self._files = FileMessages.of(session, place.tenant.runtime)

        product = place.tenant.product
        follower = Follower(
            self._outbox,
            session,
            cursor,
            self._shared.rendered,
            turn=self._turn,
            prices=None if product is None else product.prices(),
            role=place.role,
            owner=place.owner,
        )
        self._follower = self._tasks.create_task(follower.run())

    async def _leave(self) -> None:
        """Watch nothing any more."""
        if self._opening is not None:
            await self._stop_opening(self._opening)
        await self._unfollow()

        self._session = None
        self._history = None
        self._files = None
        await self._guest.aclose()
        self._place = None if self._own is None else Whereabouts(self._own)

    async def _stop_opening(self, opening: Opening) -> None:
        """Give up the session that is being read, and refuse what waits for it."""
        self._opening = None
        # A message that has waited may lead elsewhere: then this task is the one that opens.
        if opening.task is not None and opening.task is not asyncio.current_task():
            opening.task.cancel()  # not awaited: a thread that reads can't be stopped

        waiting = opening.waiting
        opening.waiting = []
        for _, identity, _raw in waiting:
            await self._outbox.error(identity, "usage", "The session was closed before it had opened.")

    async def _unfollow(self) -> None:
        follower = self._follower
        if follower is None:
            return

        self._follower = None
        follower.cancel()
        await asyncio.wait([follower])


def _shared(runtime: Runtime, session: str, view: LinkView) -> SharedView:
    return SharedView(runtime.store.read(session, at=view.at), view)


def _is_gone(store: SessionStore, session: str) -> bool:
    """Whether a session was deleted, permanently or not."""
    elsewhere = store.others is not None and store.others.has(session)
    return store.trash.find(session) is not None or not (store.holds(session) or elsewhere)


def _board_news(state: BoardState | None) -> BoardNews:
    if state is None:
        return {"type": "board", "phase": "", "done": 0, "total": 0, "why": ""}
    return {
        "type": "board", "phase": state.phase, "done": state.done, "total": state.total, "why": state.why,
    }  # fmt: skip


def _code(error: IactError) -> str:
    return next(code for kind, code in _CODES if isinstance(error, kind))


def _parse(frame: str | bytes) -> Mapping[str, object] | None:
    if isinstance(frame, bytes):
        return None
    try:
        raw = from_json(frame, allow_inf_nan=False)
    except ValueError:
        return None
    return raw if isinstance(raw, dict) else None


def _ping(frame: str | bytes) -> Mapping[str, object] | None:
    """The message, if it is a ping."""
    if isinstance(frame, bytes) or len(frame) > _PING_WITHIN or '"ping"' not in frame:
        return None
    raw = _parse(frame)
    return raw if raw is not None and raw.get("type") == "ping" else None


def _id(raw: Mapping[str, object]) -> str | int | None:
    """The client's own id of a message, if it is a short string or a number."""
    identity = raw.get("id")
    if isinstance(identity, str):
        return identity[:128]
    return identity if isinstance(identity, int) and not isinstance(identity, bool) else None


def _id_in(frame: str | bytes) -> str | int | None:
    """The client's own id of a message that can't be parsed, if it can be found."""
    if isinstance(frame, bytes):
        return None
    field_of_id = _ID.search(frame[:_ID_WITHIN])
    if field_of_id is None:
        return None

    try:
        return _id({"id": from_json(field_of_id[1])})
    except ValueError:
        return None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "message"
    return f"The field {where!r} does not fit: {first['msg']}."
