"""What calls really changed in a live directory, and what happens to it: one transaction per inspection.

After a call that could write, the session inspects the overlay. The changes that are new form one transaction. It is
applied at once as a whole if its highest impact is within the rights of every agent that could have caused it and
nothing else speaks against it; otherwise it waits as a whole for a person. What an inspection saw is an outcome.
Everything that follows from it is derived here, live and on replay, so a forged judgement is named.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from iact.core.errors import ReplayMismatch
from iact.core.gate.additions import ActingKind
from iact.core.gate.effects import Effect, highest, rate
from iact.core.gate.gate import ASK_FROM
from iact.core.gate.provenance import NOTHING, from_tool, join
from iact.core.ports import JSON, AppliedChange, ChangeKind, FileChange, FileState
from iact.core.records.calls import Call, Effects, Held, Result, Settle
from iact.core.records.codec import Misfit, decode_list, encode_part
from iact.core.records.control import ApplyChanges, DropChanges
from iact.core.records.parts import Blob, Listed, PathChange, PathOutcome, PathState
from iact.core.records.record import Record
from iact.core.tree import apply_file_owners, origin
from iact.core.tree.agent import Agent, Pending
from iact.core.tree.expectations import expect, expect_content
from iact.core.tree.installing import only_installs
from iact.core.tree.live_folder import After, Intention, LiveFolder, PendingChange, UnseenCall
from iact.core.tree.tree import Tree

INLINE: Final = 16_384
"""The longest list of changes or paths, in bytes, that a record holds inline; a longer one is a blob."""

_LITERAL: Final = frozenset({"files.write", "files.edit"})
"""Functions of shipped modules that write nothing but what their arguments say."""

_NAMED: Final = 3
"""The most names in a sentence."""


@dataclass(frozen=True, slots=True)
class Look:
    """What an inspection of the overlay saw."""

    after: After
    """After what it was made."""
    seen: int
    """The last record before it."""
    changes: tuple[FileChange, ...]
    """What differs from the known state."""
    gone: tuple[str, ...] = ()
    """The paths of changes that waited and no longer differ from the directory."""


@dataclass(frozen=True, slots=True)
class LookOutcome:
    """What follows from an inspection."""

    works: tuple[UnseenCall, ...]
    """The calls that it accounts for."""
    fresh: Mapping[str, PendingChange]
    """The transaction: what is new, by path."""
    restated: tuple[FileChange, ...]
    """Changes that wait already, compared with a directory that has changed meanwhile."""
    effect: Effect
    """The worst of the new changes."""
    held: Held
    """What keeps the transaction from being applied at once."""
    reason: str
    """A sentence about that, for people."""

    @property
    def applies(self) -> bool:
        """Whether the transaction is applied at once."""
        return bool(self.fresh) and not self.held

    def content(self, looked: Effects) -> Effects:
        """Build the record of the outcome, from `looked`: the record of what was seen."""
        fresh = bool(self.fresh)
        return replace(
            looked,
            calls=tuple(work.n for work in self.works),
            impact=self.effect.impact if fresh else None,
            why=self.effect.why if fresh else None,
            apply=self.applies if fresh else None,
            held=self.held,
            reason=self.reason,
        )


# --- what follows from an inspection -----------------------------------------------------------------------------


def begin(tree: Tree, agent: Agent, pending: Pending, record: Record, call: Call) -> None:
    """Note a call that is about to be made and can write in a live directory, so its effects are attributed to it."""
    if not tree.live.overlay or (call.impact or 0) <= 0:
        return

    loaded = tree.modules.get(call.function.split(".", 1)[0])
    if loaded is not None and loaded.manifest.needs.workspace == "write":
        labels = origin.written(tree, agent, pending)
        tree.live.working[record.n] = UnseenCall(
            record.n, agent.path, call.function, labels, installs=pending.installs
        )


def unchanged(tree: Tree, result: Result) -> None:
    """Apply a result's statement that its call, and all calls before it, left nothing new in the overlay."""
    for n in list(tree.live.working):
        if n <= result.unchanged:
            del tree.live.working[n]


def difference(
    folder: LiveFolder, changes: Iterable[FileChange]
) -> tuple[tuple[FileChange, ...], tuple[str, ...]]:
    """Return what is new since the last inspection, and what waited and is gone."""
    waiting = folder.pending
    by_path = {change.path: change for change in changes}
    fresh = [change for change in by_path.values() if _is_news(folder, change)]
    gone = [path for path in waiting if path not in by_path]
    return tuple(fresh), tuple(gone)


