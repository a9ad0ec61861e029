"""A stored session to view: its journal as it is on disk, without a lock, a model or a module.

It is a `Session` like a running one, so code that shows sessions can show this; operations that would change it are
refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NoReturn

from iact.core.errors import UsageError
from iact.core.ports import JSON
from iact.core.records.control import InjectMode, MemorySwitch
from iact.core.records.record import Record
from iact.core.records.ways import Way
from iact.core.session.hosts import HostRow
from iact.core.stored.journals import journal_file, names_journal
from iact.core.stored.replay import Replay, replay
from iact.core.stored.templates import OfferedValue
from iact.core.views.events import Event
from iact.core.views.view import NodeView
from iact.web.ports import Effects, Recorded, Runtime

_KEPT: Final = 3
"""How many sessions are kept when no one views them."""
EXAMPLE_MODEL: Final = "Recorded example (no live model)"


class StoredSession:
    """One journal. The model's label is what the journal says. `example`: it is not one of the user's own sessions.

    `foreign`: why this installation does not accept it as its own, in words; empty if it does, or if that does not
    matter.
    """

    failure: Final = None

    def __init__(self, read: Replay, *, example: bool = False) -> None:
        self._read = read
        self.view: Final = read.view
        self.example = example
        self.foreign = read.foreign

    @property
    def id(self) -> str:
        """The name of its directory, with which it can be opened and forked."""
        return self._read.path.parent.name

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self._read.path

    @property
    def intent(self) -> float:
        """The session's intent at its end."""
        return self.view.intent

    @property
    def levels(self) -> Mapping[str, float]:
        """The levels of intent that its policy named."""
        return self.view.levels

    @property
    def model_label(self) -> str:
        """The names of its models."""
        if self.example:
            return EXAMPLE_MODEL
        return ", ".join(self.view.models)

    @property
    def effects(self) -> Effects:
        """Refused, like everything below."""
        _refuse()

    @property
    def memory_off(self) -> Collection[MemorySwitch]:
        """Empty: nothing is said here any more."""
        return ()

    async def switch_memory(self, value: bool) -> None:
        """Refused."""
        _refuse()

    @property
    def modules_running(self) -> int:
        """Always 0: nothing runs."""
        return 0

    def records(self, since: int = 0) -> Sequence[Record]:
        """All records with a number above `since`."""
        return self._read.records[since:]

    def tree(self) -> tuple[NodeView, ...]:
        """Every agent at the journal's end."""
        return self.view.nodes()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncGenerator[Event]]:
        """A stream that ends at once: nothing happens here."""
        yield _no_events()

    def message_named(self, once: str) -> Record | None:
        """None: nothing is said here."""
        return None

    async def say(
        self, text: str, *, mode: Way = "dialogue", plan_first: bool = False, once: str = ""
    ) -> Record:
        """Refused, like everything below."""
        _refuse()

    async def foresee(self, text: str) -> tuple[Way, str]:
        """Refused."""
        _refuse()

    async def inject(
        self, path: str, text: str, mode: InjectMode, step: str = "", *, calls: bool = True, once: str = ""
    ) -> Record:
        """Refused."""
        _refuse()

    async def send_now(self, path: str, message: int) -> Record:
        """Refused."""
        _refuse()

    async def reword(self, path: str, message: int, text: str) -> Record:
        """Refused."""
        _refuse()

    async def withdraw(self, path: str, message: int) -> Record:
        """Refused."""
        _refuse()

    async def stop_calls(self, path: str) -> Record:
        """Refused."""
        _refuse()

    async def pause(self, path: str, step: str = "") -> Record:
        """Refused."""
        _refuse()

    async def resume(self, path: str, step: str = "") -> Record:
        """Refused."""
        _refuse()

    async def cancel(self, path: str, step: str = "") -> Record:
        """Refused."""
        _refuse()

    async def start_plan(self, path: str, *, seen: str | None = None) -> Record:
        """Refused."""
        _refuse()

    def plan_digest(self, path: str) -> str:
        """Refused: none of its plans can be started."""
        _refuse()

    async def edit_plan(self, path: str, text: str) -> Record:
        """Refused."""
        _refuse()

    async def retry_step(self, path: str, step: str) -> Record:
        """Refused."""
        _refuse()

    def plan_text(self, path: str) -> str:
        """Refused."""
        _refuse()

    def save_plan(self, path: str, name: str, parameters: Mapping[str, str] | None = None) -> Path:
        """Refused."""
        _refuse()

    def plan_offers(self, path: str) -> Sequence[OfferedValue]:
        """Refused."""
        _refuse()

    async def begin_plan(self, text: str, *, name: str, mode: str, plan_first: bool) -> Record:
        """Refused."""
        _refuse()

    async def raise_budget(self, tokens: int = 0, money: float = 0.0) -> Record:
        """Refused."""
        _refuse()

    async def compress(self) -> Record:
        """Refused."""
        _refuse()

    async def summary(self) -> str:
        """Refused."""
        _refuse()

    async def set_intent(self, value: float) -> Record:
        """Refused."""
        _refuse()

    async def clear(
        self,
        call: int,
        allow: bool,
        remember: JSON = None,
        *,
        also: Sequence[int] = (),
        why: str = "",
        seen: Sequence[str] | None = None,
    ) -> Record:
        """Refused."""
        _refuse()

    async def clear_host(
        self,
        ask: int,
        allow: bool,
        lasts: Literal["once", "session", "always"] = "once",
        *,
        why: str = "",
        seen: str | None = None,
    ) -> Record:
        """Refused."""
        _refuse()

    async def answer_form(
        self,
        ask: int,
        action: Literal["accept", "decline"],
        values: Mapping[str, JSON] | None = None,
        *,
        seen: str | None = None,
    ) -> Record:
        """Refused."""
        _refuse()

    def offers_skill(self, record: int) -> bool:
        """False: nothing waits here."""
        return False

    def asks_host(self, record: int) -> bool:
        """False: nothing waits here."""
        return False

    async def allow_hosts(
        self, module: str, hosts: Sequence[str], *, always: bool = False, remove: bool = False
    ) -> None:
        """Refused."""
        _refuse()

    @property
    def hosts(self) -> Sequence[HostRow]:
        """Empty: nothing of it runs."""
        return ()

    async def declassify(self, path: str, variable: str | None = None, *, seen: str | None = None) -> Record:
        """Refused."""
        _refuse()

    def reading(self, path: str) -> tuple[frozenset[str], str]:
        """Refused: nothing of it can be vouched for."""
        _refuse()

    async def restore(self, version: str, path: str = "") -> Record:
        """Refused."""
        _refuse()

    async def lockdown(self, value: bool) -> Record:
        """Refused."""
        _refuse()

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        """Refused."""
        _refuse()


