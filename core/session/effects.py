"""Effects of calls on a live directory: found after the call, then applied at once or kept for a person.

Modules see the directory through an overlay (`core.ports.LiveFiles`), so a call changes nothing in it. When the last
writing call under way has ended, the overlay is inspected, and the tree decides what happens to the new changes
(`core.tree.effects`). Applying and dropping are written ahead: an operation that a crash cut off is finished when the
session is opened again, which is safe because applying twice is. Calls that overlap are inspected together, because
their changes can't be told apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

from iact.core.blocking import to_its_end
from iact.core.errors import Changed, UsageError, WorkspaceError
from iact.core.modules.quota import FolderUse
from iact.core.ports import JSON, AppliedChange, LiveFiles, OpenLive
from iact.core.records.calls import Settle
from iact.core.records.control import ApplyChanges, DropChanges, UseOverlay
from iact.core.records.record import Record
from iact.core.session.live import Live
from iact.core.session.person import signed
from iact.core.tree.effects import (
    Look,
    difference,
    left_json,
    listed,
    look_content,
    outcome_rows,
    parents,
    weigh,
)
from iact.core.tree.live_folder import After, Intention, PendingChange
from iact.core.views import consent
from iact.core.views.review import PendingRow, rows

STORE: Final = "live"
"""The name of the overlay's directory in a session's directory."""
_CODE: Final = "live"
_PATCH: Final = 200_000
"""The maximum length of one file's diff, in characters."""

_WRITTEN: Final = "What was written in the workspace"


@dataclass(frozen=True, slots=True)
class SeenChanges:
    """What a person was shown of the pending changes, as digests (`core.views.consent`)."""

    whole: str = ""
    """The digest of the whole list, if all of it is meant."""
    each: Mapping[str, str] = field(default_factory=dict)
    """Otherwise the digest of each change that is meant, by path."""

    def check(self, chosen: Mapping[str, PendingChange]) -> None:
        """Check that this is what is pending now. A folder that another path needs may be missing from `each`.

        Raises:
            Changed: it is not.
        """
        if self.whole:
            consent.check(self.whole, list_digest(chosen.values()))
            return

        for path, item in chosen.items():
            if path in self.each:
                consent.check(self.each[path], consent.change_digest(item))
            elif not _is_folder(item):
                raise Changed


def list_digest(pending: Iterable[PendingChange]) -> str:
    """Return the digest of a list of pending changes."""
    return consent.together(consent.change_digest(item) for item in pending)


@dataclass(frozen=True, slots=True)
class SettledChanges:
    """What happened to changes that a person applied or dropped."""

    record: Record
    """The record of it."""
    done: tuple[str, ...]
    """The paths whose changes were applied or dropped."""
    left: tuple[AppliedChange, ...]
    """The others, with reasons."""
    notes: tuple[AppliedChange, ...] = ()
    """Remarks about some of the applied changes."""

    def to_json(self) -> dict[str, JSON]:
        """The form for programs: `n`, `done` (how many), and `left` and `notes` with their reasons."""
        return {
            "n": self.record.n,
            "done": len(self.done),
            "left": left_json(self.left),
            "notes": left_json(self.notes),
        }


async def open_effects(live: Live, folder: Path, open_live: OpenLive | None) -> SessionEffects:
    """Open the effects of a session that works in `folder`, seen through an overlay if that is possible.

    Whether there is an overlay is recorded when it changes, because it affects how calls are rated.
    """
    files: LiveFiles | None = None
    if live.tree.workspace != "scratch" and open_live is not None:
        try:
            files = await asyncio.to_thread(open_live, folder, live.journal.directory / STORE)
        except WorkspaceError as error:
            text = (
                f"Changes in {folder} can't be held back for review: {error} Until that is fixed, every "
                "call that could write there counts as impact 2, so it needs intent 2 or is denied."
            )
            live.notice("/", _CODE, text)

    has_overlay = files is not None
    if live.tree.live.overlay != has_overlay:
        live.record(UseOverlay(by="core", value=has_overlay), "/")
    return SessionEffects(live, files)


class Underway:
    """One call that sees the directory. Made before the call's record, so that no inspection takes the record for an
    earlier one."""

    def __init__(self, effects: SessionEffects, *, works: bool) -> None:
        self._effects = effects
        self._works = works
        self._open = False

    def __enter__(self) -> Underway:
        self._open = True
        self._effects.enter(works=self._works)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    async def begin(self) -> None:
        """Prepare for the call, which is about to be made."""
        await self._effects.refresh(works=self._works)

    async def end(self, agent: str) -> int:
        """Note that the call has ended. Returns the last record before an inspection that found nothing new, otherwise
        0."""
        self._leave()
        return await self._effects.ended(agent) if self._works else 0

    def _leave(self) -> None:
        if self._open:
            self._open = False
            self._effects.leave(works=self._works)