def _is_news(folder: LiveFolder, change: FileChange) -> bool:
    """Whether a change does not wait exactly as it is now."""
    waiting = folder.pending.get(change.path)
    return waiting is None or waiting.change != change


def weigh(tree: Tree, look: Look, n: int) -> LookOutcome:
    """Judge what an inspection saw. `n`: the record that reports it."""
    folder = tree.live
    works = tuple(work for work in folder.working.values() if work.n <= look.seen)
    fresh = [change for change in look.changes if not _waits(folder, change)]
    restated = tuple(change for change in look.changes if _waits(folder, change))

    # Each is rated by itself, and the transaction as its worst.
    effects: dict[str, Effect] = {}
    for change in fresh:
        own = folder.own.get(change.path)
        effects[change.path] = rate(change, own, tree.policy, additions=tree.follows_1_3)
    effect = highest(effects.values())
    worst_path = next((path for path, other in effects.items() if other is effect), "")
    if worst_path:
        effect = replace(effect, why=f"{worst_path}: {effect.why}")

    held: Held = ""
    reason = ""
    if fresh:
        acting = [(path, other.acts) for path, other in effects.items() if other.acts is not None]
        held, reason = _held(tree, look, works, fresh, effect, acting)

    # Who made it is all whose calls may have: it can't be told which of them wrote what.
    calls = tuple(work.n for work in works)
    agents = tuple(sorted({work.agent for work in works}))
    labels = join(work.labels for work in works)
    transaction: dict[str, PendingChange] = {}
    for change in fresh:
        pending = PendingChange(change, effects[change.path], n, held, reason, calls, agents, labels)
        before = folder.pending.get(change.path)
        if before is not None:
            # What changed a path again accounts for it beside those before.
            pending = replace(
                pending,
                calls=_union(before.calls, calls),
                agents=_union(before.agents, agents),
                labels=labels | before.labels,
            )
        transaction[change.path] = pending
    return LookOutcome(works, transaction, restated, effect, held, reason)


def _waits(folder: LiveFolder, change: FileChange) -> bool:
    """Whether exactly this change waits already, even if the directory under the overlay has changed since."""
    known = folder.pending.get(change.path)
    return known is not None and known.change.now == change.now


_Item = TypeVar("_Item", int, str)
_Row = TypeVar("_Row", str, PathChange, PathOutcome)


def _union(one: tuple[_Item, ...], other: tuple[_Item, ...]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(one + other))


def _held(
    tree: Tree,
    look: Look,
    works: tuple[UnseenCall, ...],
    fresh: list[FileChange],
    effect: Effect,
    acting: Sequence[tuple[str, ActingKind]],
) -> tuple[Held, str]:
    """Return what keeps a transaction from being applied at once, and the sentence for people.

    `acting`: the paths that something runs or reads by itself.
    """
    if tree.lockdown or tree.policy.lockdown:
        return "lockdown", "Everything is locked down."

    # A job that an agent left running after its calls can have changed something, too.
    writers = tuple(sorted({agent for _, agent in tree.shared.busy if agent in tree.agents}))
    if look.after == "open" or not (works or writers):
        return "unasked", "It was found in the overlay, and no call that ended accounts for it."

    # More than one who may have caused it is allowed to do.
    for agent, function, limit in _limits(tree, works, writers):
        if effect.impact > limit:
            may = f"the intent of {agent} is {limit:g}"
            if function:
                may = f"{agent} may do {limit:g} with {function}"
            return "impact", f"The changes have impact {effect.impact:g}, and {may}."

    # Perhaps at the word of a stranger.
    strange = origin.strange(tree, _labels(tree, works, writers))
    if not writers and only_installs(tree, works, [one.path for one in fresh]):
        strange -= {from_tool(work.function) for work in works}
    if acting and strange:
        return "provenance", _acts(acting, strange)
    if effect.impact >= ASK_FROM and strange:
        names = _names(strange)
        return "provenance", f"The changes have impact {effect.impact:g} and are touched by {names}."

    # Over what somebody else wrote, or before what it builds on.
    paths = [change.path for change in fresh if change.conflict]
    if paths:
        return "conflict", f"Somebody changed {_names(paths)} in the directory meanwhile."
    paths = _touching(tree.live.pending, [change.path for change in fresh])
    if paths:
        return "pending", f"It builds on changes that wait already: {_names(paths)}."
    return "", ""


def _acts(acting: Sequence[tuple[str, ActingKind]], strange: Iterable[str]) -> str:
    """The sentence about files that something runs or reads by itself, from an agent that has read a stranger."""
    path, kind = acting[0]
    more = ""
    if len(acting) > 1:
        more = f" So it is with {_names(other for other, _ in acting[1:])}."
    return f"{path}: {kind.reason}{more} It is touched by {_names(strange)}."


