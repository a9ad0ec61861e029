"""A stored session to look at: its journal as it is on disk, without a lock, a model or a module.

It is a `Session` like a running one, so whatever shows sessions shows this; what would change it is refused.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NoReturn

from core.errors import UsageError
from core.journal.file import FILE
from core.ports import JSON
from core.records.record import Record
from core.session.events import Event
from core.session.replay import Replay, replay
from core.tree.tree import Tree
from core.tree.view import NodeView
from web.ports import Effects, InjectMode, Recorded, Runtime

EXAMPLE_MODEL: Final = "Recorded example: its model was scripted"


class Stored:
    """One journal. The model's label is what the journal says. `example`: it is none of the user's own sessions.

    `foreign`: why this installation did not make it, in words; empty if it did.
    """

    failure: Final = None

    def __init__(self, read: Replay, *, example: bool = False, foreign: str = "") -> None:
        self._read = read
        self.example = example
        self.foreign = foreign

    @property
    def id(self) -> str:
        """The name of its directory, under which it can be opened and forked."""
        return self._read.path.parent.name

    @property
    def journal(self) -> Path:
        """The journal's file."""
        return self._read.path

    @property
    def intent(self) -> float:
        """How much the session could do at its end."""
        return self._read.tree.grant.intent

    @property
    def levels(self) -> Mapping[str, float]:
        """The levels of intent that its policy named."""
        return dict(sorted(self._read.tree.policy.levels))

    @property
    def model_label(self) -> str:
        """The names of its models."""
        if self.example:
            return EXAMPLE_MODEL
        return ", ".join(dict.fromkeys(role.model for role in self._read.tree.roles.values()))

    @property
    def state(self) -> Tree:
        """The tree at the journal's end."""
        return self._read.tree

    @property
    def effects(self) -> Effects:
        """Refused, as everything below."""
        _refuse()

    @property
    def modules_running(self) -> int:
        """None."""
        return 0

    def records(self, since: int = 0) -> Sequence[Record]:
        """All records with a number above `since`."""
        return self._read.records[since:]

    def tree(self) -> tuple[NodeView, ...]:
        """Every agent at the journal's end."""
        return self._read.tree.views()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[AsyncGenerator[Event]]:
        """A stream that ends at once: nothing happens here."""
        yield _nothing()

    async def say(self, text: str) -> Record:
        """Refused, as everything below."""
        _refuse()

    async def inject(self, path: str, text: str, mode: InjectMode) -> Record:
        """Refused."""
        _refuse()

    async def pause(self, path: str) -> Record:
        """Refused."""
        _refuse()

    async def resume(self, path: str) -> Record:
        """Refused."""
        _refuse()

    async def cancel(self, path: str) -> Record:
        """Refused."""
        _refuse()

    async def set_intent(self, value: float) -> Record:
        """Refused."""
        _refuse()

    async def clear(self, call: int, allow: bool, remember: JSON = None) -> Record:
        """Refused."""
        _refuse()

    async def declassify(self, path: str, variable: str | None = None) -> Record:
        """Refused."""
        _refuse()

    async def restore(self, version: str) -> Record:
        """Refused."""
        _refuse()

    async def lockdown(self, value: bool) -> Record:
        """Refused."""
        _refuse()

    async def upload(self, name: str, media: str, content: bytes) -> Record:
        """Refused."""
        _refuse()


def read_stored(runtime: Runtime, journal: str, examples: Sequence[Recorded] = ()) -> Stored:
    """The stored session with this id, or whose directory or journal stands at this path.

    `examples`: found by their ids as well.

    Raises:
        UsageError: it is not one of the runtime's sessions.
        JournalError: it can't be read.
    """
    for example in examples:
        if journal == example.id:
            return Stored(replay(example.folder / FILE), example=True)
    file = _file(runtime, journal)
    return Stored(replay(file), foreign=runtime.why_foreign(file))


def _file(runtime: Runtime, journal: str) -> Path:
    """The journal's file; nothing outside of the sessions' directory has one here, whatever a client says."""
    given = Path(journal)
    name = given.parent.name if given.name == FILE else given.name
    if not name.strip(".") or name.startswith(".") or "\0" in journal:
        raise UsageError(f"There is no session at {journal[:200]!r}; give its id or the path of its journal.")
    directory = runtime.path_of(name)
    if journal != name and given.resolve() not in (directory.resolve(), (directory / FILE).resolve()):
        raise UsageError(f"The journal {journal[:200]!r} is not among the sessions of this server.")
    return directory / FILE


async def _nothing() -> AsyncGenerator[Event]:
    nothing: tuple[Event, ...] = ()
    for event in nothing:
        yield event


def _refuse() -> NoReturn:
    raise UsageError(
        "This is a stored session to look at; to go on with it, open it or fork it, or adopt it if it is foreign."
    )