class SessionEffects:
    """The effects of one session's calls. `files`: the overlay, or None if there is none; then nothing is done here."""

    def __init__(self, live: Live, files: LiveFiles | None) -> None:
        self._live = live
        self._files = files
        self._lock = asyncio.Lock()
        self._calls = self._works = 0
        self._told: set[str] = set()
        self._recovered = False

    @property
    def on(self) -> bool:
        """Whether there is an overlay."""
        return self._files is not None

    @property
    def folder(self) -> Path | None:
        """The directory that modules get as their workspace, if there is an overlay."""
        return self._files.folder if self._files is not None else None

    @property
    def room(self) -> FolderUse | None:
        """The directory that calls write to, if there is an overlay. Its content takes space until it is applied or
        dropped."""
        return FolderUse(self._files.written, _WRITTEN) if self._files is not None else None

    # --- around calls ---------------------------------------------------------------------------

    def underway(self, *, works: bool) -> Underway:
        """The context to enter before a call's record is made. `works`: the call can write."""
        return Underway(self, works=works)

    def enter(self, *, works: bool) -> None:
        """Count a call as under way."""
        self._calls += 1
        self._works += works

    def leave(self, *, works: bool) -> None:
        """Count a call as ended."""
        self._calls -= 1
        self._works -= works

    async def refresh(self, *, works: bool) -> None:
        """Let modules see what changed in the directory, unless another call is using it.

        `works`: the call that this is done for can write.
        """
        if self._files is None:
            return

        async with self._lock:
            if self._calls != 1:
                return
            try:
                stale = await to_its_end(partial(self._files.refresh, works=works))
            except WorkspaceError as error:
                self._tell(str(error))
                return

            if stale:
                more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
                self._tell(
                    f"Agents see an earlier version of {stale[0]!r}{more}, because a background job keeps it open."
                )

    async def ended(self, agent: str) -> int:
        """Note that a call that could write has ended. The last of several overlapping calls inspects the changes of
        all of them.

        Returns the last record before the inspection if it found nothing new, else 0.
        """
        if self._files is None or self._works:
            return 0

        async with self._lock:
            if self._works:  # another call began while this one waited for the lock
                return 0

            last = self._live.tree.records
            try:
                is_new = await self._look(self._files, "call", agent)
            except WorkspaceError as error:
                self._tell(str(error))
                return 0
            return 0 if is_new else last

    async def recover(self) -> None:
        """Finish what a crash cut off, and take in changes that were written but never inspected."""
        if self._files is None:
            return

        async with self._lock:
            try:
                await self._recover(self._files)
            except WorkspaceError as error:
                self._tell(str(error))

    async def _recover(self, files: LiveFiles) -> None:
        if not self._recovered:
            await self._look(files, "open", "/")
            self._recovered = True

    # --- for a person ---------------------------------------------------------------------------

    async def pending(self, *, fresh: bool = True) -> Mapping[str, PendingChange]:
        """The pending changes by path. They are current unless a call is in the middle of changing them.

        Not `fresh`: the changes as last seen, at no cost.

        Raises:
            WorkspaceError: the overlay can't be read.
        """
        if self._files is not None and fresh:
            async with self._lock:
                await self._look_for_person(self._files)
        return dict(self._live.tree.pending)

    async def rows(self, *, fresh: bool = True) -> list[PendingRow]:
        """The pending changes as people are shown them, one row for each path (`core.views.review`); arguments as for
        `pending`."""
        pending = await self.pending(fresh=fresh)
        return await asyncio.to_thread(rows, pending, Path(self._live.tree.workspace))

    async def patch(self, path: str, *, most: int = _PATCH) -> str:
        """The pending change of one path, as a unified diff.

        Raises:
            UsageError: no change is pending there.
            WorkspaceError: it can't be read.
        """
        if path not in self._live.tree.pending:
            raise UsageError(f"No change is waiting at {path!r}; see iact workspace pending.")

        files = self._overlay()
        async with self._lock:
            return await to_its_end(lambda: files.patch(path, most=most))

    async def texts(self, path: str) -> tuple[str, str] | None:
        """The text of one path before and after its pending change; None where texts don't show the change.

        Raises:
            UsageError: no change is pending there.
            WorkspaceError: it can't be read.
        """
        if path not in self._live.tree.pending:
            raise UsageError(f"No change is waiting at {path!r}; see iact workspace pending.")

        files = self._overlay()
        async with self._lock:
            return await to_its_end(lambda: files.texts(path))

    def digest(self, path: str) -> str:
        """The digest of the pending change of one path, as last seen (`core.views.consent`).

        Raises:
            UsageError: no change is pending there.
        """
        item = self._live.tree.pending.get(path)
        if item is None:
            raise UsageError(f"No change is waiting at {path!r}; see iact workspace pending.")
        return consent.change_digest(item)

    async def apply(
        self,
        paths: Sequence[str] | None,
        *,
        force: bool = False,
        since: int | None = None,
        seen: SeenChanges | None = None,
    ) -> SettledChanges:
        """Apply pending changes to the directory: those at these paths, with everything below them and everything they
        need, or all of them (None).

        `force`: also overwrite what was changed in the directory in the meantime. `since`: the last record that the
        person had seen; later changes are not applied unseen. `seen`: the digests of what the person was shown; None:
        a program decides.

        Raises:
            UsageError: no change is pending at a path, or it changed after `since`.
            Changed: a change is not the one that the person was shown.
            WorkspaceError: the overlay can't be read.
        """
        return await self._intend("apply", paths, force=force, since=since, seen=seen)

    async def drop(
        self, paths: Sequence[str] | None, *, since: int | None = None, seen: SeenChanges | None = None
    ) -> SettledChanges:
        """Discard the pending changes at these paths; arguments as for `apply`."""
        return await self._intend("drop", paths, force=False, since=since, seen=seen)

    async def close(self) -> None:
        """Remove the overlay; pending changes are available again when the session is reopened."""
        if self._files is not None:
            async with self._lock:
                with suppress(WorkspaceError):
                    await to_its_end(self._files.close)

    def _overlay(self) -> LiveFiles:
        if self._files is None:
            raise UsageError("This session has no overlay of a directory, so it has no waiting changes.")
        return self._files

    async def _intend(
        self,
        op: str,
        paths: Sequence[str] | None,
        *,
        force: bool,
        since: int | None,
        seen: SeenChanges | None,
    ) -> SettledChanges:
        """Apply or drop pending changes; arguments and errors as for `apply`."""
        files = self._overlay()
        live = self._live
        if live.failure is not None:
            raise live.failure

        async with self._lock:
            await self._look_for_person(files)
            chosen = choose(live.tree.pending, paths, dropping=op == "drop")
            _check_seen(live.tree.pending, chosen, since)
            if seen is not None:
                seen.check({path: live.tree.pending[path] for path in chosen})

            blobs: dict[str, bytes] = {}
            rows = listed(tuple(chosen), blobs)
            intention: DropChanges | ApplyChanges
            if op == "drop":
                intention = DropChanges(by="user", paths=rows)
            else:
                intention = ApplyChanges(by="user", paths=rows, force=force)

            # What is meant is on disk before a file is touched, so a crash in between is finished when it is next looked at.
            await live.durable(live.record(signed(intention), "/", blobs=blobs))
            settled = await self._finish(files)
            assert settled is not None
            await live.durable(settled.record)
            return settled

    # --- the overlay ----------------------------------------------------------------------------

    async def _look_for_person(self, files: LiveFiles) -> None:
        """Inspect the overlay for a person, unless a call is writing: its changes are incomplete and are inspected when
        it ends."""
        await self._recover(files)
        if not self._works:
            await self._look(files, "person", "/")

    async def _look(self, files: LiveFiles, after: After, agent: str) -> bool:
        """Inspect the overlay, record what is new, and apply what may be applied. Returns whether anything was new."""
        live = self._live
        tree = live.tree
        await self._finish(files)

        last = tree.records
        changes, gone = difference(tree.live, await to_its_end(files.changes))
        if not changes and not gone:
            return False

        look = Look(after, last, changes, gone)
        content, blobs = look_content(look)
        verdict = weigh(tree, look, tree.records + 1)
        record = live.record(verdict.content(content), agent, blobs=blobs)

        if verdict.applies:
            await live.durable(record)
            await self._finish(files)
        live.changed()
        return True

    async def _finish(self, files: LiveFiles) -> SettledChanges | None:
        """Carry out what was written ahead, if anything, and record the result."""
        intended = self._live.tree.live.intended
        if intended is None:
            return None

        paths = list(intended.changes)
        outcomes: Sequence[AppliedChange]
        try:
            if intended.op == "drop":
                await to_its_end(lambda: files.drop(paths))
                outcomes = [AppliedChange(path, "applied") for path in paths]
            else:
                outcomes = await to_its_end(lambda: _apply(files, intended))
        except WorkspaceError as error:
            outcomes = [AppliedChange(path, "failed", str(error)) for path in paths]

        left = _left(paths, outcomes)
        notes = [outcome for outcome in outcomes if outcome.outcome == "applied" and outcome.why]
        blobs: dict[str, bytes] = {}
        settle = Settle(
            of=intended.n, left=listed(outcome_rows(left), blobs), notes=listed(outcome_rows(notes), blobs)
        )
        record = self._live.record(settle, "/", blobs=blobs)
        self._live.changed()

        left_paths = {outcome.path for outcome in left}
        done = tuple(path for path in paths if path not in left_paths)
        return SettledChanges(record, done, tuple(left), tuple(notes))

    def _tell(self, text: str) -> None:
        """Report a problem to people, once."""
        if text not in self._told:
            self._told.add(text)
            self._live.notice("/", _CODE, text)