class StoredSessions:
    """Reads stored sessions, and caches the newest few as long as their journals stay unchanged: a long one takes a
    while."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Path, int, int, bool], StoredSession] = OrderedDict()
        self._one = Lock()

    def kept(self, runtime: Runtime, journal: str) -> bool:
        """Whether this session is cached, so that reading it costs nothing. Raises as `read`."""
        key = _key(_place(runtime, journal), example=False)
        return key is not None and key in self._kept

    def read(self, runtime: Runtime, journal: str, examples: Sequence[Recorded] = ()) -> StoredSession:
        """The stored session with this id, or whose directory or journal is at this path. Blocks.

        `examples`: found by their ids as well.

        Raises:
            UsageError: it is not one of the runtime's sessions.
            JournalError: it can't be read.
        """
        example = next((example.folder for example in examples if journal == example.id), None)
        folder = example or _place(runtime, journal)

        with self._one:
            key = _key(folder, example=example is not None)
            if key is not None and key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]

            # That an example was made elsewhere does not matter.
            if example is not None:
                stored = StoredSession(replay(folder), example=True)
            else:
                stored = StoredSession(runtime.store.read(folder))

            if key is not None:
                self._kept[key] = stored
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            return stored


def _key(folder: Path, *, example: bool) -> tuple[Path, int, int, bool] | None:
    """A key that changes with the journal, or None if it can't be read."""
    file = journal_file(folder)
    if file is None:
        return None
    try:
        status = file.stat()
    except OSError:
        return None

    return file, status.st_size, status.st_mtime_ns, example


def _place(runtime: Runtime, journal: str) -> Path:
    """The session's directory; a client can't name anything outside the sessions' directory."""
    path = Path(journal)
    name = path.parent.name if names_journal(path) else path.name
    if not name.strip(".") or name.startswith(".") or "\0" in journal:
        raise UsageError(f"There is no session at {journal[:200]!r}; give its id or the path of its journal.")

    directory = runtime.store.path_of(name)
    if journal == name:
        return directory

    # A path counts only if it leads to the very session that has this name here.
    resolved = directory.resolve()
    if path.resolve() not in (resolved, journal_file(resolved)):
        raise UsageError(f"The journal {journal[:200]!r} is not among the sessions of this server.")
    return directory


async def _no_events() -> AsyncGenerator[Event]:
    nothing: tuple[Event, ...] = ()
    for event in nothing:
        yield event


def _refuse() -> NoReturn:
    raise UsageError(
        "This session can only be viewed here. To continue it, open it or branch from it. If another "
        "installation created it, adopt it first."
    )