def _limits(
    tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]
) -> Iterable[tuple[str, str, float]]:
    """Yield who could have caused a change, and how much each may do. Names a function if its cap is what limits."""
    for work in works:
        grant = tree.grant_of(work.agent)
        cap = grant.scope.cap(work.function)
        if cap < grant.intent:
            yield work.agent, work.function, cap
        else:
            yield work.agent, "", grant.intent
    for agent in writers:
        yield agent, "", tree.grant_of(agent).intent


def _labels(tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]) -> frozenset[str]:
    """The labels of everything that what was written can have been made of."""
    agents = {work.agent for work in works} | set(writers)
    read = [tree.agents[path].labels for path in agents if path in tree.agents]
    kept = [tree.shared.held.get(holder, NOTHING) for holder in tree.shared.busy]
    return join([*(work.labels for work in works), *read, *kept, _met(tree, works, writers)])


def _met(tree: Tree, works: tuple[UnseenCall, ...], writers: tuple[str, ...]) -> frozenset[str]:
    """The labels of the files, if what was written can be made of them: a script reads what it likes."""
    says_it_all = all(work.function in _LITERAL for work in works) and not writers
    if says_it_all or not tree.follows_1_3:
        return NOTHING
    return tree.shared.files


def _touching(pending: Mapping[str, PendingChange], paths: Iterable[str]) -> list[str]:
    """Return the paths that are equal to, below or above a path that waits."""
    folders = {folder for waiting in pending for folder in parents(waiting)}
    touching: list[str] = []
    for path in paths:
        is_in_one = any(folder in pending for folder in parents(path))
        if path in pending or path in folders or is_in_one:
            touching.append(path)
    return touching


