"""Reads a journal without running anything: show, verify, and the exact contexts that models saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iact.core.errors import ReplayMismatch, UsageError
from iact.core.journal.file import FILE, Contents, read_blob, read_journal
from iact.core.journal.reader import Reader
from iact.core.journal.seal import Sealer, sha256_of_start
from iact.core.ports import ChatMessage
from iact.core.records.dialogue import Generation, LastTurn, Reply, Turn
from iact.core.records.record import Record
from iact.core.records.session import Adopt
from iact.core.stored.garbage_collection import collector_paused
from iact.core.tree.apply import migrated_at, read_tree, take_in
from iact.core.tree.apply_turn import answered
from iact.core.tree.tree import Tree
from iact.core.views.view import View


@dataclass(frozen=True, slots=True)
class Replay:
    """A journal that was read, and the tree as it was after record `at`."""

    path: Path
    contents: Contents
    at: int
    tree: Tree

    @property
    def records(self) -> Sequence[Record]:
        """The records that were replayed."""
        return self.contents.records[: self.at]

    @property
    def total(self) -> int:
        """How many records the journal has."""
        return len(self.contents.records)

    @property
    def torn(self) -> int:
        """Bytes of an unfinished append after the last record."""
        return self.contents.torn

    @property
    def foreign(self) -> str:
        """Why the reader's installation did not make the session, in words; empty if it did, or if no key was given."""
        return self.contents.foreign

    @property
    def view(self) -> View:
        """The session as it was after record `at`."""
        return View(self.tree)

    @property
    def verified_from(self) -> int:
        """The first record that can be verified: earlier records followed the rules of another version."""
        return migrated_at(self.records)


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """One message of a context; `reused`: it was in the agent's context before, byte for byte.

    `parts`: attachments to its text, as (variable, media type, SHA-256).
    """

    role: str
    content: str
    reused: bool
    parts: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SeenContext:
    """Exactly what a model saw at one turn. `record`: the record that holds its reply."""

    agent: str
    record: int
    messages: tuple[SeenMessage, ...]


def replay(
    path: Path, *, at: int | None = None, verify: bool = False, sealer: Sealer | None = None
) -> Replay:
    """Rebuild a session's tree from its journal, up to record `at` (default: all).

    `sealer`: with it, `foreign` says why the session is not the sealer's. With `verify`, the core runs over the
    recorded outcomes and every context digest is compared.

    Raises:
        ReplayMismatch: with `verify`, at the first record that differs.
        JournalError: the journal can't be read.
        UsageError: there is no record `at`, or no record at all yet.
    """
    directory = path if path.is_dir() else path.parent
    with collector_paused():
        contents = read_journal(path, sealer)
        if not contents.records:
            raise UsageError(f"The journal in {directory} has no records yet.")
        last = len(contents.records) if at is None else at
        if not 1 <= last <= len(contents.records):
            raise UsageError(f"There is no record {at}; the journal has 1 to {len(contents.records)}.")
        tree = read_tree(contents.records[:last], lambda digest: read_blob(directory, digest), strict=verify)
    if verify:
        _expect_adopted(directory / FILE, contents.records[:last])
    return Replay(directory / FILE, contents, last, tree)


def _expect_adopted(file: Path, records: Sequence[Record]) -> None:
    """Compare what a journal adopted, byte by byte, with its `adopt` record. No other record shows a difference.

    Raises:
        ReplayMismatch: the content differs.
    """
    adopted = next((one for one in reversed(records) if isinstance(one.content, Adopt)), None)
    if adopted is None or not isinstance(adopted.content, Adopt):
        return
    reader = Reader(file)
    for record in reader.read():
        if record.n == adopted.n - 1:
            break
    if sha256_of_start(file, reader.offset) != adopted.content.sha256:
        raise ReplayMismatch(
            f"Record {adopted.n} (adopt) differs: the bytes that it adopted are not the bytes before it.",
            n=adopted.n,
        )


def view_of(records: Sequence[Record], blobs: Callable[[str], bytes]) -> View:
    """A session as it was after these records, which are its first. `blobs` reads a blob by its SHA-256.

    Raises:
        ReplayMismatch: the records don't make a session.
        JournalError: a blob that is needed can't be read.
    """
    with collector_paused():
        return View(read_tree(records, blobs, strict=False))


def context(path: Path, agent: str, *, at: int | None = None) -> SeenContext:
    """The context of an agent's newest turn in a journal, or of its newest at or before record `at`.

    Raises:
        UsageError: the agent had no turn there.
        JournalError: the journal can't be read.
    """
    directory = path if path.is_dir() else path.parent
    return context_of(read_journal(path).records, partial(read_blob, directory), agent, at=at)


def context_of(
    records: Sequence[Record], blobs: Callable[[str], bytes], agent: str, *, at: int | None = None
) -> SeenContext:
    """The same as `context`, from the first records of a session. `blobs` reads a blob by its SHA-256."""
    turns = [
        (record, made, last)
        for record in records[:at]
        if record.agent == agent
        for made, last in [_generation(record)]
        if made is not None
    ]
    if not turns:
        until = f" up to record {at}" if at is not None else ""
        raise UsageError(f"The agent {agent} had no turn{until}.")
    turn, made, last = turns[-1]
    tree = read_tree(records[: turn.n - 1], blobs, strict=False)
    one = tree.agents[agent]
    prepared = answered(tree, one, made, last)
    before = one.context.history.messages()
    # The last message of the history is the reply to the previous context, which did not contain it.
    reused = len(before) - 1 if len(turns) > 1 else len(before)
    messages = [_seen(message, reused=n < reused) for n, message in enumerate(before)]
    return SeenContext(agent, turn.n, (*messages, _seen(prepared.newest, reused=False)))


def contexts_of(
    records: Iterable[Record], blobs: Callable[[str], bytes]
) -> Iterator[tuple[Record, Sequence[ChatMessage]]]:
    """Every record of a session from its first, in order, with the context that its text answers; empty for most
    records.

    One pass, so all contexts of a journal cost as much as one replay of it. `blobs` reads a blob by its SHA-256.

    Raises:
        ReplayMismatch: the records don't make a session.
        JournalError: a blob that is needed can't be read.
    """
    tree = Tree(strict=False, blobs=blobs)
    for record in records:
        made, last = _generation(record)
        seen: Sequence[ChatMessage] = ()
        if made is not None and record.agent in tree.agents:
            agent = tree.agents[record.agent]
            newest = answered(tree, agent, made, last).newest
            seen = (*agent.context.history.messages(), newest)
        yield record, seen
        take_in(tree, record)


def _generation(record: Record) -> tuple[Generation | None, LastTurn]:
    """What a model wrote in answer to a context, if a record holds that, and why it was the agent's last turn."""
    match record.content:
        case Turn(generation=made):
            return made, ""
        case Reply(generation=made, last=last):
            return made, last
    return None, ""


def _seen(message: ChatMessage, *, reused: bool) -> SeenMessage:
    parts = tuple((part.name, part.media, part.sha256) for part in message.parts)
    return SeenMessage(message.role, message.content, reused, parts)