def _apply(files: LiveFiles, intended: Intention) -> Sequence[AppliedChange]:
    """Apply exactly what was intended, and not changes that appeared later, after a crash or from a process that kept
    running."""
    now = {change.path: change.now for change in files.changes()}
    later = [path for path, item in intended.changes.items() if path in now and now[path] != item.change.now]
    paths = [path for path in intended.changes if path not in later]

    outcomes = files.apply(paths, force=sorted(intended.force)) if paths else ()
    changed_again = "It changed again before it was applied. Review it again."
    return [*outcomes, *(AppliedChange(path, "failed", changed_again) for path in later)]


def _left(paths: Iterable[str], outcomes: Iterable[AppliedChange]) -> list[AppliedChange]:
    """What was not applied; a path without an outcome counts as not applied."""
    by_path = {outcome.path: outcome for outcome in outcomes}
    silent = "The overlay did not report whether it was applied."
    complete = [by_path.get(path, AppliedChange(path, "failed", silent)) for path in paths]
    return [outcome for outcome in complete if outcome.outcome != "applied"]


def choose(
    pending: Mapping[str, PendingChange], paths: Sequence[str] | None, *, dropping: bool = False
) -> list[str]:
    """The pending paths that a person means: each with everything in it, and with what it can't exist without.

    A file in a new folder needs the folder; a folder can't be deleted without its content. Dropping is the reverse:
    without a new folder its content can't exist, and a file that stays keeps its folder.

    Raises:
        UsageError: no change is pending at a path, or none at all.
    """
    if not pending:
        raise UsageError("No changes are waiting in this session.")
    if paths is None:
        return list(pending)

    wanted = {path.rstrip("/") for path in paths}
    chosen: set[str] = set()
    met: set[str] = set()
    for path in pending:
        above_or_equal = wanted.intersection((path, *parents(path)))
        if above_or_equal:
            chosen.add(path)
            met |= above_or_equal

    missing = sorted(wanted - met)
    if missing:
        raise UsageError(f"No change is waiting at {missing[0]!r}; see iact workspace pending.")

    needed = {
        folder
        for path in chosen
        for folder in parents(path)
        if folder in pending and _leaves_a_folder(pending[folder]) is not dropping
    }
    return [path for path in pending if path in chosen or path in needed]


def _is_folder(item: PendingChange) -> bool:
    """Whether a change is about a folder alone, which shows nothing but its mode."""
    change = item.change
    return all(state is None or state.type == "folder" for state in (change.was, change.now))


def _leaves_a_folder(item: PendingChange) -> bool:
    return item.change.now is not None and item.change.now.type == "folder"


def _check_seen(pending: Mapping[str, PendingChange], chosen: Sequence[str], since: int | None) -> None:
    """Check that no chosen change is newer than the last record that the person had seen.

    Raises:
        UsageError: one is.
    """
    if since is None:
        return

    late = [path for path in chosen if pending[path].n > since]
    if late:
        more = f", and {len(late) - 1} more paths" if len(late) > 1 else ""
        raise UsageError(
            f"{late[0]!r} changed again after you looked at it{more}"
            "; look at the changes again, then apply or drop them."
        )