def parents(path: str) -> Iterable[str]:
    """The folders that contain a path, the innermost first."""
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def _names(many: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    names = sorted(many)
    first = ", ".join(names[:_NAMED])
    rest = len(names) - _NAMED
    return f"{first} and {rest} more" if rest > 0 else first


# --- the rules of the fold --------------------------------------------------------------------------------


def changed(tree: Tree, record: Record, looked: Effects) -> None:
    """Apply an `effects` record: the overlay was inspected, and something was new."""
    folder = tree.live
    look = look_of(tree, record, looked)
    at_rest = folder.overlay and folder.intended is None
    expect(tree, record, at_rest, "looks at an overlay that is not at rest")
    expect(tree, record, 0 < look.seen < record.n, f"looks back from record {look.seen}")
    waited = all(path in folder.pending for path in look.gone)
    is_news = all(_is_news(folder, change) for change in look.changes)
    expect(tree, record, waited and is_news, "tells what was known")

    outcome = weigh(tree, look, record.n)
    expect_content(tree, record, outcome.content(looked))
    for work in outcome.works:
        origin.touch_files(tree, work.labels)
        del folder.working[work.n]

    apply_file_owners.looked(tree, outcome.fresh, (work.n for work in outcome.works))

    for path in look.gone:
        folder.pending.pop(path, None)
    for change in outcome.restated:
        folder.pending[change.path] = replace(folder.pending[change.path], change=change, n=record.n)
    if outcome.applies:
        folder.intended = Intention(record.n, "apply", outcome.fresh)
    else:
        folder.pending.update(outcome.fresh)


def intend(tree: Tree, record: Record, command: ApplyChanges | DropChanges) -> None:
    """Note that a person applies or drops waiting changes. The next `settle` reports the result."""
    folder = tree.live
    paths = unlisted(tree, record, "paths", command.paths, str)
    waiting = {path: folder.pending[path] for path in paths if path in folder.pending}
    all_wait = all(path in waiting for path in paths)
    expect(tree, record, all_wait and folder.intended is None, f"means to {command.OP} what does not wait")

    if isinstance(command, DropChanges):
        folder.intended = Intention(record.n, "drop", waiting, frozenset())
        return
    forced = frozenset(paths) if command.force else frozenset[str]()
    folder.intended = Intention(record.n, "apply", waiting, forced)


def settle(tree: Tree, record: Record, settled: Settle) -> None:
    """Apply the result of an intention that was recorded in advance."""
    folder = tree.live
    intended = folder.intended
    was_meant = intended is not None and intended.n == settled.of
    expect(tree, record, was_meant, "settles what nobody meant to do")
    if intended is None:
        return

    left = {row.path: row for row in unlisted(tree, record, "left", settled.left, PathOutcome)}
    expect(tree, record, left.keys() <= intended.changes.keys(), "leaves what nobody meant to do")
    for path, pending in intended.changes.items():
        if path in left:
            folder.pending[path] = _still_waiting(pending, left[path], record.n)
            continue
        folder.pending.pop(path, None)
        if intended.op == "apply":
            _own(folder, pending.change)
    folder.intended = None


def _still_waiting(pending: PendingChange, outcome: PathOutcome, n: int) -> PendingChange:
    """A change that could not be applied or dropped, as record `n` says."""
    if outcome.outcome == "conflict":
        change = replace(pending.change, conflict=True)
        return replace(pending, change=change, n=n, held="conflict", reason=outcome.why)
    return replace(pending, n=n, held="failed", reason=outcome.why)


def _own(folder: LiveFolder, change: FileChange) -> None:
    """Count an applied change as the session's own if the file is new or was its own before."""
    if change.now is None:
        folder.own.pop(change.path, None)
    elif change.kind == "add" or change.path in folder.own:
        folder.own[change.path] = change.now


# --- the form in records -----------------------------------------------------------------------------------


def look_content(look: Look) -> tuple[Effects, dict[str, bytes]]:
    """Build the `effects` record of an inspection before it is judged, and the blobs that it names."""
    blobs: dict[str, bytes] = {}
    changes = listed(tuple(change_row(change) for change in look.changes), blobs)
    gone = listed(look.gone, blobs)
    return Effects(after=look.after, seen=look.seen, changes=changes, gone=gone, calls=()), blobs


def listed(items: tuple[_Row, ...], blobs: dict[str, bytes]) -> Listed[_Row]:
    """A list as a record holds it: the list itself, or the name of a blob if it is long."""
    rows = [item if isinstance(item, str) else encode_part(item) for item in items]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    if len(data) <= INLINE:
        return items
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return Blob(sha256=digest, size=len(data))


def unlisted(
    tree: Tree, record: Record, name: str, value: Listed[_Row], kind: type[_Row]
) -> tuple[_Row, ...]:
    """The inverse of `listed`.

    Raises:
        ReplayMismatch: the blob does not hold such a list.
    """
    if not isinstance(value, Blob):
        return value
    if not tree.blobs.has(value):
        return ()
    try:
        data = json.loads(tree.blobs(value.sha256))
        return decode_list(kind, data)
    except (ValueError, RecursionError, Misfit):
        raise _malformed(record, name) from None


def look_of(tree: Tree, record: Record, looked: Effects) -> Look:
    """Read the inspection that an `effects` record holds.

    Raises:
        ReplayMismatch: it holds an invalid change.
    """
    changes: list[FileChange] = []
    for row in unlisted(tree, record, "changes", looked.changes, PathChange):
        change = _change(row)
        if change is None:
            raise _malformed(record, "changes")
        changes.append(change)

    gone = unlisted(tree, record, "gone", looked.gone, str)
    return Look(looked.after, looked.seen, tuple(changes), gone)


def outcome_rows(changes: Iterable[AppliedChange]) -> tuple[PathOutcome, ...]:
    """Outcomes as a `settle` record holds them."""
    return tuple(PathOutcome(path=change.path, outcome=change.outcome, why=change.why) for change in changes)


def left_json(changes: Iterable[AppliedChange]) -> list[JSON]:
    """Outcomes as clients receive them."""
    return [encode_part(row) for row in outcome_rows(changes)]


def change_row(change: FileChange) -> PathChange:
    """A change as records and clients have it."""
    return PathChange(
        path=change.path,
        kind=change.kind,
        was=_row(change.was),
        now=_row(change.now),
        conflict=change.conflict,
    )


def _row(state: FileState | None) -> PathState | None:
    if state is None:
        return None
    return PathState(
        type=state.type, mode=state.mode, size=state.size, content=state.sha256, target=state.target
    )


_SIDES: Final[Mapping[ChangeKind, tuple[bool, bool]]] = {
    "add": (False, True), "modify": (True, True), "delete": (True, False),
}  # fmt: skip
"""Whether a file existed before, and exists now."""


def _change(row: PathChange) -> FileChange | None:
    """Read a change from a record; None if the row is not a valid change."""
    if (row.was is not None, row.now is not None) != _SIDES[row.kind]:
        return None
    return FileChange(row.path, row.kind, _state(row.was), _state(row.now), row.conflict)


def _state(row: PathState | None) -> FileState | None:
    if row is None:
        return None
    return FileState(row.type, row.mode, row.size, row.content, row.target)


def _malformed(record: Record, name: str) -> ReplayMismatch:
    return ReplayMismatch(
        f"Record {record.n} ({record.kind}) differs: its field {name!r} is malformed.", n=record.n
    )
